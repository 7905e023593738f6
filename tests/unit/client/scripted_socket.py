"""A broker in a thread that says what a test tells it to, for clients without an event loop."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ottla.protocol.headers import RequestHeader, read_request_header
from tests.unit.client.scripted import API_VERSIONS, METADATA, answer, serving

# From the header of a request to the bytes to send, size included; None ends the connection.
Script = Callable[[RequestHeader], bytes | None]
FETCH = 1
HELLO = serving((API_VERSIONS, 0, 4), (METADATA, 0, 13), (FETCH, 4, 12))


@contextmanager
def server(script: Script, frames: list[bytes] | None = None) -> Iterator[int]:
    """A server of this, in threads; yields its port. `frames` gets what it was sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    sockets, threads = [listener], []

    def start(act: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=act))
        threads[-1].start()

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                sockets.append(client)
                start(partial(serve, client))

    def serve(client: socket.socket) -> None:
        with suppress(OSError):
            while size := client.recv(4, socket.MSG_WAITALL):
                (length,) = struct.unpack(">i", size)
                frame = client.recv(length, socket.MSG_WAITALL)
                if frames is not None:
                    frames.append(frame)
                said = script(read_request_header(frame, 0, length)[0])
                if said is None:
                    break
                client.sendall(said)
            client.shutdown(socket.SHUT_RDWR)

    start(accept)
    try:
        yield listener.getsockname()[1]
    finally:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for each in sockets:
            each.close()


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def greeting(then: Script) -> Script:
    """A script that agrees on versions first."""

    def script(header: RequestHeader) -> bytes | None:
        return framed(answer(header, HELLO)) if header.request_api_key == API_VERSIONS else then(header)

    return script
