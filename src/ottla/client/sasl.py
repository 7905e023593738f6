"""SASL exchanges, as the client sees them: what to send first, and what to answer to each challenge.

Nothing here knows sockets or chance: a nonce is handed in. Kafka takes names and passwords as UTF-8 without
SASLprep, so do we.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, Protocol

MIN_ITERATIONS: Final = 4096
"""What RFC 7677 asks for; a server that wants fewer makes it cheap to guess the password."""
MAX_ITERATIONS: Final = 1 << 24
"""Some seconds of computing; a server that wants more wants to keep us busy."""

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = ("PLAIN", *SCRAM_HASHES)


class SaslFailed(Exception):
    """The server's side of the exchange is wrong: it does not know the password, or does not speak SASL."""


class SaslClient(Protocol):
    """One exchange. It has succeeded when the server agrees and `is_done`."""

    is_done: bool

    def start(self) -> bytes:
        """The first message."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The next message, None if there is nothing left to say. Raises `SaslFailed`."""


def sasl_client(mechanism: str, username: str, password: str, nonce: str) -> SaslClient:
    """An exchange of this mechanism; the nonce should be random, printable and have no comma."""
    if mechanism == "PLAIN":
        return Plain(username, password)
    return Scram(SCRAM_HASHES[mechanism], username, password, nonce)


class Plain:
    """RFC 4616: name and password as they are, which is why it wants TLS around it."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()
        self.is_done = False

    def start(self) -> bytes:
        self.is_done = True
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslFailed("the broker answers PLAIN with a challenge")
        return None


class Scram:
    """RFC 5802: both sides prove that they know the password, neither says it."""

    def __init__(self, hash_name: str, username: str, password: str, nonce: str) -> None:
        self._hash_name, self._password, self._nonce = hash_name, password, nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}"
        self._server_signature: bytes | None = None
        self.is_done = False

    def start(self) -> bytes:
        return b"n,," + self._first.encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self.is_done:
            raise SaslFailed("the broker goes on after the end of the exchange")
        if self._server_signature is None:
            return self._prove(challenge)
        fields = _fields(challenge)
        if "e" in fields:
            raise SaslFailed(f"the broker says {fields['e']}")
        if not hmac.compare_digest(_base64(fields, "v"), self._server_signature):
            raise SaslFailed("the broker does not know the password either")
        self.is_done = True
        return None

    def _prove(self, challenge: bytes) -> bytes:
        fields = _fields(challenge)
        if "e" in fields:
            raise SaslFailed(f"the broker says {fields['e']}")
        nonce, salt = fields.get("r", ""), _base64(fields, "s")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslFailed("the broker's nonce does not go on from ours")
        iterations = fields.get("i", "")
        if not iterations.isdecimal() or not MIN_ITERATIONS <= int(iterations) <= MAX_ITERATIONS:
            raise SaslFailed(f"the broker wants {iterations or 'no'} iterations")
        salted = hashlib.pbkdf2_hmac(self._hash_name, self._password.encode(), salt, int(iterations))
        bare = f"c=biws,r={nonce}"  # "biws" is "n,,": no channel binding
        signed = ",".join((self._first, challenge.decode(), bare)).encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        signature = self._hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash_name)


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise SaslFailed("the broker's message is not text") from None
    return {name: value for name, equals, value in (part.partition("=") for part in parts) if equals}


def _base64(fields: dict[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(fields[name], validate=True)
    except (KeyError, binascii.Error):
        raise SaslFailed(f"the broker's message has no {name}= of base64") from None
