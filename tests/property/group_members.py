"""Consumers without a network: they speak to a shard of groups as real clients do, and know what they own.

A step of a client is one request and what it makes of the answer. An answer may be lost, and the client
crash or be slow to give up partitions, as the test wants it.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.embedded import assignment_bytes, partitions_of, read_assignment, read_subscription
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.shard import GroupMachine
from ottla.protocol import codec
from ottla.protocol.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
    UnreleasedInstanceId,
    error_class,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.stored.consumer_protocol import ConsumerProtocolSubscription, TopicPartition
from ottla.testing.shard import MemoryShard, Ticket

HOST = "/127.0.0.1"
Partition = tuple[Uuid, int]
Shard = MemoryShard[GroupMachine]


def by_topic(owned: set[Partition]) -> dict[Uuid, list[int]]:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, index in sorted(owned):
        topics.setdefault(topic_id, []).append(index)
    return topics


class Client:
    """What all clients have."""

    def __init__(self, shard: Shard, name: str, topics: list[str]) -> None:
        self.shard = shard
        self.name = name
        self.topics = topics
        self.owned: set[Partition] = set()

    @property
    def is_member(self) -> bool:
        """Whether the coordinator still counts on it; if not it is a zombie until it hears of it."""
        raise NotImplementedError

    def step(self, *, lost: bool = False) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError


class ConsumerClient(Client):
    """Speaks the consumer protocol (KIP-848)."""

    def __init__(
        self,
        shard: Shard,
        name: str,
        topics: list[str],
        *,
        regex: str | None = None,
        instance_id: str | None = None,
    ) -> None:
        super().__init__(shard, name, topics)
        self.member_id = name
        self.regex = regex
        self.instance_id = instance_id
        self.epoch = 0
        self.given: set[Partition] | None = None  # told, and not yet acted upon
        self.reported: set[Partition] | None = None  # what it last said it has
        self.says_all = True  # after joining, and when an answer was lost
        self.has_news = False  # a subscription that the coordinator does not know

    @property
    def is_member(self) -> bool:
        group = self.shard.machine.groups.get("g")
        return (
            isinstance(group, ConsumerGroup)
            and self.member_id in group.members
            and self.epoch > 0
            and group.members[self.member_id].epoch > 0
        )

    def reconcile(self) -> None:
        """Give up what is not its own any more, and take what is new."""
        if self.given is not None:
            self.owned, self.given = self.given, None

    def subscribe(self, topics: list[str], regex: str | None) -> None:
        self.topics, self.regex, self.has_news = topics, regex, True

    def step(self, *, lost: bool = False) -> None:
        says_all = self.says_all or self.epoch == 0
        says_owned = says_all or self.owned != self.reported
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=20_000 if says_all else -1,
            subscribed_topic_names=self.topics if says_all or self.has_news else None,
            subscribed_topic_regex=(self.regex or "") if says_all or self.has_news else None,
            topic_partitions=(
                [TopicPartitions(topic_id=t, partitions=p) for t, p in by_topic(self.owned).items()]
                if says_owned
                else None
            ),
        )
        reported = set(self.owned)
        ticket = self._send(request)
        if lost:
            self.says_all = True
            return
        if ticket.error is not None:
            self._failed(ticket.error)
            return
        reply: ConsumerGroupHeartbeatResponse = ticket.reply
        assert reply.member_epoch >= self.epoch, "an epoch must not go back"
        self.epoch = reply.member_epoch
        self.says_all = self.has_news = False
        if says_owned:
            self.reported = reported
        if reply.assignment is not None:
            self.given = {(t.topic_id, i) for t in reply.assignment.topic_partitions for i in t.partitions}

    def _send(self, request: ConsumerGroupHeartbeatRequest) -> Ticket:
        caller = Caller(self.name, HOST, 1)
        return self.shard.run(lambda machine, now, _: machine.consumer_group_heartbeat(request, caller, now))

    def _failed(self, error: KafkaError) -> None:
        assert isinstance(
            error,
            FencedMemberEpoch
            | UnknownMemberId
            | UnreleasedInstanceId
            | FencedInstanceId
            | GroupIdNotFound,  # it is a classic group, and may not be upgraded
        ), repr(error)
        self._lose()

    def _lose(self) -> None:
        self.epoch, self.owned, self.given, self.reported, self.says_all = 0, set(), None, None, True

    def leave(self) -> None:
        if self.epoch:
            self._send(
                ConsumerGroupHeartbeatRequest(
                    group_id="g", member_id=self.member_id, member_epoch=-1, instance_id=self.instance_id
                )
            )
        self._lose()

    def bounce(self, member_id: str) -> None:
        """A static member stops, to come back as another process."""
        assert self.instance_id is not None
        if self.epoch:
            self._send(
                ConsumerGroupHeartbeatRequest(
                    group_id="g", member_id=self.member_id, member_epoch=-2, instance_id=self.instance_id
                )
            )
        self._lose()
        self.member_id = member_id


class ClassicClient(Client):
    """Speaks the classic protocol: eager, it lets go of everything to rejoin; cooperative, it does not."""

    def __init__(self, shard: Shard, name: str, topics: list[str], *, cooperative: bool) -> None:
        super().__init__(shard, name, topics)
        self.cooperative = cooperative
        self.member_id = ""
        self.generation = -1
        self.state = "out"
        self.ticket: Ticket | None = None
        self.joined: JoinGroupResponse | None = None

    @property
    def is_member(self) -> bool:
        group = self.shard.machine.groups.get("g")
        return isinstance(group, ConsumerGroup | ClassicGroup) and self.member_id in group.members

    def step(self, *, lost: bool = False) -> None:
        if self.ticket is not None and self.ticket.waits:
            if self.ticket_is_dead():
                self.ticket = None  # the coordinator has moved: the connection broke
            else:
                return
        if self.ticket is not None:
            ticket, self.ticket = self.ticket, None
            if lost:
                self.state = "out"
                return
            self._answered(ticket)
        elif self.state == "out":
            self._join()
        elif self.state == "joined":
            self._sync()
        else:
            self._beat()

    def ticket_is_dead(self) -> bool:
        group = self.shard.machine.groups.get("g")
        if not isinstance(group, ClassicGroup):
            return True
        member = group.members.get(self.member_id)
        waiting = [] if member is None else [member.joining, member.syncing]
        return not any(each is self.ticket for each in waiting) and not any(
            self.ticket in (each.joining, each.syncing) for each in group.members.values()
        )

    def _join(self) -> None:
        if not self.cooperative:
            self.owned = set()
        subscription = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[
                TopicPartition(topic=name, partitions=indices)
                for topic_id, indices in by_topic(self.owned).items()
                if (name := self.shard.machine.topics.name_of(topic_id)) is not None
            ],
            generation_id=self.generation,
        )
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(
                    name="cooperative-sticky" if self.cooperative else "range",
                    metadata=struct.pack(">h", 3) + codec.encode(subscription, 3),
                )
            ],
        )
        caller = Caller(self.name, HOST, 9)
        self.ticket = self.shard.run(
            lambda machine, now, ticket: machine.join_group(request, caller, now, ticket), owner="join"
        )

    def _sync(self) -> None:
        assert self.joined is not None
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in self._assign(self.joined).items()
            ],
        )
        caller = Caller(self.name, HOST, 5)
        self.ticket = self.shard.run(
            lambda machine, now, ticket: machine.sync_group(request, caller, now, ticket), owner="sync"
        )

    def _assign(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        """The leader's work: partitions in turn, but none that its owner has not let go of."""
        topics = self.shard.machine.topics
        members = {each.member_id: read_subscription(each.metadata) for each in joined.members}
        owners = {
            partition: member_id
            for member_id, subscription in members.items()
            for partition in partitions_of(subscription.owned_partitions, topics)
        }
        assigned: dict[str, set[Partition]] = {member_id: set() for member_id in members}
        for topic in sorted({topic for each in members.values() for topic in each.topics}):
            topic_id, count = topics.topic_id(topic), topics.partition_count(topic)
            wants = sorted(member_id for member_id, each in members.items() if topic in each.topics)
            for index in range(count or 0):
                assert topic_id is not None
                member_id = wants[index % len(wants)]
                if owners.get((topic_id, index), member_id) == member_id:
                    assigned[member_id].add((topic_id, index))
        return {
            member_id: assignment_bytes(partitions, topics, struct.pack(">h", 3))
            for member_id, partitions in assigned.items()
        }

    def _beat(self) -> None:
        request = HeartbeatRequest(group_id="g", generation_id=self.generation, member_id=self.member_id)
        caller = Caller(self.name, HOST, 4)
        self.ticket = self.shard.run(
            lambda machine, now, _: machine.heartbeat(request, caller, now), owner="beat"
        )
        self.step()

    def _answered(self, ticket: Ticket) -> None:
        error = ticket.error
        code = getattr(ticket.reply, "error_code", 0)
        if error is None and code:
            error = error_class(code)()
        if error is not None:
            self._failed(error, ticket.reply)
        elif ticket.owner == "join":
            self.joined = ticket.reply
            self.member_id, self.generation = ticket.reply.member_id, ticket.reply.generation_id
            self.state = "joined"
            self._sync()
            self.step()
        elif ticket.owner == "sync":
            topics = self.shard.machine.topics
            given = set(partitions_of(read_assignment(ticket.reply.assignment).assigned_partitions, topics))
            gives_up = self.owned - given
            self.owned = given
            self.state = "out" if self.cooperative and gives_up else "in"

    def _failed(self, error: KafkaError, reply: Any) -> None:
        assert isinstance(
            error,
            MemberIdRequired
            | UnknownMemberId
            | IllegalGeneration
            | RebalanceInProgress
            | InconsistentGroupProtocol,
        ), repr(error)
        self.state = "out"
        if isinstance(error, MemberIdRequired):
            self.member_id = reply.member_id
        elif isinstance(error, UnknownMemberId):
            self.member_id, self.generation, self.owned = "", -1, set()
        elif isinstance(error, IllegalGeneration):
            self.generation, self.owned = -1, set()

    def leave(self) -> None:
        if self.member_id and (self.ticket is None or not self.ticket.waits):
            request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=self.member_id)])
            caller = Caller(self.name, HOST, 5)
            self.shard.run(lambda machine, now, _: machine.leave_group(request, caller, now))
        self.member_id, self.generation, self.owned = "", -1, set()
        self.state, self.ticket = "out", None
