"""One connection to one broker: requests out, responses back in the same order.

The first exchange is ApiVersions: every later request goes in the newest version that both sides know.
Nothing here retries; a request that cannot be answered raises, and a connection that broke stays broken.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

from ottla.client.addresses import Address
from ottla.client.authentication import authentication
from ottla.client.errors import (
    REFUSED,
    AuthenticationFailed,
    ClientError,
    Disconnected,
    NoAnswer,
    NotKafka,
    Refused,
    Unreachable,
    reason,
)
from ottla.client.exchange import MAX_RESPONSE_BYTES, NEWEST_API_VERSIONS, Asked, Exchange, read_answer
from ottla.client.security import PLAINTEXT, Security
from ottla.core.files import Buffer
from ottla.protocol.apis import api
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.wire import MalformedFrame

Response = TypeVar("Response")

MAX_IN_FLIGHT: Final = 16
"""Requests that wait for their answer on one connection; further ones wait to be sent, so that a slow broker
does not fill our memory with what we have to say."""

SCRATCH_BYTES: Final = 16 * 1024
"""What is received at once while no long frame is under way."""

FRAME_STEP_BYTES: Final = 1 << 20
"""Of a long frame so much is believed at first, and then four times of what has come: the first bytes of
something that is not Kafka may announce hundreds of megabytes."""

_SIZE: Final = struct.Struct(">i").unpack_from


class _Waiting(NamedTuple):
    asked: Asked
    answer: asyncio.Future[Any]


class Connection:
    """`await Connection.open(host, port)`, then `await connection.ask(request)`."""

    def __init__(self, host: str, port: int, client_id: str, security: Security = PLAINTEXT) -> None:
        self.host, self.port, self.client_id, self.security = host, port, client_id, security
        self._wire = _Wire(str(self))
        self._exchange = Exchange(str(self), client_id)
        self._room = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._session_ends: float | None = None

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str = "ottla",
        security: Security = PLAINTEXT,
        within: float = 10.0,
    ) -> Self:
        """A connection that is authenticated and on which the versions have been agreed."""
        self = cls(host, port, client_id, security)
        context = security.ssl_context()
        try:
            async with asyncio.timeout(within):
                loop = asyncio.get_running_loop()
                await loop.create_connection(lambda: self._wire, host, port, ssl=context)
                await self._agree_on_versions(within)
                if security.uses_sasl:
                    await self._authenticate(within)
        except (TimeoutError, NoAnswer):
            self.close()
            raise Unreachable(f"{self} does not answer") from None
        except Disconnected as error:
            raise Unreachable(
                f"{error}, before it was used: does it want another security.protocol?"
            ) from None
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise AuthenticationFailed(f"the certificate of {self} is not trusted: {reason(error)}") from None
        except OSError as error:
            self.close()
            if context is not None and _is_of_handshake(error):
                raise Unreachable(f"{self} does not speak TLS: {reason(error)}") from None
            why = reason(error)
            kind = Refused if why == REFUSED else Unreachable
            raise kind(f"cannot connect to {self}: {why}") from None
        except ValueError as error:  # nothing that names can be looked up for
            self.close()
            raise Unreachable(f"cannot connect to {self}: {error}") from None
        except BaseException:
            self.close()
            raise
        return self

    @property
    def is_open(self) -> bool:
        return self._wire.error is None

    @property
    def is_ending(self) -> bool:
        """Whether the session that was authenticated is almost over, so that another one should be begun."""
        ends = self._session_ends
        return ends is not None and asyncio.get_running_loop().time() >= ends

    def close(self) -> None:
        self._wire.close()

    def retire(self) -> None:
        """Close when the last answer that is waited for has come."""
        self._wire.retire()

    def version_of(self, request: Any, at_most: int | None = None) -> int:
        """The newest version of a request that both sides know, or `UnsupportedRequest`."""
        return self._exchange.version_of(request, at_most)

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
        asked = self._write(request, version)
        self._wire.waiting.append(_Waiting(asked, answer))
        return answer

    def _write(self, request: Any, version: int) -> Asked:
        if self._wire.error is not None:
            raise self._wire.error
        asked, frame = self._exchange.ask(request, version)
        self._wire.write(frame)
        return asked

    async def _agree_on_versions(self, within: float) -> None:
        exchange, version = self._exchange, NEWEST_API_VERSIONS
        response = await self.ask(exchange.hello(), ApiVersionsResponse, within=within, version=version)
        older = exchange.hello_again_in(response)
        if older is not None:
            response = await self.ask(exchange.hello(), ApiVersionsResponse, within=within, version=older)
        exchange.agree(response)

    async def _authenticate(self, within: float) -> None:
        conversation = authentication(self.security, str(self))
        request, response = next(conversation)
        while True:
            answer = await self.ask(request, response, within=within)
            try:
                request, response = conversation.send(answer)
            except StopIteration as done:
                lifetime: float | None = done.value
                break
        if lifetime is not None:
            self._session_ends = asyncio.get_running_loop().time() + lifetime

    def __str__(self) -> str:
        return str(Address(self.host, self.port))


class _Wire(asyncio.BufferedProtocol):
    """Frames of one socket. Answers resolve the futures of those who asked, in the order they asked.

    A frame that is there with what was received at once is copied; a longer one gets memory of its own, into
    which the rest of it is received and of which the records of the answer are views.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[_Waiting] = deque()
        self.error: ClientError | None = None
        self._scratch = bytearray(SCRATCH_BYTES)
        self._scratch_view = memoryview(self._scratch)
        self._have = 0  # bytes in the scratch, or in the frame if there is one
        self._frame: bytearray | None = None
        self._frame_view = memoryview(b"")
        self._need = 0  # the size of that frame
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None
        self._retired = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.error is not None:  # closed while it was being made
            transport.close()

    def write(self, chunks: list[Any]) -> None:
        assert self._transport is not None, "the connection is not open"
        self._transport.writelines(chunks)

    def close(self) -> None:
        self._fail(Disconnected(f"the connection to {self.name} was closed"))

    def retire(self) -> None:
        self._retired = True
        if not self.waiting:
            self.close()

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
        why = f": {reason(exc)}" if isinstance(exc, OSError) else ""
        self._fail(Disconnected(f"{self.name} closed the connection{why}"))

    def get_buffer(self, sizehint: int) -> memoryview:
        view = self._scratch_view if self._frame is None else self._frame_view
        return view[self._have :]

    def buffer_updated(self, nbytes: int) -> None:
        self._have += nbytes
        try:
            if self._frame is None:
                self._take_frames()
            elif self._have == self._need:
                frame, self._frame, self._frame_view, self._have = self._frame, None, memoryview(b""), 0
                self._answer(frame)
            elif self._have == len(self._frame):
                self._make_room(self._frame_view)
        except MalformedFrame as error:
            self._fail(NotKafka(f"{self.name} sent something that is not Kafka: {error}"))

    def _take_frames(self) -> None:
        start, end, scratch = 0, self._have, self._scratch_view
        while end - start >= 4:
            (size,) = _SIZE(scratch, start)
            if not 4 <= size <= MAX_RESPONSE_BYTES:
                raise MalformedFrame(f"a response of {size} bytes")
            start += 4
            if end - start < size:
                if 4 + size > SCRATCH_BYTES:
                    self._need, self._have = size, end - start
                    self._make_room(scratch[start:end])
                    return
                start -= 4
                break
            self._answer(bytes(scratch[start : start + size]))
            start += size
        self._have = end - start
        if start and self._have:
            scratch[: self._have] = bytes(scratch[start:end])

    def _make_room(self, received: memoryview) -> None:
        """Memory for a long frame, or for more of it, beginning with what has come."""
        self._frame = bytearray(min(self._need, max(FRAME_STEP_BYTES, 4 * len(received))))
        self._frame[: len(received)] = received
        self._frame_view = memoryview(self._frame)

    def _answer(self, frame: Buffer) -> None:
        if not self.waiting:
            raise MalformedFrame("a response that nobody asked for")
        asked, answer = self.waiting[0]
        response = read_answer(asked, frame)
        self.waiting.popleft()
        if not answer.done():  # who asked may have been cancelled
            answer.set_result(response)
        if self._retired and not self.waiting:
            self.close()

    def _fail(self, error: ClientError) -> None:
        if self.error is not None:
            return
        self.error = error
        if self._transport is not None:
            if self._transport.get_write_buffer_size():
                self._transport.close()
            else:
                # Nothing is left to say, and the goodbye of TLS takes longer than the loop may live.
                self._transport.abort()
        self.resume_writing()
        while self.waiting:
            answer = self.waiting.popleft().answer
            if not answer.done():
                answer.set_exception(type(error)(*error.args))


def _is_of_handshake(error: OSError) -> bool:
    """Whether a connection was made and ended before TLS was agreed on."""
    return isinstance(error, ssl.SSLError | ConnectionResetError | ConnectionAbortedError)
