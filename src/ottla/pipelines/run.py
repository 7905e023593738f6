"""Running a project of flows, or checking that it could run."""

from __future__ import annotations

import os
import re
import runpy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoints import Checkpoint, Unfinished
from ottla.pipelines.environment import log_file
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures import Failure, failure_of
from ottla.pipelines.flows import Flow, flows_of
from ottla.pipelines.loading import load
from ottla.pipelines.progress import FlowProgress
from ottla.pipelines.project import Project
from ottla.pipelines.queries import Query, build, start
from ottla.pipelines.refresh import removals
from ottla.pipelines.reports import Report
from ottla.pipelines.watch import Stopping, Watched, signals, watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


START_ATTEMPTS: Final = 5
START_SECONDS: Final = 60.0
START_LOOK_SECONDS: Final = 0.05
NO_WORKER: Final = "Python worker failed to connect back"


@dataclass(frozen=True)
class Wishes:
    """How a project is to be run. `confirm` is asked before a full refresh removes something."""

    available_now: bool = False
    full_refresh: bool = False
    confirm: Callable[[str], None] = lambda question: None


class FlowFailed(PipelineError):
    """A flow failed. The message names it, the batch and the offsets."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def run(project: Project, spark: SparkSession, report: Report, wishes: Wishes) -> bool:
    """Run a Python project until its flows end, or until it is told to stop. True if that was at once, by a
    second Ctrl-C. Raises FlowFailed."""
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    stopping = Stopping()
    with _inside(project.root), signals(stopping):
        flows = _flows(project)
        if not flows:
            _run_plain(project, spark, report, stopping, wishes)
            return stopping.at_once.is_set()
        if wishes.full_refresh:
            _refresh(project, flows, spark, report, wishes)
        built = [(flow, _built(flow, spark, project, report)) for flow in flows]
        starting = [
            (flow, query, FlowProgress(query.flow, query.sink))
            for flow, queries in built
            for query in queries
        ]
        report.started([progress for _, _, progress in starting])
        watched: list[Watched] = []
        try:
            for flow, query, progress in starting:
                if not stopping.after_batch.is_set():
                    watched.append(_started(flow, query, progress, project, wishes))
                    report.refresh()
        except FlowFailed as error:
            for each in watched:
                each.query.stop()
            report.failed(error.failure)
            report.finished()
            raise
        try:
            failure = watch(watched, report, stopping)
        except (Py4JNetworkError, ConnectionError) as error:
            raise PipelineError(
                f"Spark has ended unexpectedly; its log may say why: {log_file(project)}"
            ) from error
        finally:
            report.finished()
    if failure is not None:
        raise FlowFailed(failure)
    return stopping.at_once.is_set()


def dry_run(project: Project, spark: SparkSession, report: Report) -> list[Query]:
    """Build every flow without starting it: Spark has then checked names and types."""
    with _inside(project.root):
        flows = _flows(project)
        if not flows:
            raise PipelineError(f"{project.file} has no flows; only running it can tell whether it works")
        return [query for flow in flows for query in _built(flow, spark, project, report)]


def _flows(project: Project) -> list[Flow]:
    if not re.search(r"\bottla\.pipelines\b.*\b[Ff]low\b", project.file.read_text()):
        # A plain file starts its queries while it is loaded, so it is loaded when all is ready for them.
        return []
    flows = flows_of(load(project.file))
    if not flows:
        raise PipelineError(f"{project.file} imports flow and has no flows")
    for flow in flows:
        if flow.sink is not None:
            flow.sink.check()
    return flows


def _built(flow: Flow, spark: SparkSession, project: Project, report: Report) -> list[Query]:
    try:
        return build(flow, spark, project.surroundings(), report.rows)
    except PipelineError:
        raise
    except Exception as error:
        raise FlowFailed(failure_of(flow.name, _text(error))) from error


def _started(flow: Flow, query: Query, progress: FlowProgress, project: Project, wishes: Wishes) -> Watched:
    """Start a query and wait until its source answers. One after the other: each source is a new Python
    process, to which Spark gives ten seconds, and many at a time are too many for a small machine."""
    checkpoint = f"{project.checkpoints}/{query.flow}"
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            running = start(query, checkpoint, available_now=wishes.available_now, trigger=flow.trigger)
        except Exception as refused:
            raise FlowFailed(failure_of(query.flow, _text(refused))) from refused
        until = time.monotonic() + START_SECONDS
        while running.isActive and running.status["message"].startswith("Initializing"):
            if time.monotonic() > until:
                break
            time.sleep(START_LOOK_SECONDS)
        error = running.exception()
        if error is None or attempt == START_ATTEMPTS or NO_WORKER not in str(error):
            break
    progress.state = "running"
    return Watched(progress, running, _unfinished(query.flow, checkpoint))


def _unfinished(name: str, checkpoint: str) -> Callable[[], Unfinished | None]:
    local = Checkpoint(name, Path(checkpoint))
    return (lambda: None) if "://" in checkpoint else local.unfinished


def _refresh(
    project: Project, flows: list[Flow], spark: SparkSession, report: Report, wishes: Wishes
) -> None:
    planned = removals(project, flows, spark)
    if not planned:
        report.note("full refresh: there is nothing to remove")
        return
    wishes.confirm(f"Remove {', '.join(each.what for each in planned)}?")
    for each in planned:
        each.remove()
        report.note(f"full refresh: removed {each.what}")


def _run_plain(
    project: Project, spark: SparkSession, report: Report, stopping: Stopping, wishes: Wishes
) -> None:
    """A file that starts its queries itself: run as a program, and whatever it starts is watched."""
    for name, is_wished in (
        ("--available-now", wishes.available_now),
        ("--full-refresh", wishes.full_refresh),
    ):
        if is_wished:
            raise PipelineError(f"{name} needs flows; {project.file} starts its queries itself")
    queries: list[Watched] = []
    known: set[str] = set()
    is_over = threading.Event()
    outcome: list[Failure | None] = []

    def more() -> bool:
        was_over = is_over.is_set()
        for query in spark.streams.active:
            if query.runId not in known:
                known.add(query.runId)
                progress = FlowProgress(query.name or query.id, "its own sink")
                queries.append(Watched(progress, query, lambda: None))
                report.started([each.progress for each in queries])
        return not was_over

    watcher = threading.Thread(
        target=lambda: outcome.append(watch(queries, report, stopping, more)), name="progress"
    )
    watcher.start()
    trouble: BaseException | None = None
    try:
        runpy.run_path(str(project.file), init_globals={"spark": spark}, run_name="__main__")
    except Exception as error:
        trouble = error
        stopping.after_batch.set()
    finally:
        # A program that does not wait for its queries is at its end, and they go on.
        is_over.set()
        watcher.join()
        report.finished()
    failure = outcome[0] if outcome else None
    if failure is not None:
        raise FlowFailed(failure)
    if trouble is not None:
        raise PipelineError(f"{project.file.name}: {failure_of('', _text(trouble)).reason}") from trouble


def _text(error: BaseException) -> str:
    said: Any = str(error)
    return said if said.startswith("[") or "Traceback" in said else f"{type(error).__name__}: {said}"


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Relative paths of a flow's own are those of its project."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
