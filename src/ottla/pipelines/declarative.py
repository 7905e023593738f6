"""Spark's own declarative pipelines (SDP), run by Spark's own command line in the environment that Ottla sets
up.

Nothing is added to them but that: Java, a tuned Spark, and the data source `ottla`, which they find by its
name.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ottla.pipelines.checkpoints import Checkpoint
from ottla.pipelines.environment import child_environment, spark_settings
from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.project import Project

_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ][\d:.,]+Z?:? ?")


def command(project: Project, *, dry: bool, full_refresh: bool, verbose: bool) -> list[str]:
    """What to run: `spark-pipelines run --spec ...`, without the shell around it."""
    from ottla.spark.session import EVERYWHERE, ON_ONE_MACHINE

    pyspark = Path(str(require("pyspark.pipelines.cli", "spark").__file__))
    home = pyspark.parents[1]
    words = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy.SparkPipelines", str(pyspark)]
    words += ["dry-run" if dry else "run", "--spec", str(project.file)]
    if full_refresh:
        words.append("--full-refresh-all")
    master = project.settings.master
    if master is not None:
        words += ["--master", master]
    is_local = master is None or master.startswith("local")
    settings = {
        **EVERYWHERE,
        **(ON_ONE_MACHINE if is_local else {}),
        **spark_settings(project, verbose=verbose),
    }
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    return words


def run(words: Sequence[str], project: Project) -> Iterator[str]:
    """Run it in the project's folder; what it prints, line by line. Raises PipelineError if it fails."""
    last = ""
    environment = child_environment()
    environment["SPARK_HOME"] = str(Path(words[0]).parents[1])
    with subprocess.Popen(
        words,
        cwd=project.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said = line.rstrip()
                last = said.strip() or last
                yield said
        finally:
            if process.poll() is None:
                process.terminate()
    if process.returncode != 0:
        raise PipelineError(f"the pipeline failed: {_STAMP.sub('', last) or 'see above'}")


def checkpoints(project: Project) -> list[Checkpoint]:
    """The checkpoints of a pipeline whose storage is on this machine."""
    yaml = require("yaml", "spark")
    storage = (yaml.safe_load(project.file.read_text()) or {}).get("storage", "")
    if "://" in storage and not storage.startswith("file://"):
        return []
    root = project.root / storage.removeprefix("file://")
    found = [each.parent for each in root.glob("**/metadata") if (each.parent / "offsets").is_dir()]
    return [Checkpoint(str(each.relative_to(root)), each) for each in sorted(found)]
