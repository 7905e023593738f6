"""PLAIN and SCRAM as a broker sees them: the vectors of the RFCs, and every way of being wrong."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.sasl import Scram as ScramClient
from ottla.core.scram import ScramMechanism, keys, salted_password
from ottla.server.authentication.mechanism import InvalidCredentials, NotAuthenticated
from ottla.server.authentication.plain import Plain
from ottla.server.authentication.scram import Credential, Scram

USERS = {"tim": sha256(b"tanstaaftanstaaf").digest(), "kurt": sha256("ßüper".encode()).digest()}
PRETENCE = b"a secret of this broker"


def credential(mechanism: ScramMechanism, salt: bytes = b"salt") -> Credential:
    made = keys(mechanism, salted_password(mechanism, "pencil", salt, 4096))
    return Credential(salt, made.stored_key, made.server_key, 4096)


SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
CREDENTIALS = {mechanism: credential(mechanism) for mechanism in ScramMechanism}


def scram(mechanism: ScramMechanism = SHA_256, nonce: str = "serverside", **changes: object) -> Scram:
    known = CREDENTIALS[mechanism]._replace(**changes)  # type: ignore[arg-type]
    return Scram(mechanism, {"user": known, "a,b=c": known}.get, nonce=nonce, pretence=PRETENCE)


def client(mechanism: ScramMechanism = SHA_256, name: str = "user", password: str = "pencil") -> ScramClient:
    return ScramClient(mechanism.hash_name, name, password, "clientside")


# --- PLAIN -------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [b"\0tim\0tanstaaftanstaaf", b"tim\0tim\0tanstaaftanstaaf"])
def test_plain_takes_a_name_and_its_password(token: bytes) -> None:
    plain = Plain(USERS)

    assert plain.answer(token) == b""
    assert plain.username == "tim"


def test_plain_takes_letters_beyond_ascii() -> None:
    plain = Plain(USERS)
    plain.answer("\0kurt\0ßüper".encode())

    assert plain.username == "kurt"


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"", "expected 3 tokens, got 1"),
        (b"tim\0tanstaaftanstaaf", "expected 3 tokens, got 2"),
        (b"\0tim\0tanstaaftanstaaf\0", "expected 3 tokens, got 4"),
        (b"\0\0tanstaaftanstaaf", "username not specified"),
        (b"\0tim\0", "password not specified"),
        (b"\0tim\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0tanstaaftanstaaf", "Authentication failed: Invalid username or password"),
        (b"\0tim\0\xff\xfe", "Authentication failed: Invalid username or password"),
        (b"root\0tim\0tanstaaftanstaaf", "an authorization id that is different from username"),
    ],
)
def test_plain_refuses_with_the_words_of_kafka(token: bytes, message: str) -> None:
    plain = Plain(USERS)
    with pytest.raises(NotAuthenticated) as refused:
        plain.answer(token)

    assert message in str(refused.value)
    assert plain.username == ""


# --- SCRAM -------------------------------------------------------------------------------


def test_scram_answers_as_rfc_7677_has_it() -> None:
    salt = b"\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81"
    server = Scram(
        SHA_256,
        {"user": credential(SHA_256, salt)}.get,
        nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        pretence=PRETENCE,
    )

    assert server.answer(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.username == ""
    assert (
        server.answer(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    assert server.username == "user"


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("name", ["user", "a,b=c"])
def test_both_sides_of_scram_convince_each_other(mechanism: ScramMechanism, name: str) -> None:
    server, asking = scram(mechanism), client(mechanism, name)

    proof = asking.answer(server.answer(asking.start()))
    assert proof is not None
    assert asking.answer(server.answer(proof)) is None
    assert asking.is_done
    assert server.username == name


def refused(server: Scram, final: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        server.answer(final)
    assert server.username == ""


@pytest.mark.parametrize(("name", "password"), [("user", "pen"), ("nobody", "pencil"), ("USER", "pencil")])
def test_a_wrong_password_and_an_unknown_name_take_the_same_course(name: str, password: str) -> None:
    server, asking = scram(), client(name=name, password=password)
    challenge = server.answer(asking.start())

    assert challenge.endswith(b",i=4096")
    proof = asking.answer(challenge)
    assert proof is not None
    refused(server, proof)


def test_the_salt_of_nobody_is_always_the_same_and_looks_like_any_other() -> None:
    def salt(name: str, mechanism: ScramMechanism = SHA_256, pretence: bytes = PRETENCE) -> bytes:
        server = Scram(mechanism, lambda _: None, nonce="x", pretence=pretence)
        return server.answer(b"n,,n=" + name.encode() + b",r=clientside").split(b",")[1]

    assert salt("eve") == salt("eve")
    assert len({salt("eve"), salt("adam"), salt("eve", SHA_512), salt("eve", pretence=b"other")}) == 4


@pytest.mark.parametrize("iterations", [1, 4095, 16_385, 1 << 24])
def test_a_credential_with_too_few_or_too_many_iterations_lets_nobody_in(iterations: int) -> None:
    server, asking = scram(iterations=iterations), client()
    challenge = server.answer(asking.start())

    assert challenge.endswith(b",i=4096")
    proof = asking.answer(challenge)
    assert proof is not None
    refused(server, proof)


def test_a_nonce_that_is_not_the_one_of_this_exchange_is_refused() -> None:
    """CVE-2024-56128: the proof is good, for another exchange."""
    for nonce in (b"clientside", b"clientsideserversid", b"xclientsideserverside", b"clientsideotherserver"):
        server, asking = scram(), client()
        proof = asking.answer(server.answer(asking.start()))
        assert proof is not None
        refused(server, proof.replace(b"clientsideserverside", nonce))


def test_what_was_overheard_cannot_be_said_again() -> None:
    overheard, asking = scram(nonce="first"), client()
    proof = asking.answer(overheard.answer(asking.start()))
    assert proof is not None
    overheard.answer(proof)

    with pytest.raises(NotAuthenticated):
        overheard.answer(proof)
    another = scram(nonce="second")
    another.answer(asking.start())
    refused(another, proof)


def test_after_a_wrong_proof_there_is_no_second_try() -> None:
    server, asking = scram(), client()
    proof = asking.answer(server.answer(asking.start()))
    assert proof is not None
    wrong = proof[: proof.index(b",p=")] + b",p=" + b64encode(bytes(32))

    refused(server, wrong)
    refused(server, proof)
    refused(server, asking.start())


@pytest.mark.parametrize("channel", [b"eSws", b"biwsYQ==", b"!!!!", b"b"])
def test_a_channel_binding_that_was_not_announced_is_refused(channel: bytes) -> None:
    server, asking = scram(), client()
    proof = asking.answer(server.answer(asking.start()))
    assert proof is not None
    refused(server, proof.replace(b"c=biws", b"c=" + channel))


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=a\x00b",
        b"n,,n=user,r=abc,",
        b"\xff\xfe,,n=user,r=abc",
        b"n,,r=abc,n=user",
        b"c=biws,r=abc,p=AAAA",
    ],
)
def test_a_first_message_that_is_none_is_refused(first: bytes) -> None:
    refused(scram(), first)


def test_somebody_elses_name_cannot_be_taken_on() -> None:
    with pytest.raises(NotAuthenticated, match="an authorization id that is different from username"):
        scram().answer(b"n,a=root,n=user,r=clientside")
    assert scram().answer(b"n,a=user,n=user,r=clientside").startswith(b"r=clientsideserverside,")


def test_delegation_tokens_are_nobodys() -> None:
    known, token = scram(), scram()

    assert b"s=" + b64encode(b"salt") in known.answer(b"n,,n=user,r=clientside")
    assert b"s=" + b64encode(b"salt") not in token.answer(b"n,,n=user,r=clientside,tokenauth=true")


@given(st.lists(st.binary(max_size=200), max_size=3))
def test_noise_is_refused_and_nothing_else(tokens: list[bytes]) -> None:
    for server in (scram(), Plain(USERS)):
        for token in tokens:
            with pytest.raises(NotAuthenticated):
                server.answer(token)
        assert server.username == ""


@given(st.binary(max_size=200))
def test_noise_in_place_of_a_proof_is_refused(final: bytes) -> None:
    server = scram()
    server.answer(client().start())
    refused(server, final)


def test_secrets_are_not_printed() -> None:
    assert "stored" not in repr(CREDENTIALS) and "salt" not in repr(CREDENTIALS)
