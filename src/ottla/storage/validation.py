"""Whether a batch that a client sent may be appended, and what has to change in it first.

The rules and their order are those of Kafka's LogValidator. A batch is refused as a whole; errors that
concern single records say which. The work per record is one call into the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from ottla.protocol import batch as batches
from ottla.protocol import compression, kernel
from ottla.protocol.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from ottla.protocol.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, KafkaError, MessageTooLarge
from ottla.protocol.kernel import COMPRESSED, TRUNCATED, check_batch

if TYPE_CHECKING:
    from ottla.config.topic import TopicSettings

# A batch that decompresses to more than this is refused: a few kilobytes on the wire can hold gigabytes.
DECOMPRESSED_BYTES: Final = compression.DEFAULT_LIMIT


class Rules:
    """What the settings of a topic ask of a batch, ready for comparison."""

    __slots__ = (
        "codec",
        "keys_required",
        "level",
        "log_append_time",
        "max_message_bytes",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
    )

    def __init__(self, settings: TopicSettings) -> None:
        self.max_message_bytes = settings.max_message_bytes
        self.keys_required = "compact" in settings.cleanup_policy
        self.log_append_time = settings.message_timestamp_type == "LogAppendTime"
        self.timestamp_before_max_ms = settings.message_timestamp_before_max_ms
        self.timestamp_after_max_ms = settings.message_timestamp_after_max_ms
        # None to store what the producer sent.
        self.codec: int | None = None
        if settings.compression_type == "uncompressed":
            self.codec = compression.NONE
        elif settings.compression_type != "producer":
            self.codec = compression.NAMES.index(settings.compression_type)
        self.level = {
            compression.GZIP: settings.compression_gzip_level,
            compression.LZ4: settings.compression_lz4_level,
            compression.ZSTD: settings.compression_zstd_level,
        }


# A batch that can be written to, its size, then of its header: attributes, last offset delta, max timestamp,
# producer id, producer epoch, base sequence. A plain tuple, as one is made for every produce request.
Checked = tuple[memoryview, int, int, int, int, int, int, int]


def check_client_batch(records: memoryview, rules: Rules, now_ms: int) -> Checked:
    """Checks everything about a batch but its producer. `records` is patched in place if it is writable.

    Raises InvalidRecord, InvalidTimestamp, CorruptMessage, MessageTooLarge; nothing has changed then.
    """
    # The checksum comes before the walk over the records, though the verdict of the header comes first: it
    # reads every byte in order, which the processor sees coming, and the walk then finds them in its cache.
    checksum = crc32c(records[21:])
    (
        fault,
        error_index,
        base_offset,
        batch_length,
        _,
        _,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
        earliest,
        latest,
        _,
        null_key,
        sequential,
    ) = check_batch(records)
    size = len(records)
    if fault >= TRUNCATED or batch_length + 12 != size:
        raise _not_one_batch(records, fault)
    if base_offset:
        raise InvalidRecord(f"the base offset of a batch must be 0, but it is {base_offset}")
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    if checksum != crc:
        raise CorruptMessage(f"the batch does not match its checksum {crc}")
    if last_offset_delta + 1 != count or count <= 0:
        raise InvalidRecord(
            f"a batch of {count} records cannot have the last offset delta {last_offset_delta}"
        )
    if attributes & CONTROL:
        raise InvalidRecord("clients are not allowed to write control records")
    if producer_id >= 0 and base_sequence < 0:
        raise InvalidRecord(f"sequence number {base_sequence} in a batch of producer {producer_id}")
    section: memoryview | None = None
    if fault == COMPRESSED:
        section = memoryview(
            compression.decompress(attributes & CODEC_MASK, records[HEADER_SIZE:], DECOMPRESSED_BYTES)
        )
        error_index, fault, earliest, latest, _, null_key, sequential = kernel.scan(
            section, count, base_timestamp
        )
    if fault:
        raise InvalidRecord(f"the records of the batch cannot be read: {kernel.describe(fault, error_index)}")

    append_time_claimed = attributes & LOG_APPEND_TIME
    if append_time_claimed:
        # The records of such a batch have the max timestamp of the header, whatever their own bytes say.
        earliest = latest = max_timestamp
    if rules.log_append_time:
        refused = append_time_claimed
    else:
        refused = (
            latest - now_ms > rules.timestamp_after_max_ms
            or (earliest != NO_TIMESTAMP and now_ms - earliest > rules.timestamp_before_max_ms)
            or (append_time_claimed and max_timestamp == NO_TIMESTAMP)
        )
    if refused or (null_key >= 0 and rules.keys_required):
        raise _refused(records[HEADER_SIZE:] if section is None else section, records, rules, now_ms)

    if not sequential or (rules.codec is not None and rules.codec != attributes & CODEC_MASK):
        records = memoryview(_rewritten(records, rules, sequential))
        size = len(records)
        attributes = batches.read_header(records).attributes
        if size > rules.max_message_bytes:
            raise _too_large(size, rules)
    elif records.readonly:
        records = memoryview(bytearray(records))
    if rules.log_append_time:
        batches.set_max_timestamp(records, now_ms, log_append_time=True)
        attributes |= LOG_APPEND_TIME
        max_timestamp = now_ms
    elif append_time_claimed or latest != max_timestamp:
        batches.set_max_timestamp(records, latest)
        attributes &= ~LOG_APPEND_TIME
        max_timestamp = latest
    return (
        records,
        size,
        attributes,
        last_offset_delta,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
    )


def _too_large(size: int, rules: Rules) -> MessageTooLarge:
    return MessageTooLarge(
        f"a batch of {size} bytes is larger than max.message.bytes, {rules.max_message_bytes}"
    )


def _not_one_batch(records: memoryview, fault: int) -> KafkaError:
    if fault == kernel.BAD_BATCH_LENGTH or (fault == kernel.BAD_MAGIC and records[16] > 2):
        return CorruptMessage(kernel.describe(fault))
    if fault == kernel.BAD_MAGIC:
        return InvalidRecord(
            f"a produce request must hold a batch of version 2, this one is of {records[16]}"
        )
    return InvalidRecord("a produce request must hold exactly one whole batch for a partition")


def _refused(section: memoryview, batch: memoryview, rules: Rules, now_ms: int) -> KafkaError:
    """The error for a batch with records that break a rule; Kafka lets the first of them choose the code."""
    header = batches.read_header(batch)
    errors = list(_record_errors(section, header, rules, now_ms))
    first = errors[0][0]
    if first is InvalidTimestamp:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        message = f"One or more records have been rejected due to {len(errors)} record errors in total"
    return first(message, [(index, text) for _, index, text in errors])


def _record_errors(
    section: memoryview, header: batches.BatchHeader, rules: Rules, now_ms: int
) -> Iterator[tuple[type[InvalidRecord | InvalidTimestamp], int, str]]:
    _, _, columns = kernel.columns(section, header.record_count)
    earliest, latest = now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms
    for index, (delta, key_length) in enumerate(zip(columns[3], columns[5], strict=True)):
        if header.is_log_append_time:
            timestamp = header.max_timestamp
        else:
            timestamp = kernel.wrapped(header.base_timestamp + delta)
        if rules.keys_required and key_length < 0:
            yield InvalidRecord, index, "Compacted topic cannot accept message without key"
        elif not rules.log_append_time and timestamp != NO_TIMESTAMP:
            if not earliest <= timestamp <= latest:
                text = (
                    f"Timestamp {timestamp} of message with offset {index} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]"
                )
                yield InvalidTimestamp, index, text
        elif header.is_log_append_time:
            yield InvalidTimestamp, index, "Producer should not set timestamp type to LogAppendTime"


def _rewritten(records: memoryview, rules: Rules, sequential: bool) -> bytearray:
    """The batch with the topic's codec and, as some clients count wrong, with offset deltas 0, 1, 2, ..."""
    header = batches.read_header(records)
    codec = header.codec if rules.codec is None else rules.codec
    level = rules.level.get(codec)
    if sequential:
        return batches.recompress(records, codec, level, DECOMPRESSED_BYTES)
    return batches.write_batch(
        batches.read_records(records, DECOMPRESSED_BYTES),
        codec=codec,
        level=level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        attributes=header.attributes & TRANSACTIONAL,
    )
