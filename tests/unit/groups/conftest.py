"""A shard of groups in memory, and short ways to say things to it."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.groups.shard import GroupMachine
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard, Ticket

HOST = "/127.0.0.1"


class GroupShard(MemoryShard[GroupMachine]):
    """Settings may be changed at any time by assignment; topics `t` (4 partitions) and `u` (1) exist."""

    def __init__(self, **settings: Any) -> None:
        self.settings = BrokerSettings(**{"group_initial_rebalance_delay_ms": 0, **settings})
        self.topics = ScenarioTopics()
        self.topics.add("t", 4)
        self.topics.add("u", 1)
        self._ids = 0
        super().__init__(self._machine)

    def _machine(self) -> GroupMachine:
        return GroupMachine(settings=lambda: self.settings, topics=self.topics, new_id=self._new_id)

    def _new_id(self) -> Uuid:
        self._ids += 1
        return Uuid(self._ids.to_bytes(16, "big"))

    def join(self, who: str = "c", *, version: int = 3, metadata: bytes = b"", **fields: Any) -> Ticket:
        fields.setdefault("protocols", [JoinGroupRequestProtocol(name="range", metadata=metadata)])
        usual: dict[str, Any] = {"group_id": "g", "protocol_type": "consumer"}
        usual |= {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
        request = JoinGroupRequest(**usual | fields)
        caller = Caller(who, HOST, version)
        return self.run(lambda machine, now, ticket: machine.join_group(request, caller, now, ticket))

    def sync(self, joined: JoinGroupResponse, assignments: dict[str, bytes] | None = None) -> Ticket:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )
        caller = Caller("", HOST, 5)
        return self.run(lambda machine, now, ticket: machine.sync_group(request, caller, now, ticket))

    def stable(self, **fields: Any) -> JoinGroupResponse:
        """A group of one member that has all there is."""
        ticket = self.join(**fields)
        self.advance(0)
        joined: JoinGroupResponse = ticket.reply
        synced: SyncGroupResponse = self.sync(joined, {joined.member_id: b"all"}).reply
        assert synced.assignment == b"all"
        return joined

    def commit(self, *, version: int = 9, topic: str = "t", **fields: Any) -> OffsetCommitResponse:
        """Commits offset 5 of partition 0, unless told otherwise."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        fields.setdefault("topics", [OffsetCommitRequestTopic(name=topic, partitions=[partition])])
        request = OffsetCommitRequest(**{"group_id": "g"} | fields)
        caller = Caller("c", HOST, version)
        reply: OffsetCommitResponse = self.call(
            lambda machine, now, _: machine.offset_commit(request, caller, now)
        )
        return reply


@pytest.fixture
def shard() -> GroupShard:
    return GroupShard()
