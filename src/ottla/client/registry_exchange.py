"""Asking a schema registry: one JSON value there, one back, over HTTP/1.1.

It blocks: who asks a registry has nothing else to do meanwhile. What reads goes over one connection that is
kept; what writes goes over a fresh one, so that a connection that was closed meanwhile does not leave open
whether something was done. A broker that is still recovering its logs (503) is waited for.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, unquote, urlencode, urlsplit

from ottla.client.addresses import Address
from ottla.client.errors import (
    AuthenticationFailed,
    BadAddress,
    ClientError,
    Disconnected,
    NoAnswer,
    Unreachable,
    reason,
)
from ottla.client.security import PLAINTEXT, Security

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
# A list of schemas comes in pages; one of them has no use for more.
ANSWER_MAX: Final = 64 << 20
CONNECT_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.2
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class NoRegistry(ClientError):
    """What listens there does not answer like a schema registry."""


class RegistryRefused(ClientError):
    """The registry's own error. Of its code the first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message.rstrip().rstrip('.')} ({code})")
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return int(str(self.code)[:3])


class Place(NamedTuple):
    """Where a registry is, and the name and password it wants."""

    scheme: str
    address: Address
    path: str = ""
    login: str | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.address}{self.path}"


def parse_url(url: str) -> Place:
    """From `https://name:password@host:port/path`. A password is never part of what is raised."""
    try:
        parts = urlsplit(url.strip())
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in DEFAULT_PORTS or not host or not url.isprintable():
        shown = url.rpartition("@")[2]
        raise BadAddress(
            f"{shown!r} is no address of a schema registry; it should look like http://host:port"
        )
    login = None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    address = Address(host, port or DEFAULT_PORTS[scheme])
    return Place(scheme, address, quote(parts.path.rstrip("/"), safe="/%"), login)


class Exchange:
    """A connection to the first of these places that can be reached."""

    def __init__(
        self, places: Sequence[Place], *, security: Security = PLAINTEXT, timeout: float = 30.0
    ) -> None:
        self._places = places
        self._security = security
        self._timeout = timeout
        self._place = places[0]
        self._connection: HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._place)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, method: str, *steps: str, value: Any = None, **query: Any) -> Any:
        """What is answered to this path; `query` may have flags. Raises ClientError."""
        if method != "GET":
            self.close()
        target = "/" + "/".join(quote(step, safe="", errors="surrogateescape") for step in steps)
        said = {name: str(each).lower() for name, each in query.items() if each is not False}
        target += f"?{urlencode(said)}" if said else ""
        body = None if value is None else json.dumps(value).encode()
        end = time.monotonic() + self._timeout
        while True:
            status, kind, answer = self._exchange(method, target, body, end)
            if status != 503 or time.monotonic() + PAUSE_SECONDS > end:
                return self._read(status, kind, answer)
            time.sleep(PAUSE_SECONDS)

    def _exchange(self, method: str, target: str, body: bytes | None, end: float) -> tuple[int, str, bytes]:
        try:
            connection = self._connected(end)
            headers = {"Accept": f"{MEDIA_TYPE}, application/json", "Content-Type": MEDIA_TYPE}
            if self._place.login is not None:
                headers["Authorization"] = "Basic " + base64.b64encode(self._place.login.encode()).decode()
            with suppress(BrokenPipeError, ConnectionResetError):
                # It may have been refused before all of it was sent: the answer says why.
                connection.request(method, self._place.path + target, body, headers)
            with connection.getresponse() as response:
                return response.status, response.getheader("Content-Type", ""), self._body(response)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._trouble(error) from None
        except BaseException:
            self.close()
            raise

    def _connected(self, end: float) -> HTTPConnection:
        left = max(0.1, end - time.monotonic())
        if self._connection is None or self._connection.sock is None:  # which an answer may have said
            self._connection = self._connect(min(left, CONNECT_SECONDS))
        self._connection.sock.settimeout(left)
        return self._connection

    def _connect(self, within: float) -> HTTPConnection:
        refused: ClientError | None = None
        for place in self._places:
            connection = self._connection_to(place, within)
            try:
                connection.connect()
            except (OSError, UnicodeError) as error:
                connection.close()
                refused = refused or _unreachable(place, error)
                continue
            self._place = place
            return connection
        assert refused is not None, "there is a place to ask"
        raise refused

    def _connection_to(self, place: Place, within: float) -> HTTPConnection:
        host, port = place.address
        if place.scheme == "http":
            return HTTPConnection(host, port, timeout=within)
        context = self._security.ssl_context() or Security(protocol="SSL").ssl_context()
        return HTTPSConnection(host, port, timeout=within, context=context)

    def _body(self, response: HTTPResponse) -> bytes:
        body = response.read(ANSWER_MAX + 1)
        if len(body) > ANSWER_MAX:
            raise NoRegistry(f"{self} answers more than {ANSWER_MAX:,} bytes")
        if response.length:
            raise IncompleteRead(body, response.length)
        return body

    def _trouble(self, error: OSError | HTTPException) -> ClientError:
        if isinstance(error, TimeoutError):
            return NoAnswer(f"{self} did not answer within {self._timeout:g} s")
        if isinstance(error, RemoteDisconnected):
            return Disconnected(
                f"{self} hung up without an answer: it does not speak {self._place.scheme} there"
            )
        if isinstance(error, IncompleteRead):
            return Disconnected(f"the connection to {self} was lost in the middle of an answer")
        if isinstance(error, OSError):
            return Disconnected(f"the connection to {self} was lost: {reason(error)}")
        return NoRegistry(f"{self} does not speak HTTP: {str(error)[:200] or type(error).__name__}")

    def _read(self, status: int, kind: str, body: bytes) -> Any:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if 200 <= status < 300 and answer is not None:
            return answer
        if isinstance(answer, dict) and isinstance(answer.get("error_code"), int):
            raise RegistryRefused(answer["error_code"], str(answer.get("message") or "refused"))
        if status >= 400 and kind.startswith("text/plain"):
            raise RegistryRefused(status, body[:500].decode("utf-8", "replace").strip() or "refused")
        raise NoRegistry(f"{self} does not answer like a schema registry, but with HTTP status {status}")


def _unreachable(place: Place, error: OSError | UnicodeError) -> ClientError:
    if isinstance(error, UnicodeError):
        return Unreachable(f"cannot connect to {place.address}: that is no name of a host")
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(f"the certificate of {place.address} is not trusted: {reason(error)}")
    if isinstance(error, TimeoutError):
        return Unreachable(f"{place.address} does not answer")
    if isinstance(error, ssl.SSLError):
        return Unreachable(f"{place.address} does not speak TLS: {reason(error)}")
    return Unreachable(f"cannot connect to {place.address}: {reason(error)}")
