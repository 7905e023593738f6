"""The five codecs of a record batch, with a hard bound on what decompressing may yield.

A batch says nothing about its size once decompressed, and a kilobyte of zstd can hold 32 megabytes. So
`decompress` takes the most that it may return: sizes that a stream declares are compared with it before
anything is allocated, and output stops there however the stream goes on.

Past the bound the error is `MessageTooLarge`, since a client answers that one by splitting its batch, which
is what helps if it is honest; a stream that cannot be decompressed is `InvalidRecord`, which no client
retries. The batch's CRC has been checked by then, so the bytes are as the client made them.

Each library is imported when its codec is first met: a broker that only stores batches as they come loads
none of them.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.core.files import Buffer
from ottla.protocol.errors import InvalidRecord, MessageTooLarge, UnsupportedCompressionType

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""What `compression.type` calls each codec, by its id."""

DEFAULT_LEVELS: Final = {GZIP: -1, LZ4: 9, ZSTD: 3}

DEFAULT_LIMIT: Final = 128 * 1024 * 1024
"""The most that one batch may decompress to, a hundred times the default `max.message.bytes`."""

_GZIP_WBITS: Final = 31
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK: Final = 32 * 1024
# Snappy's densest element copies 64 bytes in 3, so a block that declares more than this is lying.
_SNAPPY_MAX_RATIO: Final = 22
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_INT32: Final = Struct(">i")


def decompress(codec: int, data: Buffer, limit: int = DEFAULT_LIMIT) -> Buffer:
    """The bytes that `data` was compressed from, at most `limit` of them.

    Raises MessageTooLarge past the limit, InvalidRecord for a broken or cut off stream and
    UnsupportedCompressionType for a codec that does not exist.
    """
    if codec == NONE:
        if len(data) > limit:
            raise _too_large(limit)
        return data
    if codec == GZIP:
        return _gunzip(data, limit)
    if codec == SNAPPY:
        return _unsnappy(data, limit)
    if codec == LZ4:
        return _unlz4(data, limit)
    if codec == ZSTD:
        return _unzstd(data, limit)
    raise UnsupportedCompressionType(f"there is no compression codec {codec}")


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """`data` as Kafka's own producer would write it with that codec, at Kafka's default level unless told."""
    if codec == NONE:
        return data
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    if codec == GZIP:
        return _gzip(data, level)
    if codec == SNAPPY:
        return _snappy(data)
    if codec == LZ4:
        return _lz4(data, level)
    if codec == ZSTD:
        return _zstd(data, level)
    raise UnsupportedCompressionType(f"there is no compression codec {codec}")


def _too_large(limit: int) -> MessageTooLarge:
    return MessageTooLarge(f"a batch may not decompress to more than {limit} bytes")


def _broken(codec: str, reason: object) -> InvalidRecord:
    return InvalidRecord(f"records cannot be decompressed as {codec}: {reason}")


def _gunzip(data: Buffer, limit: int) -> bytes:
    import zlib

    parts = []
    left = limit
    while True:
        member = zlib.decompressobj(wbits=_GZIP_WBITS)
        try:
            part = member.decompress(data, left + 1)
        except zlib.error as error:
            raise _broken("gzip", error) from None
        if len(part) > left:
            raise _too_large(limit)
        if not member.eof:
            raise _broken("gzip", "the stream is cut off")
        parts.append(part)
        left -= len(part)
        # A stream may consist of several members, one after another.
        data = member.unused_data
        if not data:
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _gzip(data: Buffer, level: int) -> bytes:
    import zlib

    stream = zlib.compressobj(level, wbits=_GZIP_WBITS)
    return stream.compress(data) + stream.flush()


def _unsnappy(data: Buffer, limit: int) -> Buffer:
    """Snappy in the framing of the xerial library, which Java clients use, or as one bare block."""
    import cramjam

    view = memoryview(data)
    blocks = _xerial_blocks(view) if bytes(view[:8]) == _XERIAL_MAGIC else [view]
    sizes = [_snappy_declared(block) for block in blocks]
    total = sum(sizes)
    if total > limit:
        raise _too_large(limit)
    output = bytearray(total)
    target = memoryview(output)
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        try:
            written = cramjam.snappy.decompress_raw_into(block, target[position : position + size])
        except cramjam.DecompressionError as error:
            raise _broken("snappy", error) from None
        if written != size:
            raise _broken("snappy", "a block is shorter than it declares")
        position += size
    return output


def _xerial_blocks(view: memoryview) -> list[memoryview]:
    blocks = []
    position = len(_XERIAL_HEADER)
    end = len(view)
    while position < end:
        # Streams written one after another each begin with the header.
        if bytes(view[position : position + 8]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if end - position < 4:
            raise _broken("snappy", "the stream is cut off")
        (length,) = _INT32.unpack_from(view, position)
        position += 4
        if not 0 < length <= end - position:
            raise _broken("snappy", f"a block of {length} bytes does not fit")
        blocks.append(view[position : position + length])
        position += length
    if position != end:
        raise _broken("snappy", "the stream is cut off")
    return blocks


def _snappy_declared(block: memoryview) -> int:
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if size > _SNAPPY_MAX_RATIO * len(block):
                raise _broken("snappy", f"{len(block)} bytes declare to hold {size}")
            return size
    raise _broken("snappy", "there is no length")


def _snappy(data: Buffer) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _unlz4(data: Buffer, limit: int) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    _refuse_linked_blocks(data)
    stream = LZ4FrameDecompressor()
    parts: list[bytes] = []
    left = limit
    # The library allocates all that it is allowed to return, so it is allowed little at first.
    step = 4 * len(data) + 4096
    while True:
        try:
            part = stream.decompress(data, max_length=min(step, left + 1))
        except (RuntimeError, ValueError, EOFError) as error:
            raise _broken("lz4", error) from None
        left -= len(part)
        if left < 0:
            raise _too_large(limit)
        parts.append(part)
        if stream.eof:
            # Several frames may follow one another; the library stops after each.
            data = stream.unused_data or b""
            if not data:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            _refuse_linked_blocks(data)
            stream = LZ4FrameDecompressor()
        elif stream.needs_input:
            raise _broken("lz4", "the stream is cut off")
        else:
            data = b""
            step *= 4


def _refuse_linked_blocks(frame: Buffer) -> None:
    """Kafka takes independent blocks only, and its consumers in Java can read no others."""
    if len(frame) > 4 and bytes(frame[:4]) == _LZ4_MAGIC and not frame[4] & 0x20:
        raise _broken("lz4", "its blocks depend on one another")


def _lz4(data: Buffer, level: int) -> bytes:
    import lz4.frame

    # Kafka uses the fast compressor at its default level and the high compressor at any other. Blocks are
    # independent and of 64 KiB since that is all its old readers take.
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level == DEFAULT_LEVELS[LZ4] else max(level, 3),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


# A decompressor costs more to make than a small batch to decompress, and serves one thread at a time. One
# that has met a frame with a large window holds that much memory, up to 128 MiB, and is not kept.
_idle_decompressors: list[ZstdDecompressor] = []
_MOST_IDLE_DECOMPRESSORS: Final = 8
_LARGEST_IDLE_DECOMPRESSOR: Final = 8 * 1024 * 1024


def _unzstd(data: Buffer, limit: int) -> Buffer:
    import zstandard

    try:
        declared = zstandard.frame_content_size(data)
    except zstandard.ZstdError as error:
        raise _broken("zstd", error) from None
    if declared > limit:
        raise _too_large(limit)
    guess = min(declared if declared >= 0 else 4 * len(data) + 4096, limit)
    try:
        decompressor = _idle_decompressors.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor()
    try:
        # It refuses input that goes on after the first frame, and output past the guess.
        return decompressor.decompress(data, max_output_size=guess, allow_extra_data=False)
    except zstandard.ZstdError:
        return _unzstd_by_trial(data, max(guess, 1), limit)
    finally:
        if (
            len(_idle_decompressors) < _MOST_IDLE_DECOMPRESSORS
            and decompressor.memory_size() <= _LARGEST_IDLE_DECOMPRESSOR
        ):
            _idle_decompressors.append(decompressor)


def _unzstd_by_trial(data: Buffer, size: int, limit: int) -> Buffer:
    """Decompresses any number of frames into ever larger buffers, until one is large enough."""
    import cramjam

    while True:
        output = bytearray(size)
        try:
            written = cramjam.zstd.decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise _broken("zstd", error) from None
            if size >= limit:
                raise _too_large(limit) from None
            size = min(4 * size, limit)
        else:
            return memoryview(output)[:written]


def _zstd(data: Buffer, level: int) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=level).compress(data)


def repair_lz4_header(data: Buffer) -> Buffer:
    """An LZ4 frame with the header checksum that the format asks for.

    Clients before 0.10 computed it over the wrong bytes, and message format 0 has kept it so.
    """
    return _with_header_checksum(data, skip=4)


def break_lz4_header(data: Buffer) -> Buffer:
    """An LZ4 frame as readers of message format 0 expect it, its header checksum taken over the magic too."""
    return _with_header_checksum(data, skip=0)


def _with_header_checksum(data: Buffer, skip: int) -> Buffer:
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        raise _broken("lz4", "there is no frame header")
    flags = data[4]
    if flags & 0x01:
        raise _broken("lz4", "it needs a dictionary")
    end = 14 if flags & 0x08 else 6
    if len(data) <= end:
        raise _broken("lz4", "the frame header is cut off")
    frame = bytearray(data)
    frame[end] = (_xxh32(frame[skip:end]) >> 8) & 0xFF
    return frame


def _xxh32(data: bytearray) -> int:
    """xxHash32 with seed 0 of less than 16 bytes, which is all that a frame header has."""
    assert len(data) < 16
    mask = 0xFFFFFFFF
    prime1, prime2, prime3, prime4, prime5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    value = prime5 + len(data)
    words = len(data) // 4 * 4
    for position in range(0, words, 4):
        value = (value + int.from_bytes(data[position : position + 4], "little") * prime3) & mask
        value = ((value << 17) | (value >> 15)) * prime4
    for byte in data[words:]:
        value = (value + byte * prime5) & mask
        value = ((value << 11) | (value >> 21)) * prime1
    value &= mask
    value = ((value ^ (value >> 15)) * prime2) & mask
    value = ((value ^ (value >> 13)) * prime3) & mask
    return value ^ (value >> 16)
