"""PLAIN (RFC 4616): a name and a password as they are, which is why it wants TLS around it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from ottla.server.authentication.mechanism import NotAuthenticated

_NOBODY = bytes(32)


class Plain:
    """`users` are names and the SHA-256 of their passwords."""

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self.username = ""

    def answer(self, token: bytes) -> bytes:
        # As Java does: bytes that are no UTF-8 make a name or a password that nobody has.
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise NotAuthenticated(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, username, password = parts
        if not username:
            raise NotAuthenticated("Authentication failed: username not specified")
        if not password:
            raise NotAuthenticated("Authentication failed: password not specified")
        # Digests are compared, so that neither the length of a password nor a name that does not exist shows
        # in how long it takes.
        known = self._users.get(username)
        is_right = compare_digest(sha256(password.encode()).digest(), known or _NOBODY)
        if known is None or not is_right:
            raise NotAuthenticated("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != username:
            raise NotAuthenticated(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.username = username
        return b""
