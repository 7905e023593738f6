"""A log in memory that can lose what was not synced: as much of `storage.log.Log` as a partition uses."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

from ottla.core.files import Buffer
from ottla.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, iter_batches
from ottla.protocol.errors import OffsetOutOfRange
from ottla.storage.epochs import Epochs
from ottla.storage.log import Appended

_HEADER = Struct(">qiibIhiqqqhii")


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    value: int
    bytes: bytes


def batch_of(value: int, records: int) -> bytes:
    """A batch without records: its header says how many there would be, and which value it is."""
    length = HEADER_SIZE - LOG_OVERHEAD
    return _HEADER.pack(0, length, -1, 2, 0, 0, records - 1, value, value, -1, -1, -1, records)


class _Producers:
    has_unreplicated = False


class SimulatedLog:
    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.start_offset = self.end_offset = self.high_watermark = self.recovery_point = 0
        self.checkpoint = 0  # of the high watermark
        self.producers = _Producers()
        self.epochs = self._epochs([])

    def _epochs(self, entries: list[tuple[int, int]]) -> Epochs:
        epochs = Epochs(None, "", entries)  # type: ignore[arg-type]
        epochs.durable = True  # nothing is saved then until a flush
        return epochs

    # --- what a partition uses -------------------------------------------------------------

    def advance_high_watermark(self, offset: int) -> bool:
        offset = min(offset, self.end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def append(self, records: Buffer, leader_epoch: int, now_ms: int, **options: Any) -> Appended:
        base = self.end_offset
        for header, batch in iter_batches(records):
            placed = bytearray(batch)
            placed[:8] = self.end_offset.to_bytes(8, "big")
            placed[12:16] = leader_epoch.to_bytes(4, "big")
            self._add(
                Batch(
                    self.end_offset,
                    self.end_offset + header.last_offset_delta,
                    leader_epoch,
                    header.base_timestamp,
                    bytes(placed),
                )
            )
        return Appended(base, self.end_offset - 1)

    def append_as_follower(self, records: Buffer, now_ms: int) -> None:
        for header, batch in iter_batches(records):
            if header.base_offset < self.end_offset:
                raise OffsetOutOfRange
            self._add(
                Batch(
                    header.base_offset,
                    header.last_offset,
                    header.partition_leader_epoch,
                    header.base_timestamp,
                    bytes(batch),
                )
            )

    def _add(self, batch: Batch) -> None:
        if batch.epoch > self.epochs.latest:
            self.epochs.assign(batch.epoch, batch.base_offset)
        self.batches.append(batch)
        self.end_offset = batch.last_offset + 1

    def read(self, offset: int, max_bytes: int, end_offset: int, *, min_one_batch: bool = True) -> bytes:
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange
        found: list[bytes] = []
        size = 0
        for batch in self.batches[self._position(offset) :]:
            if batch.last_offset >= end_offset or (found and size + len(batch.bytes) > max_bytes):
                break
            found.append(batch.bytes)
            size += len(batch.bytes)
        return b"".join(found)

    def _position(self, offset: int) -> int:
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate_to(self, offset: int) -> None:
        if offset >= self.end_offset:
            self.epochs.truncate_to(self.end_offset)
            return
        if offset < self.start_offset:
            self.truncate_fully(offset)
            return
        del self.batches[self._position(offset) :]
        end_offset = self.batches[-1].last_offset + 1 if self.batches else self.start_offset
        self._shorten(end_offset)
        self.epochs.truncate_to(self.end_offset)

    def _shorten(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.high_watermark = min(self.high_watermark, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)

    def truncate_fully(self, start_offset: int) -> None:
        self.batches.clear()
        self.epochs.clear()
        self.start_offset = self.end_offset = self.high_watermark = self.recovery_point = start_offset

    def delete_records(self, before_offset: int) -> None:
        assert before_offset <= self.high_watermark
        if before_offset > self.start_offset:
            self.start_offset = before_offset
            self.epochs.start_from(before_offset)
            del self.batches[: self._position(before_offset)]

    # --- what a crash does -----------------------------------------------------------------

    def crash(self, keep_from: int) -> None:
        """Lose everything from the batch at `keep_from` on, and what was only in memory."""
        while self.batches and self.batches[-1].last_offset >= keep_from:
            self.batches.pop()
        end_offset = self.batches[-1].last_offset + 1 if self.batches else self.start_offset
        self._shorten(min(self.end_offset, end_offset))
        self.high_watermark = max(min(self.checkpoint, self.end_offset), self.start_offset)
        entries: list[tuple[int, int]] = []
        for batch in self.batches:
            if not entries or batch.epoch > entries[-1][0]:
                entries.append((batch.epoch, max(batch.base_offset, self.start_offset)))
        self.epochs = self._epochs(entries)

    def value_at(self, offset: int) -> bytes | None:
        """The batch with that offset."""
        position = self._position(offset)
        if position == len(self.batches) or self.batches[position].base_offset > offset:
            return None
        return self.batches[position].bytes
