"""Spark's own declarative pipelines (SDP), run by Spark's own command line in the environment that Ottla sets
up.

Nothing is added to them but that: Java, a tuned Spark, and the data source `ottla`, which they find by its
name.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from ottla.pipelines.checkpoints import Checkpoint
from ottla.pipelines.environment import child_environment, spark_settings
from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.failures import cause
from ottla.pipelines.project import Project

_ERROR = re.compile(r"(Exception in thread|[\w.]+(Error|Exception)\b)")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ][\d:.,]+Z?:? ?")


def command(project: Project, *, dry: bool, full_refresh: bool) -> list[str]:
    """What to run: Spark's `spark-pipelines`, without the shell script and the Java around it."""
    cli = require("pyspark.pipelines.cli", "spark").__file__
    words = [sys.executable, str(cli), "dry-run" if dry else "run", "--spec", str(project.file)]
    return [*words, "--full-refresh-all"] if full_refresh else words


def environment(project: Project, *, verbose: bool) -> dict[str, str]:
    """Where to run it. It reaches its Spark through Spark Connect: one that it starts itself, or a server."""
    from ottla.spark.session import EVERYWHERE, ON_ONE_MACHINE

    remote = project.settings.master or "local[*]"
    if not remote.startswith(("local", "sc://")):
        raise PipelineError(
            f"a declarative pipeline runs on local[N] or a Spark Connect server (sc://host), not on {remote}"
        )
    settings = {**EVERYWHERE, **ON_ONE_MACHINE, **spark_settings(project, verbose=verbose)}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return {
        **child_environment(),
        "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
        "SPARK_CONNECT_MODE_ENABLED": "1",
        "SPARK_REMOTE": remote,
    }


def run(words: Sequence[str], project: Project, environment: Mapping[str, str]) -> Iterator[str]:
    """Run it in the project's folder; what it prints, line by line. Raises PipelineError if it fails."""
    tail: deque[str] = deque(maxlen=200)
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
                tail.append(line.rstrip())
                yield tail[-1]
        finally:
            if process.poll() is None:
                process.terminate()
    if process.returncode != 0:
        raise PipelineError(f"the pipeline failed: {_reason(tail)}")


def _reason(tail: Iterable[str]) -> str:
    """Of the last lines that Spark printed, the one that says why."""
    lines = [_STAMP.sub("", line) for line in tail]
    causes = [line for line in lines if _ERROR.match(line)]
    return cause("\n".join(lines) if not causes else causes[-1]) or "see above"


def checkpoints(project: Project) -> list[Checkpoint]:
    """The checkpoints of a pipeline whose storage is on this machine."""
    yaml = require("yaml", "spark")
    storage = (yaml.safe_load(project.file.read_text()) or {}).get("storage", "")
    if "://" in storage and not storage.startswith("file://"):
        return []
    root: Path = project.root / storage.removeprefix("file://")
    found = [each.parent for each in root.glob("**/metadata") if (each.parent / "offsets").is_dir()]
    return [Checkpoint(_flow_name(each.relative_to(root)), each) for each in sorted(found)]


def _flow_name(path: PurePath) -> str:
    """`default.orders` for _checkpoints/spark_catalog/default/orders/orders/0: catalog, schema, table, flow,
    run."""
    steps = [step for step in path.parts if step not in ("_checkpoints", "spark_catalog")]
    if len(steps) > 1 and steps[-1].isdecimal():
        steps.pop()
    if len(steps) > 1 and steps[-1] == steps[-2]:
        steps.pop()
    return ".".join(steps)
