"""One authentication, from SaslHandshake to its end: which step may follow, and what is answered.

    HANDSHAKE -> AUTHENTICATE -> DONE
                              -> FAILED

`failure` says why it failed; the answer that goes with it is the last one on the connection. From version 1
of the handshake on, tokens come in SaslAuthenticate requests (`authenticate`), before that as they are
(`token`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla.core.principal import USER, Principal
from ottla.protocol.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse
from ottla.server.authentication.mechanism import InvalidCredentials, Mechanism, NotAuthenticated

HANDSHAKE: Final = "handshake"
AUTHENTICATE: Final = "authenticate"
DONE: Final = "done"
FAILED: Final = "failed"


class Mechanisms(NamedTuple):
    """What a listener takes."""

    names: tuple[str, ...]
    start: Callable[[str], Mechanism]
    session_ms: Mapping[str, int]


class Authenticated(NamedTuple):
    """Who a connection belongs to, and how that was found out."""

    principal: Principal
    mechanism: str
    session_ms: int


class Exchange:
    """`previous` is what held until now on a connection that authenticates again (KIP-368)."""

    def __init__(self, mechanisms: Mechanisms, previous: Authenticated | None = None) -> None:
        self._mechanisms = mechanisms
        self._previous = previous
        self._name = ""
        self._mechanism: Mechanism | None = None
        self.state = HANDSHAKE
        self.takes_bare_tokens = False
        self.failure = ""
        self.authenticated: Authenticated | None = None

    def handshake(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        offered = list(self._mechanisms.names)
        if self.state != HANDSHAKE:
            self._fail("a second SaslHandshake")
            return SaslHandshakeResponse(error_code=IllegalSaslState.code, mechanisms=offered)
        if mechanism not in self._mechanisms.names:
            self._fail("a mechanism that is not enabled")
            return SaslHandshakeResponse(error_code=UnsupportedSaslMechanism.code, mechanisms=offered)
        self._name = mechanism
        self._mechanism = self._mechanisms.start(mechanism)
        self.takes_bare_tokens = version == 0
        self.state = AUTHENTICATE
        return SaslHandshakeResponse(mechanisms=offered)

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        """The answer to SaslAuthenticate."""
        if self.state != AUTHENTICATE or self.takes_bare_tokens:
            self._fail("SaslAuthenticate out of turn")
            return SaslAuthenticateResponse(
                error_code=IllegalSaslState.code,
                error_message="SaslAuthenticate request received without a SaslHandshake before it",
            )
        try:
            answer = self._answer(token)
        except NotAuthenticated as error:
            return SaslAuthenticateResponse(
                error_code=SaslAuthenticationFailed.code, error_message=self._told(error)
            )
        lifetime_ms = 0 if self.authenticated is None else self.authenticated.session_ms
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)

    def token(self, token: bytes) -> bytes | None:
        """The answer to a bare token; None where there is nothing left to say but farewell."""
        try:
            return self._answer(token)
        except NotAuthenticated:
            return None

    def _answer(self, token: bytes) -> bytes:
        assert self._mechanism is not None and self.state == AUTHENTICATE, self.state
        try:
            self._refuse_another_mechanism()
            answer = self._mechanism.answer(token)
            if self._mechanism.username:
                self._succeed(Principal(USER, self._mechanism.username))
            return answer
        except NotAuthenticated as error:
            self._fail(str(error))
            raise

    def _refuse_another_mechanism(self) -> None:
        if self._previous is not None and self._previous.mechanism != self._name:
            raise NotAuthenticated(
                f"SASL mechanism '{self._name}' requested by client is not supported for re-authentication "
                f"of mechanism '{self._previous.mechanism}'"
            )

    def _succeed(self, principal: Principal) -> None:
        if self._previous is not None and self._previous.principal != principal:
            before = self._previous.principal
            raise NotAuthenticated(
                f"Cannot change principals during re-authentication from {before.type}.{before.name}: "
                f"{principal.type}.{principal.name}"
            )
        self.authenticated = Authenticated(principal, self._name, self._mechanisms.session_ms[self._name])
        self.state = DONE

    def _fail(self, why: str) -> None:
        self.failure = why
        self.state = FAILED

    def _told(self, error: NotAuthenticated) -> str:
        if not isinstance(error, InvalidCredentials):
            return str(error)
        what = "authentication" if self._previous is None else "re-authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._name}"
        )
