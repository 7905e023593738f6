"""FindCoordinator on a whole node: the first to ask brings the internal topic about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.config.broker import broker_settings, development_defaults
from ottla.config.listeners import Listeners
from ottla.core.types import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.protocol.errors import CoordinatorNotAvailable, InvalidRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.runtime.node import Node
from ottla.server.context import Context
from ottla.server.handlers.find_coordinator import GROUP, SHARE, TRANSACTION, find_coordinator
from ottla.testing.disk import UnsyncedFiles

LONG_S = 30
SHARE_KEY = "group:AAAAAAAAAAAAAAAAAAAAZQ:3"


class DialledConnection(NamedTuple):
    listener_name: str = "PLAINTEXT"
    dialled_host: str = "10.1.2.3"
    dialled_port: int = 19092


Story = Callable[[Node], Awaitable[None]]


def run(path: Path, story: Story, **properties: str) -> None:
    given = {"log.dirs": str(path), "listeners": "PLAINTEXT://127.0.0.1:9092"}
    given |= {name.replace("_", "."): value for name, value in properties.items()}
    given = development_defaults(given) | given

    async def tell() -> None:
        settings = broker_settings(given)
        node = Node(given, settings, Listeners.parse(settings), files=UnsyncedFiles())
        try:
            await node.load()
            await node.join([("127.0.0.1", 9092)])
            await asyncio.wait_for(story(node), LONG_S)
        finally:
            await node.stop()

    asyncio.run(tell())


async def find(node: Node, version: int, key_type: int, *keys: str) -> FindCoordinatorResponse:
    connection: Any = DialledConnection()
    request = FindCoordinatorRequest(key_type=key_type)
    if version < 4:
        [request.key] = keys
    else:
        request.coordinator_keys = list(keys)
    return await find_coordinator(request, Context(version, "client", connection, node))


@pytest.mark.parametrize("version", range(4))
def test_a_single_key_is_answered_with_the_address_that_was_dialled(tmp_path: Path, version: int) -> None:
    async def story(node: Node) -> None:
        response = await find(node, version, GROUP, "g")
        assert response == FindCoordinatorResponse(
            error_message="NONE", node_id=1, host="10.1.2.3", port=19092
        )

    run(tmp_path, story)


@pytest.mark.parametrize("version", range(4, 7))
def test_several_keys_are_answered_one_by_one(tmp_path: Path, version: int) -> None:
    async def story(node: Node) -> None:
        response = await find(node, version, TRANSACTION, "t", "u")
        assert [(c.key, c.error_code, c.node_id, c.host, c.port) for c in response.coordinators] == [
            ("t", 0, 1, "10.1.2.3", 19092),
            ("u", 0, 1, "10.1.2.3", 19092),
        ]
        assert (await find(node, version, GROUP)).coordinators == []

    run(tmp_path, story)


@pytest.mark.parametrize(
    ("key_type", "key", "topic", "settings"),
    [
        (GROUP, "g", CONSUMER_OFFSETS, {"cleanup_policy": {"compact"}, "compression_type": "producer"}),
        (
            TRANSACTION,
            "t",
            TRANSACTION_STATE,
            {"cleanup_policy": {"compact"}, "compression_type": "uncompressed", "min_insync_replicas": 1},
        ),
        (SHARE, SHARE_KEY, SHARE_GROUP_STATE, {"cleanup_policy": {"delete"}, "retention_ms": -1}),
    ],
)
def test_the_first_to_ask_has_the_topic_made(
    tmp_path: Path, key_type: int, key: str, topic: str, settings: dict[str, object]
) -> None:
    async def story(node: Node) -> None:
        assert topic not in node.image.topics
        responses = await asyncio.gather(*(find(node, 6, key_type, key) for _ in range(5)))
        assert [c.error_code for response in responses for c in response.coordinators] == [0] * 5
        assert set(node.image.topics) == {topic}
        assert len(node.image.topics[topic].partitions) == 50
        made = node.topic_settings(topic)
        assert {name: getattr(made, name) for name in settings} == settings
        assert made.segment_bytes == 100 * 1024 * 1024
        # Whoever was told of the coordinator finds it there.
        assert all(partition.is_leader for partition in node.replicas)

    run(tmp_path, story)


def test_a_topic_that_cannot_be_made_leaves_no_coordinator(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        old = await find(node, 3, GROUP, "g")
        assert (old.error_code, old.node_id, old.host, old.port) == (CoordinatorNotAvailable.code, -1, "", -1)
        [answer] = (await find(node, 4, GROUP, "g")).coordinators
        assert (answer.error_code, answer.node_id) == (CoordinatorNotAvailable.code, -1)

    run(tmp_path, story, offsets_topic_replication_factor="3")


@pytest.mark.parametrize(
    ("version", "key_type", "key"),
    [
        (1, 9, "g"),
        (4, -1, "g"),
        (5, SHARE, SHARE_KEY),  # only from version 6 on
        (6, SHARE, "group"),
        (6, SHARE, ""),
        (6, SHARE, "group:not-an-id:0"),
        (6, SHARE, ":AAAAAAAAAAAAAAAAAAAAZQ:3"),
        (6, SHARE, "group:AAAAAAAAAAAAAAAAAAAAZQ:-1"),
        (6, SHARE, "group:AAAAAAAAAAAAAAAAAAAAZQ:x"),
    ],
)
def test_what_is_no_key_of_its_type_is_an_invalid_request(
    tmp_path: Path, version: int, key_type: int, key: str
) -> None:
    async def story(node: Node) -> None:
        response = await find(node, version, key_type, key)
        answer: Any = response if version < 4 else response.coordinators[0]
        assert (answer.error_code, answer.node_id, answer.port) == (InvalidRequest.code, -1, -1)
        assert not node.image.topics

    run(tmp_path, story)


def test_after_a_restart_the_topic_is_there(tmp_path: Path) -> None:
    ids = []

    async def story(node: Node) -> None:
        [answer] = (await find(node, 4, GROUP, "g")).coordinators
        assert answer.error_code == 0
        ids.append(node.image.topics[CONSUMER_OFFSETS].id)

    run(tmp_path, story)
    run(tmp_path, story)
    assert ids[0] == ids[1]
