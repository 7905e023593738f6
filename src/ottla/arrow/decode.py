"""Record batches as they were fetched, or as they lie in a file, to Arrow columns.

A run of plain batches is one call of the column kernel. What needs a decision comes one batch at a time
through here: compressed batches, control batches, those of transactions under read_committed, and messages of
the formats before Kafka 0.11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from crc32c import crc32c

from ottla.arrow.aborted import AbortedTransactions
from ottla.arrow.arrays import TopicArrays
from ottla.arrow.readers import CHOSEN, Reader
from ottla.arrow.schema import topic_schema
from ottla.core.files import Buffer
from ottla.core.types import TopicPartition
from ottla.protocol import _columns_py as names
from ottla.protocol import kernel
from ottla.protocol.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    read_header,
    write_record,
)
from ottla.protocol.compression import decompress
from ottla.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
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
_MAGIC_AT: Final = 16
_MESSAGE_ATTRIBUTES_AT: Final = 17
_CRC_COVERS: Final = 21
_WRONG_CRC: Final = "the CRC does not fit the bytes"
_UNREADABLE: Final = (CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType)

# An uncompressed section, its record count, base offset, base timestamp and the type of its timestamps.
_Section = tuple[Buffer, int, int, int, int]


def decoder_name() -> str:
    """What reads the records: "compiled", "aiokafka" or "python"."""
    return CHOSEN.name


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
        reader: Reader = CHOSEN,
    ) -> None:
        self.partition = TopicPartition(topic, partition)
        self.schema = topic_schema(headers=headers, columns=columns)
        self.next_offset = 0
        self._read_committed = read_committed
        self._verify_crc = verify_crc
        self._walk = reader.walk
        wanted = sum(_WANTED.get(name, 0) for name in self.schema.names)
        self._columns = reader.columns(wanted, partial(pa.allocate_buffer, resizable=True))
        self._aborted = AbortedTransactions()
        self._arrays = TopicArrays(self.schema, topic, partition)

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
        the (producer id, first offset) of the fetch response that the bytes are of. The bytes must not
        change meanwhile.

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
        batch_bytes = min(batch_bytes, MOST_BYTES)
        columns = self._columns
        if columns.size:
            columns.take()  # what a call that was given up has left
        self._aborted.begin(aborted if self._read_committed else (), continues=start >= self.next_offset)
        self.next_offset = start
        view = memoryview(records).cast("B")
        is_empty = True
        for size, add in self._pieces(view, start, NO_END if end is None else end, batch_bytes):
            if columns.rows and columns.size + size > batch_bytes:
                is_empty = False
                yield self._arrays.batch(columns.take())
            add()
        if columns.rows or is_empty:
            yield self._arrays.batch(columns.take())

    def _pieces(
        self, view: memoryview, start: int, end: int, most_bytes: int
    ) -> Iterator[tuple[int, Callable[[], None]]]:
        """Runs of batches and single sections, in order: how many bytes of records, and what adds them."""
        position = 0
        while True:
            special = CODEC_MASK | CONTROL | (0 if self._aborted.is_over else TRANSACTIONAL)
            reason, stop, next_offset = self._walk(
                view, position, start, end, special, self._verify_crc, most_bytes
            )
            if stop > position:
                yield stop - position, partial(self._add_run, view, position, stop, start, end)
                self.next_offset = max(self.next_offset, next_offset)
            position = stop
            match reason:
                case names.ENDED:
                    return
                case names.BAD_HEADER:
                    raise self._corrupt(view, position, "there is no batch")
                case names.BAD_CRC:
                    raise self._corrupt(view, position, _WRONG_CRC)
                case names.ENOUGH:
                    continue
            after = position + LOG_OVERHEAD + int.from_bytes(view[position + 8 : position + 12], "big")
            if after > len(view):
                return
            entry = view[position:after]
            try:
                if reason == names.OLD_FORMAT:
                    section = self._open_message(entry)
                else:
                    section = self._open_batch(entry, start, end)
            except _UNREADABLE as error:
                raise self._corrupt(view, position, str(error)) from error
            if section is not None:
                yield len(section[0]), partial(self._add_section, view, position, section, start, end)
            position = after

    def _add_run(self, view: memoryview, position: int, stop: int, start: int, end: int) -> None:
        fault, at, index = self._columns.add(view, position, stop, start, end)
        if fault:
            raise self._corrupt(view, at, kernel.describe(fault, index))

    def _add_section(self, view: memoryview, position: int, section: _Section, start: int, end: int) -> None:
        fault, index = self._columns.add_section(*section, start, end)
        if fault:
            raise self._corrupt(view, position, kernel.describe(fault, index))

    def _open_batch(self, batch: memoryview, start: int, end: int) -> _Section | None:
        """The records of a batch that has to be looked at, or None if they are not wanted."""
        header = read_header(batch)
        is_wanted = header.last_offset >= start and header.base_offset < end and not header.is_control
        # Markers count wherever they are: the transaction may have begun before.
        is_marker = header.is_control and not self._aborted.is_over
        if self._verify_crc and (is_wanted or is_marker) and crc32c(batch[_CRC_COVERS:]) != header.crc:
            raise CorruptMessage(_WRONG_CRC)
        self.next_offset = max(self.next_offset, header.last_offset + 1)
        if not self._aborted.is_over and self._aborted.drops(header, batch):
            return None
        if not is_wanted:
            return None
        section = decompress(header.codec, batch[HEADER_SIZE:])
        if header.is_log_append_time:
            timestamp, kind = header.max_timestamp, names.LOG_APPEND_TIME
        else:
            timestamp, kind = header.base_timestamp, names.CREATE_TIME
        return section, header.record_count, header.base_offset, timestamp, kind

    def _open_message(self, entry: memoryview) -> _Section | None:
        """A message of an old format, or all that a wrapper holds, as a section of version 2."""
        if len(entry) <= _MESSAGE_ATTRIBUTES_AT:
            raise CorruptMessage("a message is shorter than its header")
        records = read_message_set(entry)
        if not records:
            return None
        first, last = records[0], records[-1]
        if not 0 <= first.offset <= last.offset < NO_END:
            raise CorruptMessage(f"it has messages from offset {first.offset} to {last.offset}")
        self.next_offset = max(self.next_offset, last.offset + 1)
        section = bytearray()
        for record in records:
            timestamp_delta = kernel.wrapped(record.timestamp - first.timestamp)
            write_record(section, record, record.offset - first.offset, timestamp_delta)
        if entry[_MAGIC_AT] == 0:
            kind = names.NO_TIMESTAMP_TYPE
        elif entry[_MESSAGE_ATTRIBUTES_AT] & LOG_APPEND_TIME:
            kind = names.LOG_APPEND_TIME
        else:
            kind = names.CREATE_TIME
        return section, len(records), first.offset, first.timestamp, kind

    def _corrupt(self, view: memoryview, position: int, reason: str) -> CorruptMessage:
        offset = int.from_bytes(view[position : position + 8], "big", signed=True)
        return CorruptMessage(f"{self.partition}, the batch at offset {offset}: {reason}")
