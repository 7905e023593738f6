from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from typing import Any

import pytest

from ottla.core.scram import Keys, ScramMechanism, keys, salted_password
from ottla.metadata import framing
from ottla.metadata.image import Image
from ottla.metadata.snapshot import records
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

UNSUPPORTED_SASL_MECHANISM = 33
UNSUPPORTED_VERSION = 35
POLICY_VIOLATION = 44
RESOURCE_NOT_FOUND = 91
DUPLICATE_RESOURCE = 92
UNACCEPTABLE_CREDENTIAL = 93

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def user(name: str = "alice", **given: Any) -> ScramCredentialUpsertion:
    values: dict[str, Any] = {
        "mechanism": SHA_256,
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": b"s" * 32,
    }
    return ScramCredentialUpsertion(name=name, **(values | given))


def gone(name: str = "alice", mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(cluster: Any, *asked: ScramCredentialUpsertion | ScramCredentialDeletion) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in asked if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in asked if isinstance(each, ScramCredentialUpsertion)],
    )
    return {each.user: each.error_code for each in cluster.do(request).results}


def test_the_keys_are_those_of_the_rfc() -> None:
    """RFC 7677, section 3: user `user`, password `pencil`."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    server_key = keys(SHA_256, salted_password(SHA_256, "pencil", salt, 4096)).server_key
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = f"n=user,r={nonce[:20]},r={nonce},s={base64.b64encode(salt).decode()},i=4096,c=biws,r={nonce}"
    signature = hmac.digest(server_key, exchange.encode(), "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_what_is_kept_are_keys_and_not_what_was_sent(cluster: Any) -> None:
    salted = salted_password(SHA_512, "pencil", b"pepper", 8192)
    wanted = user(mechanism=SHA_512, iterations=8192, salt=b"pepper", salted_password=salted)
    assert alter(cluster, wanted) == {"alice": 0}
    kept = cluster.image.scram[SHA_512, "alice"]
    assert Keys(kept.stored_key, kept.server_key) == keys(SHA_512, salted)
    assert (kept.salt, kept.iterations) == (b"pepper", 8192)
    assert salted not in framing.encode(kept, cluster.image.metadata_version)


def test_a_credential_is_replaced_by_a_new_one_of_its_mechanism(cluster: Any) -> None:
    assert alter(cluster, user()) == {"alice": 0}
    assert alter(cluster, user(mechanism=SHA_512)) == {"alice": 0}
    assert alter(cluster, user(iterations=5000)) == {"alice": 0}
    assert {key: each.iterations for key, each in cluster.image.scram.items()} == {
        (SHA_256, "alice"): 5000,
        (SHA_512, "alice"): 4096,
    }


def test_a_credential_is_removed_and_the_others_stay(cluster: Any) -> None:
    alter(cluster, user(), user("bob"))
    alter(cluster, user(mechanism=SHA_512))
    assert alter(cluster, gone()) == {"alice": 0}
    assert set(cluster.image.scram) == {(SHA_512, "alice"), (SHA_256, "bob")}
    assert alter(cluster, gone()) == {"alice": RESOURCE_NOT_FOUND}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (user(""), UNACCEPTABLE_CREDENTIAL),
        (user(mechanism=0), UNSUPPORTED_SASL_MECHANISM),
        (user(mechanism=3), UNSUPPORTED_SASL_MECHANISM),
        (user(iterations=4095), UNACCEPTABLE_CREDENTIAL),
        (user(iterations=-1), UNACCEPTABLE_CREDENTIAL),
        (user(iterations=16_385), UNACCEPTABLE_CREDENTIAL),
        (user(salt=b""), UNACCEPTABLE_CREDENTIAL),
        (user(salted_password=b""), UNACCEPTABLE_CREDENTIAL),
        (gone(""), UNACCEPTABLE_CREDENTIAL),
        (gone(mechanism=9), UNSUPPORTED_SASL_MECHANISM),
        (gone("nobody"), RESOURCE_NOT_FOUND),
    ],
)
def test_what_cannot_be_a_credential_is_refused_and_the_others_are_not(
    cluster: Any, asked: Any, error: int
) -> None:
    assert alter(cluster, user("carol"), asked) == {"carol": 0, asked.name: error}
    assert set(cluster.image.scram) == {(SHA_256, "carol")}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ([user(), user()], DUPLICATE_RESOURCE),
        ([user(), user(mechanism=SHA_512)], DUPLICATE_RESOURCE),
        ([user(), user(), user()], DUPLICATE_RESOURCE),
        ([user("bob", iterations=1), user("bob")], UNACCEPTABLE_CREDENTIAL),
        ([gone("bob"), user("bob")], DUPLICATE_RESOURCE),
        ([gone("nobody"), user("nobody")], RESOURCE_NOT_FOUND),
        ([gone("bob"), gone("bob")], DUPLICATE_RESOURCE),
    ],
)
def test_a_user_is_altered_once_in_a_request(cluster: Any, asked: list[Any], error: int) -> None:
    alter(cluster, user("bob"))
    assert alter(cluster, *asked) == {asked[0].name: error}
    assert cluster.last == []


def test_a_request_for_too_many_users_is_refused_whole(cluster: Any) -> None:
    answer = alter(cluster, *(user(f"u{number}") for number in range(10_001)))
    assert set(answer.values()) == {POLICY_VIOLATION}
    assert not cluster.image.scram


def test_a_cluster_of_an_older_metadata_version_has_no_users(make_cluster: Callable[..., Any]) -> None:
    old = make_cluster(level=10)
    assert alter(old, user(), gone("bob")) == {"alice": UNSUPPORTED_VERSION, "bob": UNSUPPORTED_VERSION}


def test_credentials_are_in_the_snapshot_and_in_no_printed_form(cluster: Any) -> None:
    alter(cluster, user(), user("bob", mechanism=SHA_512))
    again = Image()
    for record in records(cluster.image):
        again.apply(framing.decode(framing.encode(record, cluster.image.metadata_version)), 0)
    assert again.scram == cluster.image.scram == cluster.committed.scram
    canary = b"a canary in the mine"
    printed = repr(AlterUserScramCredentialsRequest(upsertions=[user(salt=canary, salted_password=canary)]))
    assert "canary" not in printed and "alice" in printed
    kept = cluster.image.scram[SHA_256, "alice"]
    assert repr(kept.stored_key) not in repr(kept) and repr(kept.server_key) not in repr(kept)
