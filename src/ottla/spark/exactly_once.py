"""What the driver and the tasks of a stream decide, so that every row of a micro-batch is written exactly
once.

Each task that has rows writes them in a transaction of its own and leaves it open. The driver ends them all.
Before that it stores in each transaction a *marker*: a position of the group `ottla-sink-<query id>` with the
batch id plus one, and in its metadata which task of how many it is from. So a marker takes force with the
rows it is about, or not at all, and a batch that Spark runs again can see what of it has been committed.

The transactions are numbered (`ordinal`), and number 0 is ended first and alone: from that moment the batch
is *decided*. Its marker names all the other transactions, which whoever finds the batch decided and not
complete can end as well, without writing a row again. Only a transaction that the broker has given up
meanwhile (`transaction.timeout.ms`) is written again, and then the batch must be split into tasks as it was.

Nothing here talks to a broker: `progress` does, for `stream_writer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.core.types import TopicPartition

METADATA_LIMIT: Final = 4096
"""The default of the broker's offset.metadata.max.bytes."""

_MARKER: Final = re.compile(
    r"task=(?P<task>\d+)/(?P<tasks>\d+) writer=(?P<ordinal>\d+)/(?P<writers>\d+) slots=(?P<slots>\d+) "
    r"rows=(?P<rows>\d+)(?: open=(?P<rest>\d+:\d+:\d+(?:,\d+:\d+:\d+)*))?"
)


class ReplayDiffers(Exception):
    """A batch that was committed in part is run again with other tasks or rows than the first time."""


class Open(NamedTuple):
    """A transaction that was open when its batch was decided; its id follows from the task."""

    task: int
    producer_id: int
    producer_epoch: int


class Share(NamedTuple):
    """What one task did of a batch: nothing, rows in an open transaction, or rows committed by an earlier
    run."""

    task: int
    rows: int = 0
    open: Open | None = None
    is_recorded: bool = False


class Marker(NamedTuple):
    """The position that a task's transaction leaves in the group of the query."""

    batch_id: int
    task: int
    tasks: int
    ordinal: int
    writers: int
    slots: int
    rows: int
    rest: tuple[Open, ...] = ()

    @property
    def offset(self) -> int:
        return self.batch_id + 1

    def metadata(self) -> str:
        """The text for the position. The rest is left out where it does not fit: then what is missing of a
        batch can be written again, but not ended."""
        text = (
            f"task={self.task}/{self.tasks} writer={self.ordinal}/{self.writers} slots={self.slots} "
            f"rows={self.rows}"
        )
        rest = ",".join(f"{each.task}:{each.producer_id}:{each.producer_epoch}" for each in self.rest)
        longer = f"{text} open={rest}"
        return longer if rest and len(longer) <= METADATA_LIMIT else text

    @classmethod
    def parse(cls, offset: int, metadata: str) -> Marker | None:
        """The marker of a position, or None for one that somebody else has stored in the group."""
        found = _MARKER.fullmatch(metadata)
        if found is None:
            return None
        rest = [each.split(":") for each in (found["rest"] or "").split(",") if each]
        task, tasks, ordinal, writers, slots, rows = map(int, found.groups()[:6])
        return cls(
            offset - 1,
            task,
            tasks,
            ordinal,
            writers,
            slots,
            rows,
            rest=tuple(Open(*map(int, each)) for each in rest),
        )


def transactional_id(owner: str, task: int) -> str:
    """The same for every attempt of a task, so that a later attempt fences the earlier ones."""
    return f"ottla-{owner}-{task}"


def group_of(query_id: str, shelf: int = 0) -> str:
    """The group that holds the markers of a query; more of them where there are more writers than slots."""
    return f"ottla-sink-{query_id}" + (f"-{shelf}" if shelf else "")


def slot_of(ordinal: int, slots: int) -> tuple[int, int]:
    """(shelf, partition) of a marker: a broker keeps positions only of partitions that exist."""
    return divmod(ordinal, slots)


@dataclass(frozen=True)
class Progress:
    """What of a batch has been committed."""

    batch_id: int
    markers: Mapping[int, Marker]  # by ordinal
    topic: str | None = None  # whose partitions the positions are of; None before there is one

    @classmethod
    def of(cls, batch_id: int, positions: Iterable[tuple[TopicPartition, tuple[int, str]]]) -> Progress:
        """From all positions (offset, metadata) of the query's groups; those of other batches do not
        matter."""
        markers: dict[int, Marker] = {}
        topic = None
        for partition, (offset, metadata) in positions:
            marker = Marker.parse(offset, metadata)
            if marker is not None and marker.batch_id == batch_id:
                markers[marker.ordinal] = marker
                topic = partition.topic if marker.ordinal == 0 else topic
        return cls(batch_id, markers, topic)

    @property
    def first(self) -> Marker | None:
        return self.markers.get(0)

    @property
    def is_decided(self) -> bool:
        return 0 in self.markers

    @property
    def is_complete(self) -> bool:
        return self.first is not None and len(self.markers) == self.first.writers

    @property
    def shelves(self) -> int:
        """How many groups hold the markers of this batch, as far as is known."""
        return 1 if self.first is None else -(-self.first.writers // self.first.slots)

    def marker_of(self, task: int) -> Marker | None:
        return next((each for each in self.markers.values() if each.task == task), None)

    def unfinished(self) -> list[Open]:
        """The transactions of a decided batch that may still be open."""
        committed = {each.task for each in self.markers.values()}
        return [each for each in self.first.rest if each.task not in committed] if self.first else []


class Commit(NamedTuple):
    """What the driver has to do: store these markers, then end their transactions in this order; abort
    others."""

    ends: list[tuple[Marker, Open]]
    stray: list[Open]


def plan_commit(progress: Progress, shares: Sequence[Share], slots: int) -> Commit:
    """How to commit what the tasks of a batch did. Raises `ReplayDiffers`, and then nothing may be ended."""
    writers = sorted((each for each in shares if each.open or each.is_recorded), key=lambda each: each.task)
    is_open = [each.open for each in writers if each.open]
    if progress.is_complete:
        return Commit([], is_open)
    first = progress.first
    if first is not None:
        _require_same(progress, first, shares, writers)
    elif len(is_open) < len(writers):
        raise ReplayDiffers(
            f"the markers of batch {progress.batch_id} have gone while it ran; has its group been deleted?"
        )
    ends: list[tuple[Marker, Open]] = []
    stray: list[Open] = []
    for ordinal, share in enumerate(writers):
        if share.open is None:
            continue
        if ordinal in progress.markers:
            # Committed after all by a run that is not gone: what was written again must not count.
            stray.append(share.open)
            continue
        rest = tuple(is_open[1:]) if first is None and ordinal == 0 else ()
        used = slots if first is None else first.slots
        marker = Marker(
            progress.batch_id, share.task, len(shares), ordinal, len(writers), used, share.rows, rest
        )
        ends.append((marker, share.open))
    return Commit(ends, stray)


def _require_same(
    progress: Progress, first: Marker, shares: Sequence[Share], writers: Sequence[Share]
) -> None:
    """A batch of which a part is committed must have the same tasks and the same rows in them."""
    what = f"batch {progress.batch_id} was committed in part by an earlier run"
    advice = "its rows cannot be told apart from those that are missing. Run it as it ran before"
    if first.tasks != len(shares):
        raise ReplayDiffers(
            f"{what} with {first.tasks} tasks and now has {len(shares)}: {advice} (same minPartitions, "
            "spark.sql.shuffle.partitions and number of cores)"
        )
    for share in writers:
        marker = progress.marker_of(share.task)
        if marker is not None and marker.rows != share.rows:
            raise ReplayDiffers(
                f"{what}, where task {share.task} had {marker.rows} rows and now has {share.rows}: {advice}"
            )
    if first.writers != len(writers):
        raise ReplayDiffers(
            f"{what} with rows in {first.writers} tasks and now has rows in {len(writers)}: {advice}"
        )
    for ordinal, share in enumerate(writers):
        marker = progress.markers.get(ordinal)
        if marker is not None and marker.task != share.task:
            raise ReplayDiffers(
                f"{what}, where task {marker.task} had rows in the place of task {share.task}: {advice}"
            )
