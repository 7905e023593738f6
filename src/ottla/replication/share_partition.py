"""One partition as one share group sees it: who has which records, until when, and how often (KIP-932).

Between the start offset and the end offset records are in flight: they were delivered at least once, or would
have been. They stand in ranges that leave no gap, split where the fate of two neighbours differs and joined
again where it does not, so that what costs is the number of fates and not of records.

Nothing is known for good before it is stored. An acknowledgement therefore answers a `Write` for the
coordinator of the state, and its records change when the caller reports `written`; if it reports `failed`,
they stay with the consumer for as long as it may have them.

Pure: records are only offsets here, time comes in, and the limits are asked for each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ottla.core.share import RecordState, StateBatch
from ottla.protocol.errors import InvalidRecordState, InvalidRequest
from ottla.replication.share_delivery import Acquired, Delivery, Limits
from ottla.replication.share_ranges import Range, Ranges, Write

# Types of acknowledgement.
GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4

_NEXT_STATE: Final = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}


class Acknowledged(NamedTuple):
    """What a member says of records it has: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class SharePartition:
    """The records in flight, from what was stored of them."""

    def __init__(
        self,
        start_offset: int,
        batches: Iterable[StateBatch],
        limits: Callable[[], Limits],
    ) -> None:
        self._limits = limits
        self._ranges = Ranges(start_offset)
        self._may_have_available = True
        self._earliest_deadline: int | None = None
        for batch in batches:
            self._restore(batch)
        self._ranges.advance()

    @property
    def start_offset(self) -> int:
        """Everything before is done with."""
        return self._ranges.start_offset

    @property
    def end_offset(self) -> int:
        """From here on nothing has been delivered."""
        return self._ranges.end_offset

    @property
    def in_flight(self) -> int:
        return self._ranges.end_offset - self._ranges.start_offset

    @property
    def delivery_complete_count(self) -> int:
        """Records in flight that will not be delivered again, those of writes under way among them."""
        return self._ranges.complete_count

    def stored(self) -> list[StateBatch]:
        """The fates that have been decided and stored, for comparison with what the coordinator has."""
        return [
            StateBatch(each.first, each.last, each.state, each.delivery_count)
            for each in self._ranges
            if each.state != RecordState.ACQUIRED and each.delivery_count
        ]

    def _restore(self, batch: StateBatch) -> None:
        ranges = self._ranges
        first = max(batch.first_offset, ranges.end_offset)
        if batch.last_offset < first:
            return
        if first > ranges.end_offset:
            # Delivered by an earlier leader to somebody who never came back on it, or not there at all.
            ranges.append(first - 1, RecordState.AVAILABLE)
        state, count = batch.delivery_state, batch.delivery_count
        if state == RecordState.ACKNOWLEDGED:
            ranges.append(batch.last_offset, RecordState.ACKNOWLEDGED, count)
        elif state >= RecordState.ACKNOWLEDGED or count >= self._limits().delivery_count:
            ranges.append(batch.last_offset, RecordState.ARCHIVED, count)
        else:
            ranges.append(batch.last_offset, RecordState.AVAILABLE, count)

    # --- delivery ------------------------------------------------------------------------

    def next_fetch_offset(self) -> int:
        """Where to read in the log for what may be delivered next."""
        if self._may_have_available:
            for each in self._ranges:
                if each.is_available:
                    return each.first
            self._may_have_available = False
        return self._ranges.end_offset

    @property
    def has_available(self) -> bool:
        """Whether records have come back that somebody else may have."""
        return self.next_fetch_offset() < self._ranges.end_offset

    def can_acquire(self) -> bool:
        return self.in_flight < self._limits().record_locks or self.has_available

    def acquire(
        self,
        member_id: str,
        batches: Sequence[tuple[int, int]],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        mode: int,
        now_ms: int,
        aborted: Iterable[tuple[int, int]] = (),
    ) -> list[Acquired]:
        """Give a member records out of batches (first and last offset) that were read at the fetch offset.

        As a rule whole batches are given, so that it may be more than `max_records`, unless the mode says
        otherwise. Records of aborted batches are given to nobody.
        """
        if not batches or max_records <= 0:
            return []
        self.skip(fetch_offset, batches[0][0])
        delivery = Delivery(self._ranges, self._limits(), member_id, batches, mode, now_ms, max_records)
        delivery.again()
        if not delivery.is_full:
            delivery.anew(batch_size)
        for first, last in aborted:
            delivery.withhold(first, last)
        if delivery.given:
            self._note_deadline(delivery.deadline_ms)
        self._ranges.advance()
        return delivery.given

    def skip(self, first_offset: int, end_offset: int) -> None:
        """The log has no records any more between these offsets: what is available there never will be."""
        ranges = self._ranges
        for each in ranges.available(first_offset, end_offset - 1):
            ranges.change(each, RecordState.ARCHIVED)
        ranges.advance()

    def log_start_moved(self, log_start_offset: int) -> None:
        """The log begins later now. Whoever has records from before may acknowledge them; nobody minds."""
        self._ranges.drop_before(log_start_offset)

    # --- acknowledgement -----------------------------------------------------------------

    def acknowledge(self, member_id: str, batches: Iterable[Acknowledged], now_ms: int) -> Write | None:
        """What has to be stored; None when nothing has. All of it is accepted, or nothing.

        Raises `InvalidRecordState` when the member does not have the records, `InvalidRequest` when nobody
        could have them.
        """
        limits = self._limits()
        steps = []
        next_offset = self._ranges.start_offset
        for batch in batches:
            for first, last, kind in self._pieces(batch):
                if first < next_offset:
                    raise InvalidRecordState("The record state is invalid. The record is named twice.")
                self._check(member_id, first, last, kind, limits)
                steps.append((first, last, kind))
                next_offset = last + 1
        write = Write(self._ranges.start_offset)
        for first, last, kind in steps:
            for each in self._ranges.cut(first, last):
                if each.state != RecordState.ACQUIRED:
                    continue  # never delivered: offsets without a record
                if kind == RENEW:
                    each.deadline_ms = now_ms + limits.lock_duration_ms
                else:
                    self._begin(write, each, _NEXT_STATE[kind], limits)
        return self._begun(write)

    def release(self, member_id: str) -> Write | None:
        """A member has gone: others may have what it had."""
        limits = self._limits()
        write = Write(self._ranges.start_offset)
        for each in self._ranges:
            if each.member_id == member_id and each.write is None:
                self._begin(write, each, RecordState.AVAILABLE, limits)
        return self._begun(write)

    def written(self, write: Write) -> None:
        """What was decided is stored: so be it."""
        ranges = self._ranges
        for each in ranges.of(write):
            state = each.becoming
            assert state is not None
            ranges.settle(each, state)
            self._may_have_available |= state == RecordState.AVAILABLE
        ranges.join(write)
        ranges.advance()

    def failed(self, write: Write) -> None:
        """It could not be stored: the records are where they were, and their deadline stands."""
        ranges = self._ranges
        for each in ranges.of(write):
            ranges.take_back(each)
            self._note_deadline(each.deadline_ms)
        ranges.join(write)

    def _pieces(self, batch: Acknowledged) -> Iterator[tuple[int, int, int]]:
        """First offset, last offset and type of neighbours that are acknowledged alike."""
        start, end = self._ranges.start_offset, self._ranges.end_offset
        if batch.last_offset < start:
            return
        if batch.first_offset >= end:
            raise InvalidRequest(
                "Batch record not found. The first offset in request is past acquired records."
            )
        if batch.last_offset >= end:
            raise InvalidRequest(
                "Batch record not found. The last offset in request is past acquired records."
            )
        if len(batch.types) == 1:
            yield max(batch.first_offset, start), batch.last_offset, batch.types[0]
            return
        first = batch.first_offset
        for kind, alike in groupby(batch.types):
            last = first + sum(1 for _ in alike) - 1
            if last >= start:
                yield max(first, start), last, kind
            first = last + 1

    def _check(self, member_id: str, first: int, last: int, kind: int, limits: Limits) -> None:
        if kind == RENEW and not limits.may_renew:
            raise InvalidRecordState("Renewing acquisition locks is not enabled for the group.")
        for each in self._ranges.overlapping(first, last):
            if each.state == RecordState.ARCHIVED and not each.delivery_count:
                continue  # no record is here
            if each.state != RecordState.ACQUIRED:
                raise InvalidRecordState("The batch cannot be acknowledged. It is not in the acquired state.")
            if each.member_id != member_id:
                raise InvalidRecordState("Member is not the owner of batch record")
            if each.write is not None:
                raise InvalidRecordState(
                    "The record state is invalid. The acknowledgement of delivery could not be completed."
                )

    def _begin(self, write: Write, each: Range, state: RecordState, limits: Limits) -> None:
        if state == RecordState.AVAILABLE and each.delivery_count >= limits.delivery_count:
            state = RecordState.ARCHIVED
        self._ranges.begin(each, state, write)

    def _begun(self, write: Write) -> Write | None:
        write.delivery_complete_count = self._ranges.complete_count
        self._ranges.join(write)
        return write if write.batches else None

    # --- time ----------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When to call `expire`; at times too early, as most records are acknowledged before."""
        return self._earliest_deadline

    def expire(self, now_ms: int) -> Write | None:
        """Take records back from those who had them too long. They are available before that is stored."""
        if self._earliest_deadline is None or now_ms < self._earliest_deadline:
            return None
        self._earliest_deadline = None
        limit = self._limits().delivery_count
        write = Write(self._ranges.start_offset)
        for each in self._ranges:
            if each.state != RecordState.ACQUIRED or each.write is not None:
                continue
            if each.deadline_ms > now_ms:
                self._note_deadline(each.deadline_ms)
                continue
            self._expire(each, limit)
            write.add(each, each.state)
        write.delivery_complete_count = self._ranges.complete_count
        self._ranges.join(write)
        self._ranges.advance()
        return write if write.batches else None

    def _expire(self, each: Range, limit: int) -> None:
        is_over = each.delivery_count >= limit
        self._ranges.change(each, RecordState.ARCHIVED if is_over else RecordState.AVAILABLE)
        self._may_have_available |= not is_over

    def _note_deadline(self, deadline_ms: int) -> None:
        if self._earliest_deadline is None or deadline_ms < self._earliest_deadline:
            self._earliest_deadline = deadline_ms
