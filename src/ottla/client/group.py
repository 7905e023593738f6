"""A member of a consumer group, by the classic protocol: join, be given partitions, commit, leave.

The member that the coordinator makes leader divides the partitions, by range as Kafka's consumer does by
default. While it is a member a task heartbeats; when that finds out that the group rebalances,
`must_rejoin` is true and whoever consumes is to commit and `join` again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from struct import Struct
from types import TracebackType
from typing import Final, Self

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, check
from ottla.client.topology import GROUP
from ottla.core.types import TopicPartition
from ottla.protocol.codec import decode, encode
from ottla.protocol.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ottla.protocol.stored.consumer_protocol import (
    TopicPartition as AssignedTopic,
)

SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 60_000
_HEARTBEAT_SECONDS: Final = SESSION_MS / 1000 / 5
_VERSION: Final = Struct(">h")
_SUBSCRIPTION_VERSION: Final = 0
# The newest version in which topics have names. A member commits to topics that it was assigned by name.
_COMMIT_BY_NAME: Final = 9

Assignment = dict[str, list[TopicPartition]]


class GroupMember:
    """`async with GroupMember(cluster, "readers", ["orders"]) as member: await member.join()`."""

    def __init__(self, cluster: Cluster, group_id: str, topics: Sequence[str]) -> None:
        self.cluster, self.group_id, self.topics = cluster, group_id, sorted(set(topics))
        self.member_id = ""
        self.generation_id = -1
        self.rebalancing = asyncio.Event()
        self.rebalancing.set()
        self._tasks = asyncio.TaskGroup()
        self._heartbeats: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stop_heartbeats()
            await self.leave()
        finally:
            await self._tasks.__aexit__(None, None, None)

    @property
    def must_rejoin(self) -> bool:
        return self.rebalancing.is_set()

    async def join(self) -> list[TopicPartition]:
        """Take part in a rebalance; answers the partitions that are ours until the next."""
        self._stop_heartbeats()
        assigned = await self.cluster.persist(self._join)
        self.rebalancing.clear()
        self._heartbeats = self._tasks.create_task(self._beat())
        return assigned

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note how far we have read. Raises RebalanceInProgress and the like if these are no longer ours."""
        if offsets:
            await self.cluster.persist(
                lambda: commit_offsets(
                    self.cluster,
                    self.group_id,
                    offsets,
                    generation_id=self.generation_id,
                    member_id=self.member_id,
                )
            )

    async def leave(self) -> None:
        """Hand our partitions to the others now, instead of when the session ends."""
        if not self.member_id:
            return
        member = MemberIdentity(member_id=self.member_id, reason="the consumer is being closed")
        request = LeaveGroupRequest(group_id=self.group_id, members=[member])
        with suppress(ClientError, KafkaError):  # if it fails, the end of the session does it
            await self.cluster.ask_coordinator(GROUP, self.group_id, request, LeaveGroupResponse, within=5.0)
        self.member_id, self.generation_id = "", -1

    async def _join(self) -> list[TopicPartition]:
        while True:
            joined = await self._ask_to_join()
            try:
                return await self._sync(joined)
            except (RebalanceInProgress, IllegalGeneration):
                continue  # somebody else joined meanwhile
            except UnknownMemberId:
                self.member_id = ""

    async def _ask_to_join(self) -> JoinGroupResponse:
        subscription = ConsumerProtocolSubscription(topics=self.topics)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(
                    name="range",
                    metadata=_VERSION.pack(_SUBSCRIPTION_VERSION)
                    + encode(subscription, _SUBSCRIPTION_VERSION),
                )
            ],
        )
        while True:
            request.member_id = self.member_id
            # The coordinator holds the answer until everybody has joined.
            patience = REBALANCE_MS / 1000 + self.cluster.timeout
            joined = await self.cluster.ask_coordinator(
                GROUP, self.group_id, request, JoinGroupResponse, within=patience
            )
            if joined.error_code == MemberIdRequired.code:
                self.member_id = joined.member_id
            elif joined.error_code == UnknownMemberId.code and self.member_id:
                self.member_id = ""
            else:
                self._check(joined.error_code)
                self.member_id, self.generation_id = joined.member_id, joined.generation_id
                return joined

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
        )
        if joined.leader == self.member_id and not joined.skip_assignment:
            request.assignments = await self._divide(joined.members)
        synced = await self.cluster.ask_coordinator(GROUP, self.group_id, request, SyncGroupResponse)
        self._check(synced.error_code)
        return read_assignment(synced.assignment)

    async def _divide(self, members: Sequence[JoinGroupResponseMember]) -> list[SyncGroupRequestAssignment]:
        wanted = {each.member_id: read_subscription(each.metadata) for each in members}
        counts = {}
        for name in sorted({name for topics in wanted.values() for name in topics}):
            try:
                counts[name] = len((await self.cluster.topic(name)).partitions)
            except UnknownTopicOrPartition:
                continue
        divided = divide_by_range(wanted, counts)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in divided.items()
        ]

    async def _beat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id
        )
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            try:
                answer = await self.cluster.ask_coordinator(
                    GROUP, self.group_id, request, HeartbeatResponse, within=SESSION_MS / 1000
                )
                self._check(answer.error_code)
            except (UnknownMemberId, IllegalGeneration, FencedInstanceId):
                self.member_id = ""
                self.rebalancing.set()
                return
            except RebalanceInProgress:
                self.rebalancing.set()  # and go on: the membership lasts until we join again
            except (ClientError, KafkaError):
                continue  # the coordinator is away or moves; the session outlives a few beats

    def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            self._heartbeats = None

    def _check(self, code: int) -> None:
        if code:
            self.cluster.lost_coordinator(GROUP, self.group_id)
        check(code, f"group {self.group_id}")


async def commit_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    generation_id: int = -1,
    member_id: str = "",
) -> None:
    """Commit as a member, or from outside to a group that has none."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for partition, offset in offsets.items():
        topic = topics.setdefault(
            partition.topic, OffsetCommitRequestTopic(name=partition.topic, partitions=[])
        )
        topic.partitions.append(
            OffsetCommitRequestPartition(partition_index=partition.partition, committed_offset=offset)
        )
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=list(topics.values()),
    )
    response = await cluster.ask_coordinator(
        GROUP, group_id, request, OffsetCommitResponse, at_most=_COMMIT_BY_NAME
    )
    for answered in response.topics:
        for each in answered.partitions:
            if each.error_code:
                cluster.lost_coordinator(GROUP, group_id)
            check(each.error_code, f"group {group_id}, partition {answered.name}-{each.partition_index}")


def divide_by_range(wanted: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assignment:
    """Of each topic, consecutive partitions to each of its subscribers, in the order of their ids."""
    divided: Assignment = {member_id: [] for member_id in wanted}
    for topic, count in sorted(counts.items()):
        subscribers = sorted(member_id for member_id, topics in wanted.items() if topic in topics)
        if not subscribers:
            continue
        each, extra = divmod(count, len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + each + (index < extra)
            divided[member_id] += (TopicPartition(topic, partition) for partition in range(start, end))
            start = end
    return divided


def read_subscription(data: bytes) -> list[str]:
    return decode(ConsumerProtocolSubscription, _known_version(data, 3), data, 2).topics


def read_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions of an assignment; empty bytes are none."""
    if len(data) < 2:
        return []
    assignment = decode(ConsumerProtocolAssignment, _known_version(data, 3), data, 2)
    return [TopicPartition(t.topic, index) for t in assignment.assigned_partitions for index in t.partitions]


def write_assignment(partitions: Sequence[TopicPartition]) -> bytes:
    topics: dict[str, AssignedTopic] = {}
    for each in partitions:
        topics.setdefault(each.topic, AssignedTopic(topic=each.topic, partitions=[])).partitions.append(
            each.partition
        )
    assignment = ConsumerProtocolAssignment(assigned_partitions=list(topics.values()))
    return _VERSION.pack(_SUBSCRIPTION_VERSION) + encode(assignment, _SUBSCRIPTION_VERSION)


def _known_version(data: bytes, newest: int) -> int:
    # Newer versions only append fields, so what we know of them is in the newest one we know.
    (version,) = _VERSION.unpack_from(data)
    return max(0, min(int(version), newest))
