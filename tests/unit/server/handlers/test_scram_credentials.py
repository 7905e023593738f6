"""AlterUserScramCredentials and DescribeUserScramCredentials on a broker."""

from __future__ import annotations

from typing import Any

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ottla.server.handlers.alter_user_scram_credentials import alter_user_scram_credentials
from ottla.server.handlers.describe_user_scram_credentials import describe_user_scram_credentials

CLUSTER_AUTHORIZATION_FAILED = 31
RESOURCE_NOT_FOUND = 91
DUPLICATE_RESOURCE = 92
UNACCEPTABLE_CREDENTIAL = 93

ON_CLUSTER = ResourceType.CLUSTER, CLUSTER_NAME


def user(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"s" * 32
    )


def alter(node: Any, *users: ScramCredentialUpsertion, gone: tuple[str, ...] = ()) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        upsertions=list(users),
        deletions=[ScramCredentialDeletion(name=name, mechanism=1) for name in gone],
    )
    response = node.call(alter_user_scram_credentials, request)
    return {each.user: each.error_code for each in response.results}


def describe(node: Any, *names: str, everybody: Any = None) -> Any:
    users = [UserName(name=name) for name in names] or everybody
    return node.call(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=users))


def test_users_are_added_described_without_secrets_and_removed(cluster: Any) -> None:
    assert alter(cluster, user("alice"), user("bob", 2, 8192)) == {"alice": 0, "bob": 0}
    assert alter(cluster, user("alice", 2)) == {"alice": 0}
    for everybody in (None, []):
        response = describe(cluster, everybody=everybody)
        found = {
            each.user: [(one.mechanism, one.iterations) for one in each.credential_infos]
            for each in response.results
        }
        assert found == {"alice": [(1, 4096), (2, 4096)], "bob": [(2, 8192)]}
    assert alter(cluster, gone=("alice", "bob")) == {"alice": 0, "bob": RESOURCE_NOT_FOUND}
    (left,) = describe(cluster, "alice").results
    assert [each.mechanism for each in left.credential_infos] == [2]


def test_a_user_who_is_not_there_or_asked_for_twice_is_an_error_of_its_own(cluster: Any) -> None:
    alter(cluster, user("alice"))
    response = describe(cluster, "alice", "nobody", "twice", "twice")
    assert response.error_code == 0
    answers = {each.user: (each.error_code, each.error_message) for each in response.results}
    assert answers == {
        "alice": (0, ""),
        "nobody": (RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: nobody"),
        "twice": (
            DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: twice",
        ),
    }


def test_users_can_be_added_where_there_is_no_authorizer(cluster: Any) -> None:
    assert cluster.authorizer is None
    assert alter(cluster, user("alice"), user("bob", iterations=1)) == {
        "alice": 0,
        "bob": UNACCEPTABLE_CREDENTIAL,
    }


def test_users_are_changed_with_alter_and_shown_with_describe_on_the_cluster(cluster: Any) -> None:
    cluster.authorize((Operation.DESCRIBE, *ON_CLUSTER))
    refused = alter(cluster, user("alice"), gone=("bob",))
    assert refused == dict.fromkeys(("alice", "bob"), CLUSTER_AUTHORIZATION_FAILED)
    assert not cluster.image.scram
    assert describe(cluster).error_code == 0
    cluster.authorize((Operation.ALTER, *ON_CLUSTER))
    assert alter(cluster, user("alice")) == {"alice": 0}
    cluster.authorize((Operation.ALL, ResourceType.USER, "*"))
    for names in (("alice",), ()):
        response = describe(cluster, *names)
        assert response.error_code == CLUSTER_AUTHORIZATION_FAILED
        assert all(each.error_code == CLUSTER_AUTHORIZATION_FAILED for each in response.results)
        assert not any(each.credential_infos for each in response.results)
