"""Record batches as they were fetched, or as they lie in a file, to Arrow columns.

A run of plain batches is one call of the column kernel. What needs a decision comes one batch at a time
through here: compressed batches, control batches, those of transactions under read_committed, and messages of
the formats before Kafka 0.11.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from ottla.arrow.schema import HEADERS_TYPE, TYPES, topic_schema
from ottla.core.files import Buffer
from ottla.core.types import TopicPartition
from ottla.protocol import _columns_py as names
from ottla.protocol import columns as column_kernel
from ottla.protocol import kernel
from ottla.protocol._columns_py import BinaryColumn, HeaderColumn, Taken
from ottla.protocol.batch import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
    uncompressed_records,
    write_record,
)
from ottla.protocol.control import ControlRecordType, read_control_records
from ottla.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaError,
    MessageTooLarge,
    UnsupportedCompressionType,
)
from ottla.protocol.message_set import read_message_set

NO_END: Final = (1 << 63) - 1
MOST_BYTES: Final = names.MOST_BYTES
"""Bytes of records, uncompressed, that fit into one Arrow batch whose offsets are int32."""

BATCH_BYTES: Final = 64 * 1024 * 1024
"""Bytes of records in one Arrow batch of `batches`; one Kafka batch may exceed it."""

_WANTED: Final = {
    "key": names.KEY,
    "value": names.VALUE,
    "offset": names.OFFSET,
    "timestamp": names.TIMESTAMP,
    "timestampType": names.TIMESTAMP_TYPE,
    "headers": names.HEADERS,
}
_UNREADABLE: Final = (CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType)


def decoder_name() -> str:
    """What reads the records: "compiled", "aiokafka" or "python"."""
    return "compiled" if column_kernel.compiled else "python"


class Decoder:
    """Decodes the records of one partition. `columns` are those to fill; all of a topic's by default."""

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        columns: Sequence[str] | None = None,
        headers: bool = False,
        read_committed: bool = False,
        verify_crc: bool = True,
    ) -> None:
        self.partition = TopicPartition(topic, partition)
        self.schema = topic_schema(headers=headers, columns=columns)
        self.next_offset = 0
        self._read_committed = read_committed
        self._verify_crc = verify_crc
        wanted = sum(_WANTED.get(name, 0) for name in self.schema.names)
        self._columns = column_kernel.Columns(wanted, partial(pa.allocate_buffer, resizable=True))
        # Attributes of a batch that make it more than a run of records.
        self._special = CODEC_MASK | CONTROL | (TRANSACTIONAL if read_committed else 0)
        self._transactions = _AbortedTransactions()
        self._repeated: dict[str, Any] = {}

    def decode(
        self,
        records: Buffer,
        *,
        start: int,
        end: int | None = None,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> pa.RecordBatch:
        """The records with start <= offset < end of all whole batches in `records`.

        `records` begins with a batch; one that is cut off at its end is left for the next time, and
        `next_offset` is the offset after the last whole batch, or `start` if that is greater. `aborted` are
        the (producer id, first offset) of the fetch response that the bytes are of.

        Raises CorruptMessage, and MessageTooLarge for more than fits into one Arrow batch, which only
        compressed records can be: see `batches`.
        """
        found = list(self.batches(records, start=start, end=end, aborted=aborted, batch_bytes=MOST_BYTES))
        if len(found) > 1:
            raise MessageTooLarge(
                f"{self.partition}: the records from offset {start} on decompress to more than 2 GiB"
            )
        return found[0]

    def batches(
        self,
        records: Buffer,
        *,
        start: int,
        end: int | None = None,
        aborted: Sequence[tuple[int, int]] = (),
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """As `decode`, in several Arrow batches where there is much; at least one, which may be empty.

        However well the records were compressed, no more than about `batch_bytes` are in memory at once.
        """
        end = NO_END if end is None else end
        view = memoryview(records).cast("B")
        self._columns.take()  # of a call that came to nothing
        self._transactions.begin(aborted, start, continues=start >= self.next_offset)
        self.next_offset = max(start, 0)
        position = 0
        yielded = False
        while True:
            reason, stop, next_offset = column_kernel.walk(
                view, position, start, end, self._special, self._verify_crc, batch_bytes
            )
            if self._columns.rows and self._columns.size + stop - position > batch_bytes:
                yield self._take()
                yielded = True
            if stop > position:
                fault, at, index = self._columns.add(view, position, stop, start, end)
                if fault:
                    raise self._corrupt(view, at, kernel.describe(fault, index))
                self.next_offset = max(self.next_offset, next_offset)
            position = stop
            if reason == names.ENDED:
                break
            if reason == names.BAD_HEADER:
                raise self._corrupt(view, position, "there is no batch")
            if reason == names.BAD_CRC:
                raise self._corrupt(view, position, "the CRC does not fit the bytes")
            if reason == names.ENOUGH:
                continue
            after = self._extent(view, position)
            if after > len(view):
                break
            section = None
            try:
                if reason == names.OLD_FORMAT:
                    section = self._messages(view[position:after], start, end)
                else:
                    section = self._special_batch(view[position:after], start, end)
            except _UNREADABLE as error:
                raise self._corrupt(view, position, str(error)) from error
            if section is not None:
                if self._columns.rows and self._columns.size + len(section[0]) > batch_bytes:
                    yield self._take()
                    yielded = True
                fault, index = self._columns.add_section(*section, start, end)
                if fault:
                    raise self._corrupt(view, position, kernel.describe(fault, index))
            position = after
        if self._columns.rows or not yielded:
            yield self._take()

    @staticmethod
    def _extent(view: memoryview, position: int) -> int:
        return position + LOG_OVERHEAD + int.from_bytes(view[position + 8 : position + 12], "big")

    def _special_batch(self, batch: memoryview, start: int, end: int) -> _Section | None:
        """The records section of a batch that has to be looked at, or None if nothing of it is wanted."""
        header = read_header(batch)
        self.next_offset = max(self.next_offset, header.last_offset + 1)
        is_outside = header.last_offset < start or header.base_offset >= end
        if is_outside and not (header.is_control and self._read_committed):
            return None
        if self._verify_crc:
            reason, *_ = column_kernel.walk(batch, 0, 0, NO_END, 0, True)
            if reason == names.BAD_CRC:
                raise CorruptMessage("the CRC does not fit the bytes")
        if self._read_committed and self._transactions.is_aborted(header, batch):
            return None
        if is_outside or header.is_control:
            return None
        section = uncompressed_records(batch, header)
        stamped = header.is_log_append_time
        timestamp = header.max_timestamp if stamped else header.base_timestamp
        kind = names.LOG_APPEND_TIME if stamped else names.CREATE_TIME
        return section, header.record_count, header.base_offset, timestamp, kind

    def _messages(self, entry: memoryview, start: int, end: int) -> _Section | None:
        """A message of an old format, with all that a wrapper holds, as a section of version 2."""
        if len(entry) < 18:
            raise CorruptMessage("a message is cut off")
        magic, attributes = entry[16], entry[17]
        records = read_message_set(entry)
        if not records:
            return None
        self.next_offset = max(self.next_offset, records[-1].offset + 1)
        base = records[0].offset
        section = bytearray()
        for record in records:
            delta = kernel.wrapped(record.timestamp - records[0].timestamp)
            write_record(section, record, record.offset - base, delta)
        kind = names.NO_TIMESTAMP_TYPE
        if magic == 1:
            kind = names.LOG_APPEND_TIME if attributes & LOG_APPEND_TIME else names.CREATE_TIME
        return section, len(records), base, records[0].timestamp, kind

    def _corrupt(self, view: memoryview, position: int, reason: str) -> KafkaError:
        offset = int.from_bytes(view[position : position + 8], "big", signed=True)
        return CorruptMessage(f"{self.partition}, the batch at offset {offset}: {reason}")

    def _take(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._arrays(self._columns.take()), schema=self.schema)

    def _arrays(self, taken: Taken) -> list[pa.Array]:
        made = {
            "key": lambda: _binary(taken.key, taken.rows),
            "value": lambda: _binary(taken.value, taken.rows),
            "offset": lambda: _fixed("offset", taken.offset, taken.rows),
            "timestamp": lambda: _fixed("timestamp", taken.timestamp, taken.rows),
            "timestampType": lambda: _fixed("timestampType", taken.timestamp_type, taken.rows),
            "headers": lambda: _headers(taken.headers, taken.rows),
            "topic": lambda: self._repeat("topic", self.partition.topic, taken.rows),
            "partition": lambda: self._repeat("partition", self.partition.partition, taken.rows),
        }
        return [made[name]() for name in self.schema.names]

    def _repeat(self, name: str, value: str | int, rows: int) -> pa.Array:
        """The same value in every row. The longest such array is kept: shorter ones are parts of it."""
        kept = self._repeated.get(name)
        if kept is None or len(kept) < rows:
            kept = self._repeated[name] = pa.repeat(pa.scalar(value, TYPES[name]), rows)
        return kept if len(kept) == rows else kept.slice(0, rows)


_Section = tuple[Buffer, int, int, int, int]


class _AbortedTransactions:
    """Which batches belong to aborted transactions, found out as Kafka's consumer does it.

    A fetch response lists every aborted transaction that it may hold records of, by producer and first
    offset. From that offset on the producer's transactional batches are dropped, until its abort marker.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int]] = []
        self._producers: set[int] = set()
        self._ended: dict[int, int] = {}

    def begin(self, aborted: Sequence[tuple[int, int]], start: int, *, continues: bool) -> None:
        # One response may be decoded in pieces, each with the response's whole list. A transaction whose
        # marker was in an earlier piece is over and must not begin again.
        if not continues:
            self._ended.clear()
        self._waiting = [
            (first_offset, producer_id)
            for producer_id, first_offset in aborted
            if first_offset > self._ended.get(producer_id, -1)
        ]
        heapq.heapify(self._waiting)
        self._producers.clear()

    def is_aborted(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether the records of this batch were aborted. To be asked for every batch, in order."""
        if header.producer_id < 0:
            return False
        while self._waiting and self._waiting[0][0] <= header.last_offset:
            self._producers.add(heapq.heappop(self._waiting)[1])
        if header.is_control:
            if _is_abort_marker(batch):
                self._producers.discard(header.producer_id)
                self._ended[header.producer_id] = header.last_offset
            return False
        return header.is_transactional and header.producer_id in self._producers


def _is_abort_marker(batch: Buffer) -> bool:
    # Compaction leaves a control batch without records when it has removed a marker.
    records = read_control_records(batch)
    return bool(records) and records[0].type is ControlRecordType.ABORT


def _fixed(name: str, values: Buffer | None, rows: int) -> pa.Array:
    assert values is not None
    return pa.Array.from_buffers(TYPES[name], rows, [None, pa.py_buffer(values)])


def _binary(column: BinaryColumn | None, rows: int) -> pa.Array:
    assert column is not None
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, column.null_count)


def _headers(column: HeaderColumn | None, rows: int) -> pa.Array:
    assert column is not None
    keys = _header_keys(column)
    values = _binary(column.values, column.count)
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS_TYPE.value_type))
    offsets = pa.py_buffer(column.offsets)
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, offsets], 0, children=[pairs])


def _header_keys(column: HeaderColumn) -> pa.Array:
    buffers = [None, pa.py_buffer(column.key_offsets), pa.py_buffer(column.key_data)]
    if column.is_ascii:
        return pa.Array.from_buffers(pa.string(), column.count, buffers, 0)
    found = pa.Array.from_buffers(pa.binary(), column.count, buffers, 0)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        # Kafka never looks whether a key is UTF-8. Java's consumer puts U+FFFD where it is not.
        return pa.array([key.decode("utf-8", "replace") for key in found.to_pylist()], pa.string())
