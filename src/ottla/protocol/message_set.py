"""Message sets: record formats 0 and 1, of clients from before Kafka 0.11, and conversion from and to them.

A message set is a run of messages, each with an offset, a length and a CRC-32. There is no batch: a client
that compresses puts a whole message set into the value of one message, the wrapper. In format 0 the messages
inside have absolute offsets; in format 1 they count from the first, and the wrapper has the offset of the
last. Format 1 adds a timestamp to each message.

Logs hold version 2 only. A message set that is produced becomes one batch (`up_convert`); for a fetch in an
old version batches become a message set (`down_convert`). Both need every record to be read and written again
in Python, which is the price of an old client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from ottla.core.files import Buffer
from ottla.protocol.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    Record,
    iter_batches,
    read_records,
    write_batch,
)
from ottla.protocol.compression import (
    DEFAULT_LIMIT,
    LZ4,
    NONE,
    ZSTD,
    break_lz4_header,
    compress,
    decompress,
    repair_lz4_header,
)
from ottla.protocol.errors import CorruptMessage, InvalidRecord, UnsupportedCompressionType
from ottla.protocol.kernel import wrapped

_ENTRY: Final = Struct(">qi")
_START: Final = Struct(">IBb")
_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")

_MAGIC_AT: Final = 16
_CRC_SIZE: Final = 4
_SMALLEST_MESSAGE: Final = 14


class Message(NamedTuple):
    """One entry of a message set as it stands there, be it a wrapper or not."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK


def is_message_set(data: Buffer) -> bool:
    """Whether a client produced in an old format; the byte that tells is at the same place in all of them."""
    return len(data) > _MAGIC_AT and data[_MAGIC_AT] < 2


def read_message_set(data: Buffer, limit: int = DEFAULT_LIMIT) -> list[Record]:
    """Every message as a record, those in wrappers in place of the wrapper, with absolute offsets.

    Each CRC is checked, in wrappers too. A message of format 0 has timestamp -1; those in a wrapper that was
    stamped by a broker have its timestamp. `limit` bounds what all wrappers together may decompress to.

    Raises CorruptMessage where there is no message or its CRC is wrong, InvalidRecord where its contents are.
    """
    return _opened(_messages(memoryview(data)), limit)


def up_convert(
    data: Buffer, codec: int | None = None, level: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytearray:
    """One version 2 batch of all messages of a produced message set, ready to be validated and appended.

    Kept: order, keys, values and timestamps. The codec is the last one that a wrapper used unless another is
    asked for. Lost: the offsets, which a producer does not know anyway (they become 0, 1, 2, ...), the
    attributes of single messages, and with them the bit that says a timestamp is the time of an append.
    Messages of format 0 have timestamp -1. The batch has no producer id, no headers and no transaction, as
    the old formats know none.
    """
    messages = list(_messages(memoryview(data)))
    if not messages:
        raise InvalidRecord("a message set without messages")
    if codec is None:
        codec = NONE
        for message in messages:
            codec = message.codec or codec
    return write_batch(_opened(messages, limit), codec=codec, level=level)


def down_convert(batches: Buffer, magic: int, first_offset: int = 0, limit: int = DEFAULT_LIMIT) -> bytearray:
    """The records of whole version 2 batches as a message set of format `magic`, which is 0 or 1.

    Kept: offsets with their gaps, keys, values, the codec (a compressed batch becomes one wrapper) and, in
    format 1, timestamps and whether they are of the append. Lost: headers; control batches, which an old
    client would take for data; producer ids and transactions, so that an old client reads aborted records
    too; in format 0 also the timestamps. From uncompressed batches records before `first_offset` are left
    out, since some old clients count on getting none before the offset they asked for.

    Nothing may be left, for example of control batches alone; the result is then empty, and a client that
    fetches there has to be given a later batch to get on.

    Raises UnsupportedCompressionType for zstd, which the old formats do not have.
    """
    if magic not in (0, 1):
        raise ValueError(f"there is no message format {magic} to convert to")
    out = bytearray()
    for header, batch in iter_batches(batches):
        if header.is_control:
            continue
        if header.codec == ZSTD:
            raise UnsupportedCompressionType("zstd cannot be sent in message format 0 or 1")
        records = read_records(batch, limit)
        stamped = LOG_APPEND_TIME if header.is_log_append_time else 0
        if header.codec == NONE:
            for record in records:
                if record.offset >= first_offset:
                    _write(out, magic, record.offset, stamped, record.timestamp, record.key, record.value)
        elif records:
            _write_wrapper(out, magic, header.codec, stamped, records)
    return out


def write_message_set(
    records: list[Record], magic: int, codec: int = NONE, level: int | None = None
) -> bytearray:
    """A message set of these records, as an old producer would send it; headers are left out."""
    out = bytearray()
    if codec == NONE:
        for record in records:
            _write(out, magic, record.offset, 0, record.timestamp, record.key, record.value)
    elif records:
        _write_wrapper(out, magic, codec, 0, records, level)
    return out


def _messages(view: memoryview) -> Iterator[Message]:
    """Every entry of a message set, in place, its CRC checked."""
    position = 0
    while position < len(view):
        if len(view) - position < LOG_OVERHEAD + _SMALLEST_MESSAGE:
            raise CorruptMessage("a message is cut off")
        offset, size = _ENTRY.unpack_from(view, position)
        position += LOG_OVERHEAD
        if size < _SMALLEST_MESSAGE or size > len(view) - position:
            raise CorruptMessage(f"a message of {size} bytes is too small or cut off")
        yield _message(view[position : position + size], offset)
        position += size


def _message(body: memoryview, offset: int) -> Message:
    crc, magic, attributes = _START.unpack_from(body)
    if magic > 1:
        raise CorruptMessage(f"magic {magic} in a message set of format 0 or 1")
    if crc32(body[_CRC_SIZE:]) != crc:
        raise CorruptMessage("the CRC of a message is wrong")
    position = _START.size
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if len(body) < _SMALLEST_MESSAGE + 8:
            raise InvalidRecord("a message ends inside its timestamp")
        (timestamp,) = _INT64.unpack_from(body, position)
        position += 8
    key, position = _read_bytes(body, position)
    value, position = _read_bytes(body, position)
    if position != len(body):
        raise InvalidRecord("a message does not end where its length says")
    return Message(offset, magic, attributes, timestamp, key, value)


def _read_bytes(body: memoryview, position: int) -> tuple[memoryview | None, int]:
    if len(body) - position < 4:
        raise InvalidRecord("a message ends inside a length")
    (length,) = _INT32.unpack_from(body, position)
    position += 4
    if length < 0:
        return None, position
    if length > len(body) - position:
        raise InvalidRecord("a key or value of a message is out of bounds")
    return body[position : position + length], position + length


def _opened(messages: Iterable[Message], limit: int) -> list[Record]:
    """All records of these messages, those inside wrappers in their place."""
    records = []
    for message in messages:
        if message.codec == NONE:
            records.append(_record(message, message.offset, message.timestamp))
        else:
            inner, section_size = _unwrap(message, limit)
            records += inner
            limit -= section_size
    return records


def _unwrap(wrapper: Message, limit: int) -> tuple[list[Record], int]:
    """The messages in a wrapper, and the size of the message set that they were."""
    if wrapper.codec == ZSTD:
        raise InvalidRecord("message formats 0 and 1 have no zstd")
    if wrapper.value is None:
        raise InvalidRecord("a compressed message has no value")
    compressed: Buffer = wrapper.value
    if wrapper.codec == LZ4 and wrapper.magic == 0:
        compressed = repair_lz4_header(compressed)
    section = memoryview(decompress(wrapper.codec, compressed, limit))
    inner = list(_messages(section))
    if not inner:
        raise InvalidRecord("a compressed message holds no messages")
    base_offset = 0
    # Some versions of librdkafka produce wrappers of format 1 with offset 0.
    if wrapper.magic == 1 and wrapper.offset != 0:
        base_offset = wrapper.offset - inner[-1].offset
        if base_offset < 0:
            raise InvalidRecord(
                f"a compressed message has offset {wrapper.offset}, the last one inside {inner[-1].offset}"
            )
    records = []
    for message in inner:
        if message.magic != wrapper.magic:
            raise InvalidRecord(f"a message of format {message.magic} in one of format {wrapper.magic}")
        if message.codec != NONE:
            raise InvalidRecord("a compressed message inside a compressed message")
        stamped = wrapper.magic == 1 and wrapper.attributes & LOG_APPEND_TIME
        timestamp = wrapper.timestamp if stamped else message.timestamp
        records.append(_record(message, wrapped(base_offset + message.offset), timestamp))
    return records, len(section)


def _record(message: Message, offset: int, timestamp: int) -> Record:
    return Record(
        offset,
        timestamp,
        None if message.key is None else bytes(message.key),
        None if message.value is None else bytes(message.value),
    )


def _write(
    out: bytearray,
    magic: int,
    offset: int,
    attributes: int,
    timestamp: int,
    key: Buffer | None,
    value: Buffer | None,
) -> None:
    start = len(out)
    out += bytes(LOG_OVERHEAD + _CRC_SIZE)
    out.append(magic)
    # The bit for the time of the append came with timestamps, so format 0 has the codec only.
    out.append(attributes if magic else attributes & CODEC_MASK)
    if magic:
        out += _INT64.pack(timestamp)
    for part in (key, value):
        if part is None:
            out += b"\xff\xff\xff\xff"
        else:
            out += _INT32.pack(len(part))
            out += part
    _ENTRY.pack_into(out, start, offset, len(out) - start - LOG_OVERHEAD)
    covered = start + LOG_OVERHEAD + _CRC_SIZE
    _UINT32.pack_into(out, covered - _CRC_SIZE, crc32(memoryview(out)[covered:]))


def _write_wrapper(
    out: bytearray, magic: int, codec: int, stamped: int, records: list[Record], level: int | None = None
) -> None:
    base_offset = records[0].offset if magic else 0
    section = bytearray()
    for record in records:
        _write(
            section, magic, record.offset - base_offset, stamped, record.timestamp, record.key, record.value
        )
    compressed = compress(codec, section, level)
    if codec == LZ4 and magic == 0:
        compressed = break_lz4_header(compressed)
    timestamp = max(record.timestamp for record in records)
    _write(out, magic, records[-1].offset, codec | stamped, timestamp, None, compressed)
