"""Watching queries until they end: their progress to the report, Ctrl-C to a stop after the batch.

What is watched is Spark's own list of finished batches for each query, so a batch is reported once, also when
it ends just before the query does.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoints import Unfinished
from ottla.pipelines.failures import Failure, failure_of
from ottla.pipelines.progress import FlowProgress, batch_of
from ottla.pipelines.reports import Report

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS: Final = 0.2
ENDED: Final = ("done", "failed")


class Stopping:
    """The wish to stop: not, after the batch, or at once."""

    def __init__(self) -> None:
        self.after_batch = threading.Event()
        self.at_once = threading.Event()

    def ask(self) -> None:
        """One more Ctrl-C."""
        (self.at_once if self.after_batch.is_set() else self.after_batch).set()


@dataclass
class Watched:
    """A query that runs, and what it had done when it was asked to stop."""

    progress: FlowProgress
    query: StreamingQuery
    unfinished: Callable[[], Unfinished | None]
    asked_at: int | None = field(default=None)

    def collect(self, report: Report) -> None:
        """Report the batches that ended since the last look."""
        for each in self.query.recentProgress:
            batch = batch_of(self.progress.flow, json.loads(each.json))
            if self.progress.add(batch):
                report.batch(batch)

    def failure(self) -> Failure | None:
        error = self.query.exception()
        return None if error is None else failure_of(self.progress.flow, str(error), self.unfinished())

    def may_stop(self) -> bool:
        """Whether the batch that was running when it was asked to stop has ended."""
        done = -1 if self.progress.last is None else self.progress.last.batch
        if self.asked_at is None:
            self.asked_at = done
        return done > self.asked_at or not self.query.status["isTriggerActive"]


@contextmanager
def signals(stopping: Stopping) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask to stop. Set after Spark's session is made, which has a handler of its own that
    would kill the running batch."""

    def asked(number: int, frame: FrameType | None) -> None:
        if stopping.at_once.is_set():
            # Neither of the two was enough: whatever hangs is left where it is.
            raise KeyboardInterrupt
        stopping.ask()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Mapping[signal.Signals, Any] = {
        number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(
    queries: list[Watched],
    report: Report,
    stopping: Stopping,
    more: Callable[[], bool] = lambda: False,
) -> Failure | None:
    """Until all have ended. The first failure stops the others after their batch and is the answer.

    more: called before each look; may add queries, and says whether there may be further ones.
    """
    failure: Failure | None = None
    told = False
    pause = threading.Event()
    while True:
        may_come = more()
        for each in queries:
            each.collect(report)
            if each.query.isActive:
                each.progress.state = "stopping" if stopping.after_batch.is_set() else "running"
            elif each.progress.state not in ENDED:
                # Once more: a batch may have ended between the look at batches and the look at the query.
                each.collect(report)
                failed = each.failure()
                each.progress.state = "done" if failed is None else "failed"
                if failed is not None and failure is None:
                    failure = failed
                    report.failed(failed)
                    stopping.after_batch.set()
        report.refresh()
        if not may_come and all(each.progress.state in ENDED for each in queries):
            return failure
        active = [each for each in queries if each.query.isActive]
        if stopping.after_batch.is_set():
            if not told and failure is None:
                told = True
                report.note("stopping after the batch; Ctrl-C again stops at once")
            for each in active:
                if stopping.at_once.is_set() or each.may_stop():
                    # It may fail while it is being stopped; that is then found in the next round.
                    with suppress(Exception):
                        each.query.stop()
        pause.wait(LOOK_SECONDS)
