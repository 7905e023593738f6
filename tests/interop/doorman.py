"""A door in front of a broker that wants TLS, or a name and a password, before it lets frames through.

The broker behind it is a real one that advertises the door's address. SASL is answered by the door itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import struct
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ottla.protocol.codec import decode, encode
from ottla.protocol.headers import read_request_header, response_head
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

CERTIFICATES = Path(__file__).parents[1] / "unit/client/certificates"
HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36
SALT, ITERATIONS = b"salt", 4096


def server_context(*, client_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    if client_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CERTIFICATES / "authority.pem")
    return context


class Doorman:
    """`with Doorman(...) as door`, then `door.lead_to(address)`; `door.port` is where it listens."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        users: dict[str, str] | None = None,
        mechanism: str = "PLAIN",
        lifetime_ms: int = 0,
        server_password: str | None = None,
    ) -> None:
        self.tls, self.users, self.mechanism, self.lifetime_ms = tls, users, mechanism, lifetime_ms
        self.server_password = server_password  # what a false broker thinks the password is
        self.visits = 0
        self.authenticated = 0
        self.unauthenticated: list[int] = []
        self.target = ("", 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]

    def lead_to(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.target = (host, int(port))

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                self.visits += 1
                thread = threading.Thread(target=self._serve, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError):
            if self.tls is not None:
                client = self.tls.wrap_socket(client, server_side=True)
                self._sockets.append(client)
            broker = socket.create_connection(self.target)
            self._sockets.append(broker)
            _Visit(self, client, broker).run()
            for each in (client, broker):
                each.close()


class _Visit:
    """One connection, a request at a time."""

    def __init__(self, door: Doorman, client: socket.socket, broker: socket.socket) -> None:
        self.door, self.client, self.broker = door, client, broker
        self.is_known = door.users is None
        self.scram: _ScramServer | None = None

    def run(self) -> None:
        while (frame := _receive(self.client)) is not None:
            header, body = read_request_header(frame, 0, len(frame))
            key, version = header.request_api_key, header.request_api_version
            head = response_head(key, version, header.correlation_id)
            if key == HANDSHAKE and self.door.users is not None:
                answer = head + encode(
                    self._handshake(decode(SaslHandshakeRequest, version, frame, body)), version
                )
            elif key == AUTHENTICATE and self.door.users is not None:
                request = decode(SaslAuthenticateRequest, version, frame, body)
                answer = head + encode(self._authenticate(request.auth_bytes), version)
            elif not self.is_known and key != API_VERSIONS:
                self.door.unauthenticated.append(key)
                return
            else:
                self.broker.sendall(struct.pack(">i", len(frame)) + frame)
                passed = _receive(self.broker)
                if passed is None:
                    return
                answer = passed
                if key == API_VERSIONS and self.door.users is not None:
                    answer = head + _with_sasl(passed, len(head), version)
            self.client.sendall(struct.pack(">i", len(answer)) + answer)

    def _handshake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        wanted = request.mechanism == self.door.mechanism
        return SaslHandshakeResponse(error_code=0 if wanted else 33, mechanisms=[self.door.mechanism])

    def _authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        users = self.door.users or {}
        if self.door.mechanism == "PLAIN":
            _, name, password = token.decode().split("\0")
            return self._verdict(users.get(name) == password)
        if self.scram is None:
            self.scram = _ScramServer(self.door.mechanism, users, self.door.server_password)
            return SaslAuthenticateResponse(auth_bytes=self.scram.challenge(token))
        scram, self.scram = self.scram, None
        return self._verdict(scram.accepts(token), scram.signature)

    def _verdict(self, accepted: bool, token: bytes = b"") -> SaslAuthenticateResponse:
        if not accepted:
            return SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password")
        self.is_known = True
        self.door.authenticated += 1
        return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=self.door.lifetime_ms)


class _ScramServer:
    def __init__(self, mechanism: str, users: dict[str, str], pretended: str | None) -> None:
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.users, self.pretended = users, pretended
        self.signature = b""

    def challenge(self, token: bytes) -> bytes:
        self.first = token.decode().removeprefix("n,,")
        fields = dict(part.split("=", 1) for part in self.first.split(","))
        password = self.users.get(fields["n"], "") if self.pretended is None else self.pretended
        self.salted = hashlib.pbkdf2_hmac(self.hash, password.encode(), SALT, ITERATIONS)
        salt = base64.b64encode(SALT).decode()
        self.said = f"r={fields['r']}more,s={salt},i={ITERATIONS}"
        return self.said.encode()

    def accepts(self, token: bytes) -> bool:
        bare, _, proof = token.decode().rpartition(",p=")
        signed = ",".join((self.first, self.said, bare)).encode()
        stored = hashlib.new(self.hash, self._hmac(self.salted, b"Client Key")).digest()
        wanted = self._hmac(stored, signed)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), wanted, strict=True))
        signature = self._hmac(self._hmac(self.salted, b"Server Key"), signed)
        self.signature = b"v=" + base64.b64encode(signature)
        return self.pretended is not None or hashlib.new(self.hash, key).digest() == stored

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash)


def _with_sasl(frame: bytes, head: int, version: int) -> bytes:
    response: Any = decode(ApiVersionsResponse, version, frame, head)
    response.api_keys += [
        ApiVersion(api_key=HANDSHAKE, min_version=0, max_version=1),
        ApiVersion(api_key=AUTHENTICATE, min_version=0, max_version=2),
    ]
    response.api_keys.sort(key=lambda each: each.api_key)
    return encode(response, version)


def _receive(sock: socket.socket) -> bytes | None:
    size = _receive_exactly(sock, 4)
    return _receive_exactly(sock, struct.unpack(">i", size)[0]) if size else None


def _receive_exactly(sock: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        got = sock.recv(size - len(data))
        if not got:
            return None
        data += got
    return bytes(data)
