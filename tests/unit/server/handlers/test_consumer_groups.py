"""The handlers of consumer groups: every version, on a shard in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.groups.shard import GroupMachine
from ottla.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    KafkaError,
    NotCoordinator,
)
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.server.context import Context
from ottla.server.handlers.consumer_group_describe import consumer_group_describe
from ottla.server.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard


class GroupsInMemory:
    """A coordinator with one shard. `error` is for all who call."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        topics = ScenarioTopics()
        topics.add("t", 3)
        settings = BrokerSettings()
        self.shard = MemoryShard(
            lambda: GroupMachine(settings=lambda: settings, topics=topics, new_id=lambda: Uuid(b"i" * 16))
        )

    async def call(self, key: str, command: Callable[..., Any]) -> Any:
        if self.error is not None:
            raise self.error
        return self.shard.call(command)


class Asked:
    """Stands for the node and the connection of one request."""

    client_host = "/127.0.0.1"
    authorizer = None

    def __init__(self, groups: GroupsInMemory) -> None:
        self.groups = groups


def asking(groups: GroupsInMemory, version: int) -> Context:
    asked = Asked(groups)
    return Context(version, "client", asked, asked)  # type: ignore[arg-type]


@pytest.fixture
def groups() -> GroupsInMemory:
    return GroupsInMemory()


def heartbeat(groups: GroupsInMemory, version: int, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(**{"group_id": "g", **fields})
    return asyncio.run(consumer_group_heartbeat(request, asking(groups, version)))


def describe(groups: GroupsInMemory, *group_ids: str, operations: bool = False) -> list[Any]:
    request = ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=operations
    )
    return asyncio.run(consumer_group_describe(request, asking(groups, 1))).groups


JOINING: dict[str, Any] = {
    "rebalance_timeout_ms": 60_000,
    "topic_partitions": [],
    "subscribed_topic_names": ["t"],
}


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_in_every_version(groups: GroupsInMemory, version: int) -> None:
    joined = heartbeat(groups, version, member_id="m", **JOINING)

    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
    assert [each.partitions for each in joined.assignment.topic_partitions] == [[0, 1, 2]]


def test_an_error_has_its_message(groups: GroupsInMemory) -> None:
    refused = heartbeat(groups, 1, member_id="m", **JOINING | {"rebalance_timeout_ms": -1})
    assert refused.error_code == InvalidRequest.code
    assert refused.error_message == "RebalanceTimeoutMs must be provided in first request."

    heartbeat(groups, 1, member_id="m", **JOINING)
    fenced = heartbeat(groups, 1, member_id="m", member_epoch=7)
    assert (fenced.error_code, fenced.member_epoch) == (FencedMemberEpoch.code, 0)
    assert "greater member epoch (7)" in fenced.error_message

    groups.error = NotCoordinator()
    assert heartbeat(groups, 1, member_id="m", member_epoch=2).error_code == NotCoordinator.code


def test_groups_are_described_and_those_that_are_none_are_not(groups: GroupsInMemory) -> None:
    heartbeat(groups, 1, member_id="m", **JOINING)

    found, missing, nameless = describe(groups, "g", "h", "", operations=True)

    assert (found.error_code, found.group_state, found.group_epoch) == (0, "Stable", 2)
    assert found.members[0].client_id == "client"
    assert found.authorized_operations > 0
    assert (missing.group_id, missing.error_code) == ("h", GroupIdNotFound.code)
    assert missing.error_message == "Group h not found."
    assert nameless.error_code == InvalidGroupId.code
