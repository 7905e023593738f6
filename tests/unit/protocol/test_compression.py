"""Codecs: what they write others read, what others write they read, and nothing grows past its bound."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys

import aiokafka.codec
import cramjam
import lz4.frame
import pytest
import zstandard

from ottla.protocol import compression
from ottla.protocol.compression import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    break_lz4_header,
    compress,
    decompress,
    repair_lz4_header,
)
from ottla.protocol.errors import InvalidRecord, MessageTooLarge, UnsupportedCompressionType

TEXT = b"".join(b'{"id": %d, "name": "user%d"}\n' % (i, i * 7919 % 1000) for i in range(8000))
CODECS = [GZIP, SNAPPY, LZ4, ZSTD]

ENCODE = {
    GZIP: aiokafka.codec.gzip_encode,
    SNAPPY: aiokafka.codec.snappy_encode,
    LZ4: aiokafka.codec.lz4_encode,
    ZSTD: aiokafka.codec.zstd_encode,
}
DECODE = {
    GZIP: aiokafka.codec.gzip_decode,
    SNAPPY: aiokafka.codec.snappy_decode,
    LZ4: aiokafka.codec.lz4_decode,
    ZSTD: aiokafka.codec.zstd_decode,
}


def run(program: str) -> None:
    """Runs a program that must succeed, in a process of its own that can import what this one can."""
    program = f"import sys; sys.path[:0] = {sys.path!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("codec", [NONE, *CODECS])
@pytest.mark.parametrize("data", [b"", b"x", TEXT[:100], TEXT], ids=["empty", "one", "short", "long"])
def test_data_comes_back(codec: int, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data), max(len(data), 1))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_views_of_a_larger_buffer_are_read_in_place(codec: int) -> None:
    compressed = compress(codec, memoryview(bytearray(b"ab" + TEXT))[2:])
    frame = bytearray(b"head") + compressed + b"tail"
    assert bytes(decompress(codec, memoryview(frame)[4:-4])) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_and_we_read_each_other(codec: int) -> None:
    assert DECODE[codec](bytes(compress(codec, TEXT))) == TEXT
    assert bytes(decompress(codec, ENCODE[codec](TEXT))) == TEXT


@pytest.mark.parametrize("level", [-1, 1, 9])
def test_gzip_takes_a_level(level: int) -> None:
    assert gzip.decompress(bytes(compress(GZIP, TEXT, level))) == TEXT


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_a_higher_level_compresses_better(codec: int) -> None:
    assert len(compress(codec, TEXT, 12)) < len(compress(codec, TEXT, 1))
    assert bytes(decompress(codec, compress(codec, TEXT, 12))) == TEXT


def test_lz4_is_written_in_independent_blocks_of_64_kib() -> None:
    compressed = bytes(compress(LZ4, TEXT))
    info = lz4.frame.get_frame_info(compressed)
    assert info["block_size"] == 64 * 1024
    assert not info["block_linked"]
    assert not info["content_checksum"]
    assert info["content_size"] == 0


def test_lz4_blocks_that_depend_on_one_another_are_refused_as_kafka_does() -> None:
    linked = lz4.frame.compress(TEXT * 100, block_linked=True)
    assert lz4.frame.get_frame_info(linked)["block_linked"]
    independent = bytes(compress(LZ4, TEXT))
    for data in (linked, independent + linked):
        with pytest.raises(InvalidRecord, match="depend on one another"):
            decompress(LZ4, data)


def test_lz4_at_its_default_level_is_fast_and_at_any_other_thorough() -> None:
    assert compress(LZ4, TEXT, 9) == compress(LZ4, TEXT)
    assert len(compress(LZ4, TEXT, 9)) > len(compress(LZ4, TEXT, 8))


def test_snappy_is_written_in_blocks_of_xerials_framing() -> None:
    compressed = bytes(compress(SNAPPY, TEXT))
    assert compressed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (size,) = struct.unpack_from(">i", compressed, 16)
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + size])) == TEXT[: 32 * 1024]


def test_bare_snappy_is_read_too() -> None:
    assert bytes(decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)))) == TEXT
    assert bytes(decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(b"")))) == b""


@pytest.mark.parametrize("codec", CODECS)
def test_streams_one_after_another_are_one(codec: int) -> None:
    twice = bytes(compress(codec, TEXT)) + bytes(compress(codec, b"end"))
    assert bytes(decompress(codec, twice, len(TEXT) + 3)) == TEXT + b"end"


def test_zstd_frames_need_not_state_their_size() -> None:
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert zstandard.frame_content_size(silent) == -1
    assert bytes(decompress(ZSTD, silent, len(TEXT))) == TEXT
    assert bytes(decompress(ZSTD, silent + silent, 2 * len(TEXT))) == TEXT + TEXT


BOMB = bytes(8 * 1024 * 1024)


def bombs() -> list[tuple[int, bytes]]:
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(BOMB)
    raw = bytes(cramjam.snappy.compress_raw(BOMB))
    member = bytes(compress(GZIP, BOMB[: len(BOMB) // 4]))
    frame = bytes(compress(LZ4, BOMB[: len(BOMB) // 4]))
    return [
        *((codec, bytes(compress(codec, BOMB))) for codec in CODECS),
        (ZSTD, silent),
        (ZSTD, bytes(compress(ZSTD, b"x")) + silent),
        (SNAPPY, raw),
        (GZIP, member * 4),
        (LZ4, frame * 4),
        (LZ4, lz4.frame.compress(BOMB, store_size=True, block_linked=False)),
    ]


@pytest.mark.parametrize(("codec", "bomb"), bombs())
def test_output_past_the_limit_is_refused(codec: int, bomb: bytes) -> None:
    for limit in (0, 1, 1000, len(BOMB) - 1):
        with pytest.raises(MessageTooLarge):
            decompress(codec, bomb, limit)
    assert len(decompress(codec, bomb, len(BOMB) + 1)) >= len(BOMB)


def test_uncompressed_data_is_bounded_as_well() -> None:
    assert decompress(NONE, b"four", 4) == b"four"
    with pytest.raises(MessageTooLarge):
        decompress(NONE, b"four", 3)


def test_a_bomb_takes_no_more_memory_than_its_bound() -> None:
    # A process of its own, since its greatest memory is what is asked for.
    program = """
import resource, sys, zlib
from ottla.protocol.compression import decompress
from ottla.protocol.errors import MessageTooLarge
import cramjam, lz4.frame, zstandard
zeros = bytes(1024 * 1024)
stream = zlib.compressobj(wbits=31)
gzip = b"".join([stream.compress(zeros) for _ in range(64)]) + stream.flush()
frame = lz4.frame.LZ4FrameCompressor(block_linked=False)
lz4s = b"".join([frame.begin(), *[frame.compress(zeros) for _ in range(64)], frame.flush()])
zstd = zstandard.ZstdCompressor().compressobj()
zstds = b"".join([*[zstd.compress(zeros) for _ in range(64)], zstd.flush()])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for codec, bomb in ((1, gzip), (3, lz4s), (4, zstds)):
    try:
        decompress(codec, bomb, 4 * 1024 * 1024)
    except MessageTooLarge:
        continue
    sys.exit(f"codec {codec} went past its limit")
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
sys.exit(0 if grown < 32 * 1024 else f"{grown} KiB for 4 MiB")
"""
    run(program)


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_that_is_cut_off_is_invalid(codec: int) -> None:
    compressed = bytes(compress(codec, TEXT))
    for end in (0, 1, 5, 10, len(compressed) // 2, len(compressed) - 1):
        with pytest.raises(InvalidRecord):
            decompress(codec, compressed[:end])


@pytest.mark.parametrize("codec", CODECS)
def test_noise_is_invalid(codec: int) -> None:
    for noise in (b"\x00" * 40, b"\xff" * 40, bytes(range(64))):
        with pytest.raises(InvalidRecord):
            decompress(codec, noise)
        with pytest.raises(InvalidRecord):
            decompress(codec, bytes(compress(codec, TEXT)) + noise)


def test_a_snappy_block_that_declares_the_impossible_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(InvalidRecord, match="declare"):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x07abc", 2**32)
    with pytest.raises(InvalidRecord, match="length"):
        decompress(SNAPPY, b"\xff\xff\xff\xff\xff\x07abc", 2**40)


def test_xerial_blocks_must_fit_their_stream() -> None:
    header = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    for rest in (b"\x00\x00", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x00\x00\x00\x05abcd", header[:10]):
        with pytest.raises(InvalidRecord):
            decompress(SNAPPY, header + rest)


def test_a_checksum_inside_a_stream_is_checked() -> None:
    broken = bytearray(compress(GZIP, TEXT))
    broken[-6] ^= 1
    with pytest.raises(InvalidRecord):
        decompress(GZIP, broken)
    frame = bytearray(compress(LZ4, TEXT))
    frame[6] ^= 1
    with pytest.raises(InvalidRecord):
        decompress(LZ4, frame)


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_other_codecs_do_not_exist(codec: int) -> None:
    for call in (compress, decompress):
        with pytest.raises(UnsupportedCompressionType):
            call(codec, b"")


@pytest.mark.parametrize("stated", [False, True], ids=["silent", "stated"])
def test_the_lz4_header_checksum_of_old_clients_can_be_read_and_written(stated: bool) -> None:
    frame = lz4.frame.compress(TEXT, store_size=stated)
    broken = bytes(break_lz4_header(frame))
    assert broken != frame
    with pytest.raises(InvalidRecord):
        decompress(LZ4, broken)
    assert bytes(repair_lz4_header(broken)) == frame
    assert bytes(repair_lz4_header(frame)) == frame


def test_the_lz4_header_checksum_of_old_clients_covers_the_magic() -> None:
    broken = bytes(break_lz4_header(compress(LZ4, TEXT)))
    # A frame ends with the checksum of its content, by the same hash.
    oracle = lz4.frame.compress(broken[:6], content_checksum=True)[-4:]
    assert broken[6] == oracle[1]


@pytest.mark.parametrize(
    "data", [b"", b"\x04\x22\x4d", b"\x04\x22\x4d\x18\x68\x40", b"\x04\x22\x4d\x18\x61\x40\x00", b"1234567"]
)
def test_what_has_no_lz4_header_cannot_be_repaired(data: bytes) -> None:
    with pytest.raises(InvalidRecord):
        repair_lz4_header(data)


def test_a_zstd_window_does_not_stay_in_memory() -> None:
    large = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=large).compressobj()
    frame = stream.compress(TEXT) + stream.flush()
    assert zstandard.get_frame_parameters(frame).window_size == 128 * 1024 * 1024
    for _ in range(3):
        assert bytes(decompress(ZSTD, frame)) == TEXT
        assert bytes(decompress(ZSTD, compress(ZSTD, TEXT))) == TEXT
    assert sum(idle.memory_size() for idle in compression._idle_decompressors) < 64 * 1024 * 1024


def test_importing_loads_no_codec() -> None:
    program = (
        "import sys, ottla.protocol.batch;"
        "sys.exit(','.join({'cramjam', 'lz4', 'zstandard'} & set(sys.modules)) or 0)"
    )
    run(program)
