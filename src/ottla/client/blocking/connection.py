"""One connection to one broker, on a plain socket: requests out, responses back in the same order.

Nothing here retries; a request that cannot be answered raises, and a connection that broke stays broken. A
frame is received into a buffer of its own, of the right size, and never copied: the records of a response are
views into it. Without TLS the kernel does the waiting, for whole frames and with a bound (SO_RCVTIMEO).
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from collections import deque
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

from ottla.client.addresses import Address
from ottla.client.authentication import authentication
from ottla.client.errors import (
    AuthenticationFailed,
    ClientError,
    Disconnected,
    NoAnswer,
    NotKafka,
    Unreachable,
    reason,
)
from ottla.client.exchange import MAX_RESPONSE_BYTES, NEWEST_API_VERSIONS, Asked, Exchange, read_answer
from ottla.client.security import PLAINTEXT, Security
from ottla.core.files import Buffer
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.wire import MalformedFrame

Response = TypeVar("Response")

CONNECT_SECONDS: Final = 10.0

_TIMEVAL: Final = struct.Struct("@ll")
_SIZE: Final = struct.Struct(">i").unpack_from
_SEND_BUFFERS: Final = 64
"""Pieces handed to the kernel at once, well below the 1024 that Linux takes."""


class BlockingConnection:
    """`BlockingConnection.open(host, port)`, then `connection.ask(request, XResponse)`."""

    def __init__(self, sock: socket.socket, address: Address, client_id: str, security: Security) -> None:
        self.address = address
        self.timeout = 30.0
        self.error: ClientError | None = None
        self._socket = sock
        self._security = security
        self._exchange = Exchange(str(address), client_id)
        self._asked: deque[Asked] = deque()
        self._bound = 0.0
        self._session_ends: float | None = None

    @classmethod
    def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str = "ottla",
        security: Security = PLAINTEXT,
        timeout: float = 30.0,
    ) -> Self:
        """A connection that is authenticated and on which the versions have been agreed."""
        address = Address(host, port)
        sock = _connect(address, security, min(timeout, CONNECT_SECONDS))
        self = cls(sock, address, client_id, security)
        try:
            self.timeout = min(timeout, CONNECT_SECONDS)
            self._agree_on_versions()
            if security.uses_sasl:
                self._authenticate()
        except NoAnswer:
            self.close()
            raise Unreachable(f"{address} does not answer") from None
        except Disconnected as error:
            raise Unreachable(
                f"{error}, before it was used: does it want another security.protocol?"
            ) from None
        except BaseException:
            self.close()
            raise
        self.timeout = timeout
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return self.error is None

    @property
    def waiting(self) -> int:
        """Requests whose response has not been received."""
        return len(self._asked)

    @property
    def features(self) -> dict[str, int]:
        """The features that the cluster has settled on, such as `transaction.version`."""
        return self._exchange.features

    @property
    def session_is_ending(self) -> bool:
        """Whether the next request authenticates again first, which it can when nothing is waited for."""
        return self._session_ends is not None and time.monotonic() >= self._session_ends

    def is_idle(self) -> bool:
        """Whether this connection can be used again: it is open, nothing is waited for, and the broker has
        not closed it meanwhile."""
        if self.error is not None or self._asked:
            return False
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return False
        readable = select.poll()
        readable.register(self._socket, select.POLLIN)
        return not readable.poll(0)

    def close(self) -> None:
        self._fail(Disconnected(f"the connection to {self.address} was closed"))

    def version_of(self, request: Any, at_most: int | None = None) -> int:
        """The newest version of a request that both sides know, or `UnsupportedRequest`."""
        return self._exchange.version_of(request, at_most)

    def ask(
        self,
        request: Any,
        response: type[Response],
        *,
        timeout: float | None = None,
        at_most: int | None = None,
    ) -> Response:
        """Send a request and wait for its response, which must be of the class given."""
        assert not self._asked, f"{self.address} still owes the answer to {self._asked[0].name}"
        self.send(request, at_most=at_most)
        return self.receive(response, timeout=timeout)

    def send(self, request: Any, *, at_most: int | None = None, version: int | None = None) -> None:
        """Send a request, the response to which is received later, after those of earlier ones."""
        if version is None:
            version = self.version_of(type(request), at_most)
        if self.error is not None:
            raise _again(self.error)
        if self.session_is_ending and not self._asked:
            self._authenticate()
        self._tell(request, version)

    def receive(self, response: type[Response], *, timeout: float | None = None) -> Response:
        """The response to the oldest request that has none yet."""
        if self.error is not None:
            raise _again(self.error)
        within = self.timeout if timeout is None else timeout
        asked = self._asked[0]
        try:
            frame = self._receive_frame(within)
            answer = read_answer(asked, frame)
        except (TimeoutError, BlockingIOError):
            # Later answers would come in behind this one, which may never come.
            raise self._fail(
                NoAnswer(f"{self.address} did not answer {asked.name} within {within:g} s")
            ) from None
        except MalformedFrame as error:
            raise self._fail(NotKafka(f"{self.address} sent something that is not Kafka: {error}")) from None
        except OSError as error:
            raise self._fail(Disconnected(f"{self.address} closed the connection{_because(error)}")) from None
        except BaseException:
            # Interrupted in the middle of a frame: what comes next would be misread.
            self.close()
            raise
        self._asked.popleft()
        return cast(Response, answer)

    # --- the beginning of a connection ---------------------------------------------------

    def _agree_on_versions(self) -> None:
        exchange = self._exchange
        self.send(exchange.hello(), version=NEWEST_API_VERSIONS)
        response = self.receive(ApiVersionsResponse)
        older = exchange.hello_again_in(response)
        if older is not None:
            self.send(exchange.hello(), version=older)
            response = self.receive(ApiVersionsResponse)
        exchange.agree(response)

    def _authenticate(self) -> None:
        self._session_ends = None
        conversation = authentication(self._security, str(self.address))
        request, response = next(conversation)
        try:
            while True:
                request, response = conversation.send(self.ask(request, response))
        except StopIteration as done:
            if done.value is not None:
                self._session_ends = time.monotonic() + done.value
        except AuthenticationFailed as error:
            raise self._fail(error) from None

    # --- bytes ---------------------------------------------------------------------------

    def _tell(self, request: Any, version: int) -> None:
        asked, frame = self._exchange.ask(request, version)
        try:
            self._send_frame(frame)
        except (TimeoutError, BlockingIOError):
            raise self._fail(NoAnswer(f"{self.address} takes no more requests")) from None
        except OSError as error:
            raise self._fail(Disconnected(f"{self.address} closed the connection{_because(error)}")) from None
        except BaseException:
            self.close()
            raise
        self._asked.append(asked)

    def _send_frame(self, frame: list[Buffer]) -> None:
        if isinstance(self._socket, ssl.SSLSocket):
            self._socket.settimeout(self.timeout)
            for piece in frame:
                self._socket.sendall(piece)
            return
        self._wait_at_most(self.timeout)
        views = deque(memoryview(piece) for piece in frame)
        while views:
            pieces = [views[i] for i in range(min(len(views), _SEND_BUFFERS))]
            sent = self._socket.sendmsg(pieces)
            while views and sent >= len(views[0]):
                sent -= len(views.popleft())
            if sent:
                views[0] = views[0][sent:]

    def _receive_frame(self, within: float) -> Buffer:
        (size,) = _SIZE(self._receive_exactly(4, within))
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise MalformedFrame(f"a response of {size} bytes")
        return self._receive_exactly(size, within)

    def _receive_exactly(self, size: int, within: float) -> Buffer:
        if isinstance(self._socket, ssl.SSLSocket):
            return _receive_tls(self._socket, size, time.monotonic() + within)
        self._wait_at_most(within)
        # The kernel waits for all of it and fills memory that nobody had to clear before.
        data = self._socket.recv(size, socket.MSG_WAITALL)
        if len(data) == size:
            return data
        # A signal came in between, or the end of the connection.
        received = bytearray(data)
        while data and len(received) < size:
            data = self._socket.recv(size - len(received), socket.MSG_WAITALL)
            received += data
        if not data:
            raise ConnectionResetError
        return received

    def _wait_at_most(self, seconds: float) -> None:
        """Bound what the kernel waits for, which is kept until another bound is wanted."""
        if seconds != self._bound:
            self._bound = seconds
            bound = _TIMEVAL.pack(*divmod(max(1, round(seconds * 1_000_000)), 1_000_000))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)

    def _fail(self, error: ClientError) -> ClientError:
        """Closes the connection for this reason, and answers it; the first one counts."""
        if self.error is None:
            self.error = error
            self._asked.clear()
            with contextlib.suppress(OSError):
                self._socket.close()
        return error


def _connect(address: Address, security: Security, timeout: float) -> socket.socket:
    context = security.ssl_context()
    try:
        plain = socket.create_connection(address, timeout)
    except TimeoutError:
        raise Unreachable(f"{address} does not answer") from None
    except OSError as error:
        raise Unreachable(f"cannot connect to {address}: {reason(error)}") from None
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            plain.settimeout(None)
            return plain
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise AuthenticationFailed(f"the certificate of {address} is not trusted: {reason(error)}") from None
    except TimeoutError:
        plain.close()
        raise Unreachable(f"{address} does not answer: is it a TLS listener?") from None
    except (ssl.SSLError, ConnectionError) as error:
        plain.close()
        raise Unreachable(f"{address} does not speak TLS: {reason(error)}") from None
    except BaseException:
        plain.close()
        raise


def _receive_tls(sock: ssl.SSLSocket, size: int, deadline: float) -> bytearray:
    received = bytearray(size)
    view, have = memoryview(received), 0
    while have < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
        got = sock.recv_into(view[have:])
        if not got:
            raise ConnectionResetError
        have += got
    return received


def _again(error: ClientError) -> ClientError:
    return type(error)(*error.args)


def _because(error: OSError) -> str:
    return f": {reason(error)}" if error.args else ""
