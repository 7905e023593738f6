"""As much HTTP/2 as it takes to answer every gRPC call with one status.

A connection that is only closed is opened again at once, without a pause, for as long as the call may take,
and the program that made the call never hears why. So calls are answered, by hand: the library that knows how
is what is missing.
"""

from __future__ import annotations

import asyncio
from typing import Final

PREFACE_BYTES: Final = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
FRAME_BYTES_MAX: Final = 16 << 10  # what an HTTP/2 client keeps to unless it is told that it may send more
HEADERS, SETTINGS, PING = 1, 4, 6
ACK: Final = 0x1
END_STREAM_AND_HEADERS: Final = 0x5
STATUS_200: Final = b"\x88"  # an entry of HPACK's table
UNIMPLEMENTED: Final = b"12"


async def refuse_calls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reason: bytes) -> None:
    """Answers whatever is called, until the client goes or sends what it should not."""
    answer = (
        STATUS_200
        + _header(b"content-type", b"application/grpc")
        + _header(b"grpc-status", UNIMPLEMENTED)
        + _header(b"grpc-message", reason)
    )
    writer.write(_frame(SETTINGS, 0, 0, b""))
    try:
        await reader.readexactly(PREFACE_BYTES)
        while True:
            head = await reader.readexactly(9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            if length > FRAME_BYTES_MAX:
                return
            payload = await reader.readexactly(length)
            if kind in (SETTINGS, PING) and not flags & ACK:
                writer.write(_frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind == HEADERS:
                stream = int.from_bytes(head[5:], "big") & 0x7FFF_FFFF
                writer.write(_frame(HEADERS, END_STREAM_AND_HEADERS, stream, answer))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        return


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _header(name: bytes, value: bytes) -> bytes:
    """A header that is in no table, in HPACK's plainest form: texts shorter than 127 bytes, as they are."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value
