"""The last offset of each key, for compaction, in Python: what `_offset_map.pyx` does.

Compaction goes over a partition twice: `add` notes the last offset of every key in the part that is not clean
yet, then `retain` picks from each batch the records that are still wanted. Both take a records section as the
other functions of the kernel do, and both twins give equal results for any bytes whatever.
"""

from __future__ import annotations

from ottla.core.files import Buffer
from ottla.protocol._kernel_py import (
    BAD_COUNT,
    NO_FAULT,
    TRAILING_BYTES,
    _Fault,
    _record,
    _view,
    wrapped,
)

MOST_SLOTS = 0x7FFF_FFFF

Retained = tuple[int, int, int, bytes | None, bool, int]


class OffsetMap:
    """The last offset of at most `slots` keys. It is for one thread at a time.

    The compiled one takes 30 bytes for each of the slots, whatever is in them and however long the keys are,
    as it remembers 128 bits of a keyed hash in place of a key. This one remembers the keys.
    """

    __slots__ = ("_offsets", "_slots")

    def __init__(self, slots: int) -> None:
        if not 0 <= slots <= MOST_SLOTS:
            raise ValueError(f"an offset map has 0 to {MOST_SLOTS} slots, not {slots}")
        self._slots = slots
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        """How many keys it knows."""
        return len(self._offsets)

    def add(
        self,
        section: Buffer,
        count: int,
        base_offset: int,
        start_offset: int,
        start: int = 0,
        end: int | None = None,
    ) -> tuple[int, int]:
        """Enters the keys of those of the `count` records in `start:end` that are not before `start_offset`.

        A record without a key is passed over; an empty key is a key. A key that is known keeps the greater
        offset. Returns (NO_FAULT, count), or (NO_FAULT, index) of the first record whose new key there is no
        slot for: it and those after it are not entered. A section that cannot be read gives (fault, index)
        as `scan` would have it, with what came before the fault entered.
        """
        view, stop = _view(section, start, end)
        offsets = self._offsets
        if count < 0:
            return BAD_COUNT, 0
        pos = start
        index = 0
        try:
            while index < count:
                offset_delta, _, key_start, key_length, *_, pos = _record(view, pos, stop)
                offset = wrapped(base_offset + offset_delta)
                if key_length >= 0 and offset >= start_offset:
                    key = bytes(view[key_start : key_start + key_length])
                    known = offsets.get(key)
                    if known is None and len(offsets) >= self._slots:
                        return NO_FAULT, index
                    if known is None or offset > known:
                        offsets[key] = offset
                index += 1
        except _Fault as found:
            return found.kind, index
        return (NO_FAULT if pos == stop else TRAILING_BYTES), index

    def retain(
        self,
        section: Buffer,
        count: int,
        base_offset: int,
        latest_offset: int,
        drop_deletes: bool,
        start: int = 0,
        end: int | None = None,
    ) -> Retained:
        """Picks the records of `start:end` that compaction keeps.

        As in Kafka, these are the records past `latest_offset`, up to which the map was filled, and of the
        others those with a key of which no later offset is known; but not those without a value if
        `drop_deletes`.

        Returns (fault, error_index, kept, records, has_deletes, max_timestamp_delta):

        - fault, error_index: as of `scan`; after a fault the rest is 0, None, False, 0.
        - kept: how many are kept.
        - records: their bytes as they were, one after the other; None if none was dropped.
        - has_deletes: whether one of them has no value.
        - max_timestamp_delta: the greatest timestamp delta among them, 0 if there is none.
        """
        view, stop = _view(section, start, end)
        if count < 0:
            return BAD_COUNT, 0, 0, None, False, 0
        picked: list[memoryview] = []
        greatest: int | None = None
        has_deletes = False
        pos = start
        index = 0
        try:
            while index < count:
                fields = _record(view, pos, stop)
                offset_delta, timestamp_delta, key_start, key_length, _, value_length, _, _, record_end = (
                    fields
                )
                offset = wrapped(base_offset + offset_delta)
                keep = offset > latest_offset
                if not keep and key_length >= 0 and (value_length >= 0 or not drop_deletes):
                    known = self._offsets.get(bytes(view[key_start : key_start + key_length]))
                    keep = known is None or offset >= known
                if keep:
                    picked.append(view[pos:record_end])
                    has_deletes = has_deletes or value_length < 0
                    if greatest is None or timestamp_delta > greatest:
                        greatest = timestamp_delta
                pos = record_end
                index += 1
        except _Fault as found:
            return found.kind, index, 0, None, False, 0
        if pos != stop:
            return TRAILING_BYTES, index, 0, None, False, 0
        records = None if len(picked) == count else b"".join(picked)
        return NO_FAULT, -1, len(picked), records, has_deletes, greatest or 0
