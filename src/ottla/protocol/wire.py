"""What every reader and writer shares: the exceptions, and varints."""

from __future__ import annotations

from ottla.core.files import Buffer


class MalformedFrame(ValueError):
    """The peer sent bytes that are not a Kafka message. Its connection is closed."""


class UnwritableMessage(ValueError):
    """A message holds something that the version it is written in has no place for."""


def uvarint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and the position after it."""
    value = shift = 0
    while shift < 35:
        if pos >= end:
            raise MalformedFrame("varint runs past the end")
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7
    raise MalformedFrame("varint is longer than five bytes")


def rest_of_uvarint(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """The value of an unsigned varint whose first byte, with its high bit set, is already read.

    It may run past the end of the frame: compiled readers find that out by their final position.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[pos]
        pos += 1
        if byte < 0x80:
            return value | byte << shift, pos
        value |= (byte & 0x7F) << shift
    raise MalformedFrame("varint is longer than five bytes")


def put_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def varint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """A zigzag varint of at most five bytes, and the position after it."""
    value, pos = uvarint(buf, pos, end)
    return value >> 1 ^ -(value & 1), pos


def put_varint(out: bytearray, value: int) -> None:
    """A zigzag varint, of 32 bits or of 64: Python's integers make one rule serve both."""
    put_uvarint(out, value << 1 if value >= 0 else (-value << 1) - 1)
