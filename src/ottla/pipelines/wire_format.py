"""The Confluent wire format: how a record says which schema of a registry it was written with.

    byte 0        magic, always 0
    bytes 1 to 4  the schema's id, big-endian
    Protobuf      then the message's place in its file: a count and that many indexes as zigzag varints;
                  the single byte 0 stands for [0], the first message
    rest          the payload

Pure: bytes in, numbers and bytes out.
"""

from __future__ import annotations

from typing import Final

HEADER_BYTES: Final = 5
# A message nested deeper than this in its .proto file is no message but noise.
MAX_INDEXES: Final = 64


class NotWireFormat(ValueError):
    """The bytes are not in the wire format. The message says why."""


def schema_id(record: bytes) -> int:
    """The id of the schema this record was written with."""
    if len(record) < HEADER_BYTES:
        raise NotWireFormat(f"{len(record)} bytes are too few for a schema id")
    if record[0] != 0:
        raise NotWireFormat(f"starts with byte {record[0]} instead of the magic byte 0")
    return int.from_bytes(record[1:HEADER_BYTES], "big")


def message_indexes(record: bytes, position: int = HEADER_BYTES) -> tuple[tuple[int, ...], int]:
    """Which message of its .proto file a Protobuf record is, and where its payload starts."""
    count, position = _zigzag(record, position)
    if count == 0:
        return (0,), position
    if not 0 < count <= MAX_INDEXES:
        raise NotWireFormat(f"{count} message indexes cannot be right")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(record, position)
        if index < 0:
            raise NotWireFormat(f"{index} is no index of a message")
        indexes.append(index)
    return tuple(indexes), position


def _zigzag(record: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(record) or shift > 28:
            raise NotWireFormat("the message indexes are cut short")
        byte = record[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
