"""SASL exchanges against the examples of their RFCs."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from ottla.client.sasl import SaslFailed, Scram, sasl_client

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def scram(password: str = "pencil") -> Scram:
    return Scram("sha256", "user", password, NONCE)


def test_scram_sha_256_is_the_example_of_rfc_7677() -> None:
    client = scram()
    assert client.start() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.answer(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert not client.is_done
    assert client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert client.is_done


def test_scram_is_the_example_of_rfc_5802_with_its_own_hash() -> None:
    client = Scram("sha1", "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL")
    client.start()
    proof = client.answer(b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096")
    assert proof == (b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=")
    assert client.answer(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=") is None


def test_scram_sha_512_proves_the_password_to_a_server_that_has_only_its_stored_key() -> None:
    salt, iterations = b"salt of the server", 8192
    client = sasl_client("SCRAM-SHA-512", "us,er=", "pénc\u0131l", "nonce")
    first = client.start()
    assert first == b"n,,n=us=2Cer=3D,r=nonce"
    challenge = b"r=nonceserver,s=" + base64.b64encode(salt) + b",i=8192"
    answer = client.answer(challenge)
    assert answer is not None
    bare, _, proof = answer.rpartition(b",p=")
    salted = hashlib.pbkdf2_hmac("sha512", "pénc\u0131l".encode(), salt, iterations)
    stored_key = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
    signed = b",".join((first[3:], challenge, bare))
    signature = hmac.digest(stored_key, signed, "sha512")
    client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(client_key).digest() == stored_key
    server_key = hmac.digest(salted, b"Server Key", "sha512")
    assert client.answer(b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha512"))) is None
    assert client.is_done


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    client = scram("another")
    client.start()
    client.answer(SERVER_FIRST)
    with pytest.raises(SaslFailed, match="does not know the password"):
        client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert not client.is_done


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"e=unknown-user", "unknown-user"),
        (b"r=other%hv,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO%hv,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", "1 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO%hv,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999", "99999999999 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO%hv,s=W22ZaJ0SNY7soEsUEjb6gQ==", "no iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO%hv,s=?,i=4096", "base64"),
        (b"r=rOprNGfwEbeRWgbNEkqO%hv,i=4096", "base64"),
        (b"\xff\xfe", "not text"),
        (b"", "base64"),
    ],
)
def test_a_challenge_that_is_not_scram_is_refused(challenge: bytes, reason: str) -> None:
    client = scram()
    client.start()
    with pytest.raises(SaslFailed, match=reason):
        client.answer(challenge)


def test_what_comes_after_the_end_is_refused() -> None:
    client = scram()
    client.start()
    client.answer(SERVER_FIRST)
    client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(SaslFailed, match="after the end"):
        client.answer(b"v=again")


def test_plain_says_name_and_password_at_once() -> None:
    client = sasl_client("PLAIN", "ada", "pässword", "unused")
    assert client.start() == "\0ada\0pässword".encode()
    assert client.answer(b"") is None
    assert client.is_done
    with pytest.raises(SaslFailed, match="challenge"):
        client.answer(b"more")
