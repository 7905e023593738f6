"""Who authenticates the clients of one listener: its mechanisms, their users, and who has failed so far."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from ottla.config.sasl import PLAIN, Sasl
from ottla.core.scram import BY_NAME, ScramMechanism
from ottla.server.api import SASL_AUTHENTICATE, SASL_HANDSHAKE
from ottla.server.authentication.attempts import FailedAttempts
from ottla.server.authentication.exchange import Authenticated, Exchange, Mechanisms
from ottla.server.authentication.mechanism import Mechanism
from ottla.server.authentication.plain import Plain
from ottla.server.authentication.scram import Credential, Scram
from ottla.server.routes import Route, Routes

if TYPE_CHECKING:
    from ottla.runtime.node import Node


class OnlySasl(Routes):
    """The routes of a connection that has to authenticate again before it may go on."""

    def __init__(self, routes: Routes, key: int) -> None:
        super().__init__(routes.intercept)
        self._all = routes
        self._key = key

    def find(self, key: int, version: int) -> Route | None:
        return self._all.find(key, version) if key == self._key else None


class Authenticator:
    def __init__(self, sasl: Sasl, node: Node, routes: Routes) -> None:
        self._node = node
        self._plain_users = sasl.plain_users
        self._mechanisms = Mechanisms(sasl.mechanisms, self._start, sasl.session_ms)
        self._failure_delay_ms = sasl.failure_delay_ms
        self._attempts = FailedAttempts()
        self.receive_bytes_max = sasl.receive_bytes_max
        self.after_expiry = OnlySasl(routes, SASL_HANDSHAKE)
        self.after_handshake = OnlySasl(routes, SASL_AUTHENTICATE)

    def exchange(self, previous: Authenticated | None = None) -> Exchange:
        return Exchange(self._mechanisms, previous)

    def failed(self, address: str) -> float:
        """Note a failure. Answers for how many seconds its answer is held back."""
        return self._attempts.failed(address, self._failure_delay_ms) / 1000

    def succeeded(self, address: str) -> None:
        self._attempts.succeeded(address)

    def _start(self, mechanism: str) -> Mechanism:
        if mechanism == PLAIN:
            return Plain(self._plain_users)
        kind = BY_NAME[mechanism]
        return Scram(
            kind,
            lambda name: self._credential(kind, name),
            nonce=secrets.token_urlsafe(24),
            pretence=self._pretence(),
        )

    def _credential(self, kind: ScramMechanism, name: str) -> Credential | None:
        found = self._node.image.scram.get((kind, name))
        if found is None:
            return None
        return Credential(found.salt, found.stored_key, found.server_key, found.iterations)

    def _pretence(self) -> bytes:
        """Nobody is told the ids of our directories, and they stay the same: good for a secret."""
        directories = self._node.log_directories
        return sha256(f"{self._node.cluster_id} {directories[0].id} no such user".encode()).digest()
