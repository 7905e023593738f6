"""SPARK_HOME on one machine: Spark as it is installed, without the second copy of pyspark in it.

Spark has its Python processes import pyspark from an archive, python/lib/pyspark.zip, in which nothing is
compiled: three quarters of a second in every process that it starts, and a query from a topic to a topic
starts several. Without the archive they find the pyspark that is installed, which is compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.spark.cache import cached

ARCHIVES: Final = "python"


def spark_home(cache: Path | None = None) -> Path:
    """A SPARK_HOME in the cache directory, with links to all that Spark needs of the installed one."""
    import pyspark

    installed = Path(pyspark.__file__).resolve().parent

    def link(home: Path) -> None:
        for entry in installed.iterdir():
            if entry.name != ARCHIVES:
                (home / entry.name).symlink_to(entry)

    return cached("spark", f"{installed} {pyspark.__version__}", link, cache)
