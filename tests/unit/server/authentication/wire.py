"""A client that says exactly what a test tells it, over a plain socket or over TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import pytest

from ottla import Broker
from ottla.protocol import apis, codec, headers
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

ADA = b"\0ada\0secret"
BOB = b"\0bob\0hidden"
PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' user_ada="secret" user_bob="hidden" username="broker" password="unused";'
)
SMALL = {"ottla.durability": "kafka", "offsets.topic.num.partitions": "2"}
LOOPS = ("uvloop", "asyncio")


@contextmanager
def broker_on(loop: str, properties: Mapping[str, str]) -> Iterator[Broker]:
    """A broker in a thread, on the event loop of that name."""
    with pytest.MonkeyPatch.context() as patch:
        if loop == "asyncio":
            patch.setattr("ottla.server.broker.new_event_loop", asyncio.new_event_loop)
        with Broker(properties={**SMALL, **properties}) as broker:
            yield broker


def eventually(condition: Callable[[], bool]) -> None:
    """For what the broker does in its own thread after a client has seen the last of it."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def frame(request: Any, version: int, correlation_id: int = 1) -> bytes:
    head = headers.request_head(request.api_key, version, correlation_id, "test")
    return sized(head + codec.encode(request, version))


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class Client:
    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(address, timeout=20)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return bytes(data)

    def reply(self) -> bytes:
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def ask(self, request: Any, version: int) -> Any:
        self.send(frame(request, version))
        return self.answer(request, version)

    def answer(self, request: Any, version: int) -> Any:
        start = 4 + (headers.response_header_version(request.api_key, version) >= 1)
        return codec.decode(apis.api(request.api_key).response, version, self.reply(), start)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        response: SaslHandshakeResponse = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return response

    def authenticate(self, token: bytes = ADA, version: int = 2) -> SaslAuthenticateResponse:
        response: SaslAuthenticateResponse = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        return response

    def log_in(self, token: bytes = ADA) -> Self:
        assert self.handshake().error_code == 0
        assert self.authenticate(token).error_code == 0
        return self

    def is_served(self) -> bool:
        return bool(self.ask(MetadataRequest(topics=[]), 12).brokers)

    def is_closed(self) -> bool:
        """Whether the other side hangs up without another word."""
        try:
            return self.socket.recv(1) == b""
        except (ConnectionResetError, ssl.SSLError):
            return True
