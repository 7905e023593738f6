"""Projects for tests: written to a folder, run in the session that all tests share."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.pipelines.failures import Failure
from ottla.pipelines.progress import Batch, FlowProgress
from ottla.pipelines.project import Project, find
from ottla.pipelines.run import Wishes, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

HEAD = "from pyspark.sql import functions as F\nfrom ottla.pipelines import events, flow, read, sinks\n"


class Told:
    """A report that keeps what it is told."""

    def __init__(self) -> None:
        self.flows: Sequence[FlowProgress] = ()
        self.batches: list[Batch] = []
        self.notes: list[str] = []
        self.shown: list[tuple[str, int, list[str], list[list[Any]]]] = []
        self.failures: list[Failure] = []
        self.is_finished = False

    def started(self, flows: Sequence[FlowProgress]) -> None:
        self.flows = flows

    def note(self, text: str) -> None:
        self.notes.append(text)

    def batch(self, batch: Batch) -> None:
        json.dumps(batch.as_json())
        self.batches.append(batch)

    def refresh(self) -> None:
        return None

    def rows(self, flow: str, batch: int, columns: list[str], rows: list[list[Any]]) -> None:
        self.shown.append((flow, batch, columns, rows))

    def failed(self, failure: Failure) -> None:
        self.failures.append(failure)

    def finished(self) -> None:
        self.is_finished = True


class Pipeline:
    """A project of one file."""

    def __init__(self, spark: SparkSession, root: Path, bootstrap: str) -> None:
        self.spark, self.root, self.bootstrap = spark, root, bootstrap

    def write(self, text: str, settings: str = "") -> Pipeline:
        self.root.mkdir(exist_ok=True)
        (self.root / "pipeline.py").write_text(HEAD + textwrap.dedent(text))
        (self.root / "pipeline.toml").write_text(settings)
        return self

    @property
    def project(self) -> Project:
        return find(self.root, bootstrap=self.bootstrap)

    def run(self, *, full_refresh: bool = False, available_now: bool = True) -> Told:
        """Run it until it has read what there is."""
        told = Told()
        run(self.project, self.spark, told, Wishes(available_now, full_refresh))
        assert told.is_finished
        return told

    def rows(self, path: str) -> list[dict[str, Any]]:
        """The rows of a Parquet directory, as Spark reads it."""
        found = self.spark.read.parquet(str(self.root / path)).collect()
        return sorted((row.asDict() for row in found), key=str)
