"""The course of an authentication: which step may follow which, and what each failure is answered with."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ottla.client.sasl import Scram as ScramClient
from ottla.core.principal import Principal
from ottla.core.scram import BY_NAME
from ottla.server.authentication.attempts import ADDRESSES_MAX, ATTEMPTS, FailedAttempts
from ottla.server.authentication.exchange import (
    AUTHENTICATE,
    DONE,
    FAILED,
    HANDSHAKE,
    Authenticated,
    Exchange,
    Mechanisms,
)
from ottla.server.authentication.mechanism import Mechanism
from ottla.server.authentication.plain import Plain
from ottla.server.authentication.scram import Scram

ADA = b"\0ada\0secret"
BOB = b"\0bob\0hidden"


def start(mechanism: str) -> Mechanism:
    if mechanism == "PLAIN":
        return Plain({"ada": sha256(b"secret").digest(), "bob": sha256(b"hidden").digest()})
    return Scram(BY_NAME[mechanism], lambda _: None, nonce="server", pretence=b"pretence")


MECHANISMS = Mechanisms(("SCRAM-SHA-256", "PLAIN"), start, {"SCRAM-SHA-256": 0, "PLAIN": 60_000})
PREVIOUS = Authenticated(Principal("User", "ada"), "PLAIN", 60_000)


def test_a_handshake_and_a_token_authenticate() -> None:
    exchange = Exchange(MECHANISMS)
    assert exchange.state == HANDSHAKE

    shaken = exchange.handshake("PLAIN", 1)
    assert (shaken.error_code, shaken.mechanisms) == (0, ["SCRAM-SHA-256", "PLAIN"])
    assert exchange.state == AUTHENTICATE

    answer = exchange.authenticate(ADA)
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (0, "", b"")
    assert answer.session_lifetime_ms == 60_000
    assert exchange.state == DONE
    assert exchange.authenticated == PREVIOUS
    assert not exchange.failure


def test_bare_tokens_follow_the_first_version_of_the_handshake() -> None:
    exchange = Exchange(MECHANISMS)
    exchange.handshake("PLAIN", 0)

    assert exchange.takes_bare_tokens
    assert exchange.token(ADA) == b""
    assert exchange.authenticated == PREVIOUS


def test_a_wrong_bare_token_is_answered_with_nothing() -> None:
    exchange = Exchange(MECHANISMS)
    exchange.handshake("PLAIN", 0)

    assert exchange.token(b"\0ada\0wrong") is None
    assert exchange.state == FAILED and exchange.failure and exchange.authenticated is None


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    exchange = Exchange(MECHANISMS)
    answer = exchange.handshake("SCRAM-SHA-512", 1)

    assert (answer.error_code, answer.mechanisms) == (33, ["SCRAM-SHA-256", "PLAIN"])
    assert exchange.state == FAILED and exchange.failure


def test_a_wrong_password_is_answered_in_kafkas_words() -> None:
    exchange = Exchange(MECHANISMS)
    exchange.handshake("PLAIN", 1)
    answer = exchange.authenticate(b"\0ada\0wrong")

    assert answer.error_code == 58
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert exchange.state == FAILED and exchange.failure and exchange.authenticated is None


@pytest.mark.parametrize(
    ("previous", "what"),
    [(None, "authentication"), (PREVIOUS._replace(mechanism="SCRAM-SHA-256"), "re-authentication")],
)
def test_scram_does_not_say_what_was_wrong(previous: Authenticated | None, what: str) -> None:
    exchange, client = Exchange(MECHANISMS, previous), ScramClient("sha256", "eve", "apple", "client")
    exchange.handshake("SCRAM-SHA-256", 1)
    challenge = exchange.authenticate(client.start())
    assert (challenge.error_code, challenge.session_lifetime_ms) == (0, 0)
    proof = client.answer(challenge.auth_bytes)
    assert proof is not None
    answer = exchange.authenticate(proof)

    assert answer.error_code == 58
    assert answer.error_message == (
        f"Authentication failed during {what} due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )


def test_steps_out_of_turn_end_it() -> None:
    early = Exchange(MECHANISMS)
    assert early.authenticate(ADA).error_code == 34
    assert early.failure and early.authenticated is None

    twice = Exchange(MECHANISMS)
    twice.handshake("PLAIN", 1)
    assert twice.handshake("PLAIN", 1).error_code == 34
    assert twice.authenticate(ADA).error_code == 34
    assert twice.failure and twice.authenticated is None

    bare = Exchange(MECHANISMS)
    bare.handshake("PLAIN", 0)
    assert bare.authenticate(ADA).error_code == 34
    assert bare.failure and bare.authenticated is None


def test_who_authenticates_again_stays_the_same() -> None:
    again = Exchange(MECHANISMS, PREVIOUS)
    again.handshake("PLAIN", 1)
    assert again.authenticate(ADA).error_code == 0
    assert again.authenticated == PREVIOUS

    somebody_else = Exchange(MECHANISMS, PREVIOUS)
    somebody_else.handshake("PLAIN", 1)
    answer = somebody_else.authenticate(BOB)
    assert answer.error_code == 58
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.ada: User.bob"
    )
    assert somebody_else.authenticated is None and somebody_else.state == FAILED


def test_the_mechanism_stays_the_same_too() -> None:
    exchange = Exchange(MECHANISMS, PREVIOUS)
    assert exchange.handshake("SCRAM-SHA-256", 1).error_code == 0
    answer = exchange.authenticate(b"n,,n=ada,r=client")

    assert answer.error_code == 58
    assert (
        "'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
        in (answer.error_message or "")
    )
    assert exchange.authenticated is None


def test_who_goes_on_guessing_waits_longer_and_longer() -> None:
    attempts = FailedAttempts()
    delays = [attempts.failed("1.2.3.4", 100) for _ in range(ATTEMPTS * 8)]

    assert delays[:ATTEMPTS] == [100] * ATTEMPTS
    assert delays[ATTEMPTS] == 200
    assert delays == sorted(delays) and delays[-1] == 3200
    assert attempts.failed("1.2.3.5", 100) == 100

    attempts.succeeded("1.2.3.4")
    assert attempts.failed("1.2.3.4", 100) == 100


def test_not_more_addresses_are_remembered_than_there_is_room_for() -> None:
    attempts = FailedAttempts()
    for _ in range(ATTEMPTS):
        attempts.failed("first", 100)
    for number in range(ADDRESSES_MAX):
        attempts.failed(str(number), 100)

    assert attempts.failed("first", 100) == 100
