"""Messages to bytes and back. A reader or writer is compiled when a version of a message is first met.

Reading one version of one message is one Python function without any dispatch; its text stays on it
(`reader(ProduceRequest, 9).__source__`, or `make codec API=produce VERSION=9`). `read_source` and
`write_source` are where it comes from.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from ottla.core.files import Buffer
from ottla.protocol.read_source import reader_source
from ottla.protocol.wire import MalformedFrame, UnwritableMessage
from ottla.protocol.write_source import writer_source

T = TypeVar("T")
Reader = Callable[[Buffer, int, int], tuple[Any, int]]
Writer = Callable[[Any, bytearray], bytearray]
ChunkWriter = Callable[[Any, bytearray, list[Buffer]], bytearray]

_FRAME_SIZE = struct.Struct(">i")
_UNWRITABLE = (struct.error, TypeError, AttributeError, UnicodeEncodeError)


@cache
def reader(cls: Any, version: int) -> Reader:
    """A function of `(buf, pos, end)` to the message and the position after it.

    It raises nothing but `MalformedFrame`, and believes nothing past `end`, which must not be past the end of
    `buf`. Strings, bytes and ids are copied; records are views of `buf`.
    """
    if version not in cls.versions:
        raise MalformedFrame(f"{cls.__name__} has no version {version}")
    return cast(Reader, reader_source(cls, version).build(f"read {cls.__name__} v{version}"))


@cache
def writer(cls: Any, version: int) -> Writer:
    """A function of `(message, out)` that appends the message's bytes to `out`, and answers it."""
    return cast(Writer, _writer(cls, version, chunked=False))


@cache
def chunk_writer(cls: Any, version: int) -> ChunkWriter:
    """A function of `(message, out, chunks)` that copies no large records.

    Where such records come, `out` is appended to `chunks`, then they are, and writing goes on in a new
    buffer. It answers the last buffer, which is not in `chunks` yet.
    """
    return cast(ChunkWriter, _writer(cls, version, chunked=True))


def _writer(cls: Any, version: int, chunked: bool) -> Any:
    if version not in cls.versions:
        raise UnwritableMessage(f"{cls.__name__} has no version {version}")
    return writer_source(cls, version, chunked).build(f"write {cls.__name__} v{version}")


def decode(cls: type[T], version: int, buf: Buffer, pos: int = 0, end: int | None = None) -> T:
    """The message that starts at `pos`. Bytes behind it are left alone: some clients send surplus ones.

    Every way of being wrong is a `MalformedFrame`.
    """
    if end is None:
        end = len(buf)
    elif end > len(buf):
        raise MalformedFrame(f"{cls.__name__} v{version}: only {len(buf)} of {end} bytes are there")
    return cast(T, reader(cast(Any, cls), version)(buf, pos, end)[0])


def encode(value: Any, version: int) -> bytes:
    """The message's bytes, or `UnwritableMessage` when this version cannot carry what it holds."""
    cls: Any = type(value)
    try:
        return bytes(writer(cls, version)(value, bytearray()))
    except _UNWRITABLE as error:
        raise UnwritableMessage(f"{cls.__name__} v{version}: {error}") from error


def encode_chunks(value: Any, version: int, head: bytes) -> list[Buffer]:
    """A whole frame, ready for `writelines`: its size, `head` (a header), the message.

    Large records are items of their own and are not copied, so they must stay as they are until written.
    """
    cls: Any = type(value)
    chunks: list[Buffer] = []
    first = out = bytearray(b"\0\0\0\0" + head)
    try:
        out = chunk_writer(cls, version)(value, out, chunks)
    except _UNWRITABLE as error:
        raise UnwritableMessage(f"{cls.__name__} v{version}: {error}") from error
    if not chunks:
        _FRAME_SIZE.pack_into(out, 0, len(out) - 4)
        return [out]
    if out:
        chunks.append(out)
    _FRAME_SIZE.pack_into(first, 0, sum(map(len, chunks)) - 4)
    return chunks
