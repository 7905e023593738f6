"""Share partitions whose state is kept by a coordinator on another broker.

Two nodes, each with metadata of its own; the one is told that the other leads `__share_group_state`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ottla.client.errors import Unreachable
from ottla.core.share import SharePartitionKey
from ottla.core.types import SHARE_GROUP_STATE
from ottla.protocol import errors
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.runtime import share_states
from ottla.server.handlers import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.server.handlers.delete_groups import delete_groups
from ottla.server.handlers.describe_share_group_offsets import describe_share_group_offsets
from tests.unit.server.share.sharing import LONG_S, Member, SharingNode, offsets

ACCEPT = 1
HERE, THERE = 1, 2
HANDLERS: dict[str, tuple[Any, int]] = {
    "DeleteShareGroupStateRequest": (delete_share_group_state.delete_share_group_state, 0),
    "InitializeShareGroupStateRequest": (initialize_share_group_state.initialize_share_group_state, 0),
    "ReadShareGroupStateRequest": (read_share_group_state.read_share_group_state, 0),
    "ReadShareGroupStateSummaryRequest": (read_share_group_state_summary.read_share_group_state_summary, 1),
    "WriteShareGroupStateRequest": (write_share_group_state.write_share_group_state, 1),
}


class Wire:
    def __init__(self, there: SharingNode) -> None:
        self._there = there
        self.sent: list[str] = []
        self.is_cut = False

    async def ask_broker(self, broker_id: int, request: Any, response: type, **how: Any) -> Any:
        assert broker_id == THERE
        self.sent.append(type(request).__name__)
        if self.is_cut:
            raise Unreachable("there is no way")
        if isinstance(request, ListOffsetsRequest):
            found = ListOffsetsPartitionResponse(partition_index=0, offset=10)
            topic = ListOffsetsTopicResponse(name="t", partitions=[found])
            return ListOffsetsResponse(topics=[topic])
        assert how["purpose"] == "share-state"
        handler, version = HANDLERS[type(request).__name__]
        answer = await self._there.call(handler, request, version)
        assert isinstance(answer, response)
        return answer

    async def close(self) -> None:
        pass


class Pair:
    def __init__(self, path: Path) -> None:
        self.here = SharingNode(path / "1", node_id="1")
        self.there = SharingNode(path / "2", node_id="2")
        self.wire = Wire(self.there)
        self.here.node.channels = self.wire  # type: ignore[assignment]

    async def begin(self, *counts: int) -> Member:
        for each in (self.here, self.there):
            await each.node.share_state.prepare()
            await each.create("t")
            await each.configure("g", share_auto_offset_reset="earliest")
        topic = self.here.topic("t")
        self.there.node.image.topic_by_id[topic.id] = topic
        self.lead(SHARE_GROUP_STATE, THERE)
        self.here.produce("t", *counts)
        return await Member(self.here).join()

    def lead(self, name: str, leader: int) -> None:
        topic = self.here.topic(name)
        for index, state in topic.partitions.items():
            topic.partitions[index] = state._replace(leader=leader)

    async def describe(self) -> tuple[int, int, int]:
        asked = DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
        group = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[asked])
        request = DescribeShareGroupOffsetsRequest(groups=[group])
        response = await self.here.call(describe_share_group_offsets, request, 1)
        (partition,) = response.groups[0].topics[0].partitions
        return partition.error_code, partition.start_offset, partition.lag


def run(path: Path, story: Callable[[Pair], Awaitable[None]]) -> None:
    async def tell() -> None:
        pair = Pair(path)
        async with pair.here, pair.there:
            await asyncio.wait_for(story(pair), LONG_S)

    asyncio.run(tell())


def test_the_state_is_kept_there(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        member = await pair.begin(4)
        assert offsets(await member.fetch()) == [0, 1, 2, 3]
        assert await member.acknowledge(0, 1, ACCEPT) == 0
        assert all(log.log.end_offset == 0 for log in pair.here.state_logs())
        pair.here.node.shares.drop_group("g")  # as if this broker had just become the leader
        member.session_epoch = 0
        assert offsets(await member.fetch()) == [2, 3]
        assert await pair.describe() == (0, 0, 2)
        assert set(pair.wire.sent) >= {
            "InitializeShareGroupStateRequest",
            "ReadShareGroupStateRequest",
            "ReadShareGroupStateSummaryRequest",
            "WriteShareGroupStateRequest",
        }

    run(tmp_path, story)


def test_the_lag_is_asked_of_the_partition_s_leader(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        member = await pair.begin(4)
        await member.fetch()
        assert await member.acknowledge(0, 1, ACCEPT) == 0
        pair.lead("t", THERE)
        assert await pair.describe() == (0, 0, 8)

    run(tmp_path, story)


def test_a_group_s_states_are_deleted_there(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        member = await pair.begin(4)
        await member.fetch()
        member.epoch = -1
        assert (await member.beat()).error_code == 0
        response = await pair.here.call(delete_groups, DeleteGroupsRequest(groups_names=["g"]), 2)
        assert response.results[0].error_code == 0
        key = SharePartitionKey("g", member.topic_id, 0)
        assert all(key not in machine._states for _, machine in pair.there.node.share_state.partitions())
        assert pair.wire.sent[-1] == "DeleteShareGroupStateRequest"

    run(tmp_path, story)


def test_a_coordinator_that_moves_is_asked_again(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        member = await pair.begin(4)
        assert offsets(await member.fetch()) == [0, 1, 2, 3]
        pair.lead(SHARE_GROUP_STATE, HERE)  # it hears of the move before the coordinator there does
        pair.lead(SHARE_GROUP_STATE, THERE)
        pair.wire.is_cut = True
        asking = asyncio.ensure_future(member.acknowledge(0, 1, ACCEPT))
        await asyncio.sleep(0.02)
        pair.wire.is_cut = False
        assert await asking == 0
        assert pair.wire.sent.count("WriteShareGroupStateRequest") >= 2

    run(tmp_path, story)


def test_one_that_stays_away_is_not_available(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        member = await pair.begin(4)
        await member.fetch()
        pair.wire.is_cut = True
        before = len(pair.wire.sent)
        assert await member.acknowledge(0, 1, ACCEPT) == errors.CoordinatorNotAvailable.code
        assert len(pair.wire.sent) - before == len(share_states.PAUSES) + 1

    run(tmp_path, story)
