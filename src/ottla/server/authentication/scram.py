"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither says it.

The broker keeps a salt and two keys of each user, from which the password cannot be told. The client does the
hashing that takes milliseconds; what is left for us are three HMACs.

Departing from Apache Kafka: a name that nobody has takes the same course as a wrong password, with a salt
that is always the same for that name, so that names cannot be tried out. And `c=` is checked, as the RFC
asks.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Final, NamedTuple

from ottla.core.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism
from ottla.server.authentication.mechanism import InvalidCredentials, NotAuthenticated

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_SALT_LENGTH: Final = 26
_NAME: Final = r"(?:[^=,\x00]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^,\x00]+)*"
_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>(?:m=[^,\x00]+,)?n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>[A-Za-z0-9/+=]+)"
)


class Credential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Credential({self.iterations} iterations)"


class Scram:
    """One exchange. `credential_of` finds a user's credential; `pretence` is the secret behind all others."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: Callable[[str], Credential | None],
        *,
        nonce: str,
        pretence: bytes,
    ) -> None:
        self._hash = mechanism.hash_name
        self._credential_of = credential_of
        self._server_nonce = nonce
        self._pretence = pretence
        self._claimed = ""
        self._is_known = False
        self._credential: Credential | None = None
        self._gs2 = self._signed = self._nonce = ""
        self.username = ""

    def answer(self, token: bytes) -> bytes:
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise InvalidCredentials("the message is not text") from None
        if self._credential is None:
            return self._challenge(text)
        return self._verify(text, self._credential)

    def _challenge(self, text: str) -> bytes:
        first = _FIRST.fullmatch(text)
        if first is None or self._signed:
            raise InvalidCredentials("this is no client-first-message")
        self._claimed = _unquoted(first["name"])
        authorization_id = first["authorization_id"]
        if authorization_id is not None and _unquoted(authorization_id) != self._claimed:
            raise NotAuthenticated(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        # Delegation tokens would be looked for elsewhere; there are none, so this is nobody's name.
        is_token = "tokenauth=true" in first["extensions"].lower().split(",")
        credential = None if is_token else self._credential_of(self._claimed)
        # More is refused as well as fewer: it is the client that has to compute them, and some do so on
        # their event loop.
        self._is_known = credential is not None and MIN_ITERATIONS <= credential.iterations <= MAX_ITERATIONS
        if credential is None or not self._is_known:
            credential = self._pretended()
        self._credential = credential
        self._gs2 = first["gs2"]
        self._nonce = first["nonce"] + self._server_nonce
        salt = b64encode(credential.salt).decode()
        challenge = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._signed = f"{first['bare']},{challenge}"
        return challenge.encode()

    def _verify(self, text: str, credential: Credential) -> bytes:
        self._credential = None  # whatever comes of it, there is one attempt
        final = _FINAL.fullmatch(text)
        if final is None:
            raise InvalidCredentials("this is no client-final-message")
        if not compare_digest(final["nonce"], self._nonce):
            raise InvalidCredentials("the nonce is not the one of this exchange")
        if not compare_digest(_base64(final["binding"]), self._gs2.encode()):
            raise InvalidCredentials("the channel binding is not the one that was announced")
        proof = _base64(final["proof"])
        signed = f"{self._signed},{final['bare']}".encode()
        signature = hmac_digest(credential.stored_key, signed, self._hash)
        if len(proof) != len(signature):
            raise InvalidCredentials("the proof has another length than the hash")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not compare_digest(stored_key, credential.stored_key) or not self._is_known:
            raise InvalidCredentials("the proof is wrong")
        self.username = self._claimed
        verifier = hmac_digest(credential.server_key, signed, self._hash)
        return b"v=" + b64encode(verifier)

    def _pretended(self) -> Credential:
        """The credential of a user that does not exist: the same whenever it is asked for."""
        seed = hmac_digest(self._pretence, f"{self._hash},{self._claimed}".encode(), "sha512")
        number = int.from_bytes(seed, "big")
        # Salts look like those that Kafka's own tools make: digits to the base of 36.
        salt = bytearray()
        for _ in range(_SALT_LENGTH):
            number, digit = divmod(number, len(_DIGITS))
            salt += _DIGITS[digit].encode()
        key = hmac_digest(self._pretence, seed, self._hash)
        return Credential(bytes(salt), key, key, MIN_ITERATIONS)


def _unquoted(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidCredentials("this is not base64") from None
