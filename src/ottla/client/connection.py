"""One connection to one broker: requests out, responses back in the same order.

The first exchange is ApiVersions: every later request goes in the newest version that both sides know.
Nothing here retries; a request that cannot be answered raises, and a connection that broke stays broken.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

from ottla.client.errors import ClientError, Disconnected, NoAnswer, NotKafka, Unreachable, UnsupportedRequest
from ottla.protocol.apis import api
from ottla.protocol.codec import decode, encode_chunks
from ottla.protocol.headers import read_response_header, request_head, response_header_version
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.schema import Versions
from ottla.protocol.wire import MalformedFrame, UnwritableMessage

Response = TypeVar("Response")

VERSION: Final = "1"
"""What brokers are told that this client is: its own count, since it must not know the package it is in."""

MAX_IN_FLIGHT: Final = 16
"""Requests that wait for their answer on one connection; further ones wait to be sent, so that a slow broker
does not fill our memory with what we have to say."""

MAX_RESPONSE_BYTES: Final = 1 << 30
"""A size beyond this is not Kafka's: an HTTP server's first four letters, for one, are larger."""

_SIZE: Final = struct.Struct(">i").unpack_from
_ERROR_CODE: Final = struct.Struct(">h").unpack_from
_UNSUPPORTED_VERSION: Final = 35
_API_VERSIONS: Final = 18

NEWEST_API_VERSIONS: Final = 4


class _Asked(NamedTuple):
    """A request that waits for its response."""

    key: int
    version: int
    correlation_id: int
    answer: asyncio.Future[Any]


class Connection:
    """`await Connection.open(host, port)`, then `await connection.ask(request)`."""

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self.host, self.port, self.client_id = host, port, client_id
        self._wire = _Wire(f"{host}:{port}")
        self._correlation_id = 0
        self._room = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._served: dict[int, Versions] = {}

    @classmethod
    async def open(cls, host: str, port: int, *, client_id: str = "ottla", within: float = 10.0) -> Self:
        """A connection on which the versions have been agreed."""
        self = cls(host, port, client_id)
        try:
            async with asyncio.timeout(within):
                loop = asyncio.get_running_loop()
                await loop.create_connection(lambda: self._wire, host, port)
                await self._agree_on_versions(within)
        except (TimeoutError, NoAnswer):
            self.close()
            raise Unreachable(f"{self} does not answer") from None
        except OSError as error:
            self.close()
            raise Unreachable(f"cannot connect to {self}: {_reason(error)}") from None
        except BaseException:
            self.close()
            raise
        return self

    @property
    def is_open(self) -> bool:
        return self._wire.error is None

    def close(self) -> None:
        self._wire.close()

    def version_of(self, request: Any, at_most: int | None = None) -> int:
        """The newest version of a request that both sides know, or `UnsupportedRequest`."""
        ours, theirs = request.stable, self._served.get(request.api_key)
        name = api(request.api_key).name
        if theirs is None:
            raise UnsupportedRequest(f"the broker at {self} has no {name} request")
        last: int = min(ours.last, theirs.last)
        if at_most is not None:
            last = min(last, at_most)
        if last < max(ours.first, theirs.first):
            raise UnsupportedRequest(
                f"the broker at {self} knows {name} {theirs}, which is not {ours} as this client does"
            )
        return last

    async def ask(
        self,
        request: Any,
        response: type[Response],
        *,
        within: float = 30.0,
        version: int | None = None,
        at_most: int | None = None,
    ) -> Response:
        """Send a request and wait for its response, which must be of the class given."""
        if version is None:
            version = self.version_of(type(request), at_most)
        try:
            async with asyncio.timeout(within), self._room:
                return cast(Response, await self._send(request, version))
        except TimeoutError:
            # Later answers would come in behind this one, which may never come.
            self.close()
            name = api(request.api_key).name
            raise NoAnswer(f"{self} did not answer {name} within {within:g} s") from None

    async def tell(self, request: Any, *, within: float = 30.0) -> None:
        """Send a request that gets no response: Produce with acks=0."""
        version = self.version_of(type(request))
        try:
            async with asyncio.timeout(within):
                self._write(request, version)
                await self._wire.drained()
        except TimeoutError:
            self.close()
            raise NoAnswer(f"{self} takes no more requests") from None

    def _send(self, request: Any, version: int) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        correlation_id = self._write(request, version)
        self._wire.asked.append(_Asked(request.api_key, version, correlation_id, answer))
        return answer

    def _write(self, request: Any, version: int) -> int:
        if self._wire.error is not None:
            raise self._wire.error
        self._correlation_id = correlation_id = self._correlation_id + 1 & 0x7FFF_FFFF
        head = request_head(request.api_key, version, correlation_id, self.client_id)
        try:
            self._wire.write(encode_chunks(request, version, head))
        except UnwritableMessage as error:
            raise UnsupportedRequest(f"the broker at {self} is too old for this: {error}") from None
        return correlation_id

    async def _agree_on_versions(self, within: float) -> None:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version=VERSION)
        version = NEWEST_API_VERSIONS
        response = await self.ask(request, ApiVersionsResponse, within=within, version=version)
        if response.error_code == _UNSUPPORTED_VERSION:
            # An older broker: it has answered in version 0, with the versions that it does know.
            theirs = {each.api_key: each.max_version for each in response.api_keys}
            version = min(version, theirs.get(_API_VERSIONS, 0))
            response = await self.ask(request, ApiVersionsResponse, within=within, version=version)
        if response.error_code:
            raise NotKafka(f"{self} refuses to say what it serves (error {response.error_code})")
        self._served = {k.api_key: Versions(k.min_version, k.max_version) for k in response.api_keys}

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Wire(asyncio.Protocol):
    """Frames of one socket. Answers resolve the futures of those who asked, in the order they asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: deque[_Asked] = deque()
        self.error: ClientError | None = None
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.error is not None:  # closed while it was being made
            transport.close()

    def write(self, chunks: list[Any]) -> None:
        assert self._transport is not None, "the connection is not open"
        self._transport.writelines(chunks)

    def close(self) -> None:
        self._fail(Disconnected(f"the connection to {self.name} was closed"))

    async def drained(self) -> None:
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        why = f": {_reason(exc)}" if isinstance(exc, OSError) else ""
        self._fail(Disconnected(f"{self.name} closed the connection{why}"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            self._take_frames()
        except MalformedFrame as error:
            self._fail(NotKafka(f"{self.name} sent something that is not Kafka: {error}"))

    def _take_frames(self) -> None:
        received = self._received
        while len(received) >= 4:
            (size,) = _SIZE(received)
            if not 4 <= size <= MAX_RESPONSE_BYTES:
                raise MalformedFrame(f"a response of {size} bytes")
            if len(received) < 4 + size:
                return
            frame = bytes(memoryview(received)[4 : 4 + size])
            del received[: 4 + size]
            if not self.asked:
                raise MalformedFrame("a response that nobody asked for")
            asked = self.asked[0]
            answer = _read(asked, frame)
            self.asked.popleft()
            if not asked.answer.done():  # who asked may have been cancelled
                asked.answer.set_result(answer)

    def _fail(self, error: ClientError) -> None:
        if self.error is not None:
            return
        self.error = error
        if self._transport is not None:
            self._transport.close()
        self.resume_writing()
        while self.asked:
            answer = self.asked.popleft().answer
            if not answer.done():
                answer.set_exception(type(error)(*error.args))


def _read(asked: _Asked, frame: bytes) -> Any:
    key, version = asked.key, asked.version
    header, body = read_response_header(frame, 0, len(frame), response_header_version(key, version))
    if header.correlation_id != asked.correlation_id:
        raise MalformedFrame(f"correlation id {header.correlation_id} instead of {asked.correlation_id}")
    if (
        key == _API_VERSIONS
        and len(frame) >= body + 2
        and _ERROR_CODE(frame, body)[0] == _UNSUPPORTED_VERSION
    ):
        version = 0
    return decode(api(key).response, version, frame, body)


def _reason(error: OSError) -> str:
    """What happened, without asyncio's "Multiple exceptions" and addresses."""
    import os

    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
