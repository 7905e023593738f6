"""A full refresh: everything from the start. What earlier runs left is removed, and named first."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.pipelines.flows import Flow
from ottla.pipelines.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Removal:
    """Something to remove, in words and in deed."""

    what: str
    remove: Callable[[], None]


def removals(project: Project, flows: Sequence[Flow], spark: SparkSession) -> list[Removal]:
    """What a full refresh of these flows removes: their checkpoints, and what sinks can clear."""
    found: list[Removal] = []
    surroundings = project.surroundings()
    for flow in flows:
        # The sink first: if it refuses, the checkpoint is still there and nothing has happened.
        held = flow.sink.holds(surroundings) if flow.sink is not None else None
        if flow.sink is not None and held is not None:
            found.append(Removal(held, partial(flow.sink.clear, surroundings)))
        for name in (flow.name, flow.dead_letter_name):
            removal = _checkpoint(f"{project.checkpoints}/{name}", spark)
            if removal is not None:
                found.append(removal)
    return found


def _checkpoint(path: str, spark: SparkSession) -> Removal | None:
    if "://" not in path:
        folder = Path(path)
        what = f"the checkpoint {folder}"
        return Removal(what, lambda: shutil.rmtree(folder)) if folder.exists() else None
    # Elsewhere than on this machine: by the file systems that Spark knows.
    jvm: Any = spark.sparkContext._jvm
    where = jvm.org.apache.hadoop.fs.Path(path)
    files = where.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not files.exists(where):
        return None
    return Removal(f"the checkpoint {path}", lambda: files.delete(where, True))
