"""Users of a cluster, as far as it knows their SCRAM credentials. A password never leaves this process."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.core.scram import BY_NUMBER, MIN_ITERATIONS, ScramMechanism, salted_password
from ottla.protocol.errors import ResourceNotFound
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

SALT_BYTES: Final = 32


@dataclass(slots=True)
class User:
    name: str
    # How often the password of each mechanism was salted.
    iterations: dict[ScramMechanism, int] = field(default_factory=dict)


async def list_users(cluster: Cluster, names: Sequence[str] = ()) -> list[User]:
    """Those of these names who are there; without any name, everybody."""
    request = DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in dict.fromkeys(names)] or None
    )

    async def once() -> list[User]:
        response = await cluster.ask(request, DescribeUserScramCredentialsResponse)
        check(response.error_code, "the users", response.error_message)
        users = []
        for each in response.results:
            if each.error_code == ResourceNotFound.code:
                continue
            check(each.error_code, f"user {each.user}", each.error_message)
            known = {
                BY_NUMBER[info.mechanism]: info.iterations
                for info in each.credential_infos
                if info.mechanism in BY_NUMBER
            }
            users.append(User(each.user, known))
        return sorted(users, key=lambda user: user.name)

    return await cluster.persist(once)


async def set_password(
    cluster: Cluster,
    name: str,
    password: str,
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256,
    iterations: int = MIN_ITERATIONS,
) -> None:
    """Let a user log in with this password, and no longer with the one from before."""
    salt = secrets.token_bytes(SALT_BYTES)
    salted = await asyncio.to_thread(salted_password, mechanism, password, salt, iterations)
    upsertion = ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )
    await _alter(cluster, name, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


async def remove_password(cluster: Cluster, name: str, mechanism: ScramMechanism) -> None:
    """Raises ResourceNotFound where there is none."""
    deletion = ScramCredentialDeletion(name=name, mechanism=mechanism)
    await _alter(cluster, name, AlterUserScramCredentialsRequest(deletions=[deletion]))


async def _alter(cluster: Cluster, name: str, request: AlterUserScramCredentialsRequest) -> None:
    async def once() -> None:
        response = await cluster.ask(request, AlterUserScramCredentialsResponse)
        for each in response.results:
            check(each.error_code, f"user {name}", each.error_message)

    await cluster.persist(once)
