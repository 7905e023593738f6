"""ShareGroupHeartbeat: how a member joins, stays in and leaves a share group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.core.outcome import Now, Outcome
from ottla.groups.assignors.subscribers import Assignment, Subscriber
from ottla.groups.consumer.group import FIRST_EPOCH
from ottla.groups.consumer.heartbeat import WAITING_INTERVAL_MS
from ottla.groups.consumer.member import JOINING, LEFT
from ottla.groups.consumer.subscriptions import metadata_hash, topic_ids
from ottla.groups.consumer.target import may_assign
from ottla.groups.share import assignor, records
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import ShareMember
from ottla.groups.share.partitions import SharedTopic
from ottla.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
)
from ottla.protocol.messages import share_group_heartbeat as message
from ottla.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine


class Initialize(NamedTuple):
    """Partitions whose state the share coordinator has to set up, and from which offset."""

    group_id: str
    state_epoch: int
    start_offsets: Mapping[Uuid, Mapping[int, int]]

    @property
    def indices(self) -> dict[Uuid, frozenset[int]]:
        return {topic_id: frozenset(offsets) for topic_id, offsets in self.start_offsets.items()}


class Heard(NamedTuple):
    """The answer to a heartbeat, and what has to be initialized; without an answer, before there is one."""

    response: ShareGroupHeartbeatResponse | None
    initialize: Initialize | None = None


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raise unless the request makes sense by itself."""
    _require(request.member_id.strip(), "MemberId can't be empty.")
    _require(request.group_id.strip(), "GroupId can't be empty.")
    _require(request.rack_id is None or request.rack_id.strip(), "RackId can't be empty.")
    if request.member_epoch == JOINING:
        _require(request.subscribed_topic_names, "SubscribedTopicNames must be set in first request.")
    else:
        _require(request.member_epoch >= LEFT, "MemberEpoch is invalid.")


def _require(condition: object, text: str) -> None:
    if not condition:
        raise InvalidRequest(text)


def heartbeat(
    machine: GroupMachine,
    request: ShareGroupHeartbeatRequest,
    caller: Caller,
    now: Now,
    *,
    may_wait: bool = False,
) -> Outcome:
    """Answers a `Heard`.

    A group that was never assigned anything has nothing to assign before its partitions are initialized. If
    the caller may wait for that there is no answer yet; it asks again afterwards.
    """
    check_request(request)
    if request.member_epoch == LEFT:
        return _leave(machine, request)
    group = _group(machine, request)
    _check_size(group, request.member_id)
    before = _member(group, request)
    step = _Step(group, before, _updated(before, request, caller), now)
    step.join()
    initialize = step.initialize()
    group.heard_from(before.member_id, now)
    if may_wait and initialize is not None and group.assignment_epoch == FIRST_EPOCH:
        step.outcome.reply = Heard(None, initialize)
        return step.outcome
    step.assign()
    step.reconcile()
    member = step.member
    interval_ms = machine.group_settings(group.group_id).share_heartbeat_interval_ms
    if initialize is not None or step.is_assignment_due:
        interval_ms = min(interval_ms, WAITING_INTERVAL_MS)
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id, member_epoch=member.epoch, heartbeat_interval_ms=interval_ms
    )
    is_full = request.member_epoch == JOINING or request.subscribed_topic_names is not None
    if is_full or member.assigned != before.assigned:
        response.assignment = _assignment(member)
    step.outcome.reply = Heard(response, initialize)
    return step.outcome


def _group(machine: GroupMachine, request: ShareGroupHeartbeatRequest) -> ShareGroup:
    group = machine.groups.get(request.group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise GroupIdNotFound(f"Group {request.group_id} is not a share group.")
    if request.member_epoch != JOINING:
        raise GroupIdNotFound(f"Share group {request.group_id} not found.")
    return ShareGroup(request.group_id, machine)  # in the machine once it is written


def _check_size(group: ShareGroup, member_id: str) -> None:
    most = group.machine.settings().group_share_max_size
    if len(group.members) >= most and member_id not in group.members:
        raise GroupMaxSizeReached(f"The share group has reached its maximum capacity of {most} members.")


def _member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    epoch = request.member_epoch
    if epoch == JOINING:
        return group.members.get(request.member_id) or ShareMember(request.member_id)
    member = group.member(request.member_id)
    if epoch > member.epoch:
        raise FencedMemberEpoch(
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
    # The answer with its new epoch may have been lost.
    if epoch not in (member.epoch, member.previous_epoch):
        raise FencedMemberEpoch(
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}), and it does not match the previous member epoch "
            f"({member.previous_epoch}). The member must abandon all its partitions and rejoin."
        )
    return member


def _updated(member: ShareMember, request: ShareGroupHeartbeatRequest, caller: Caller) -> ShareMember:
    """The member with what the request says of it; what it does not say is as before."""
    new: dict[str, Any] = {}
    if caller.client_id != member.client_id:
        new["client_id"] = caller.client_id
    if caller.client_host != member.client_host:
        new["client_host"] = caller.client_host
    if request.rack_id is not None and request.rack_id != member.rack_id:
        new["rack_id"] = request.rack_id
    if request.subscribed_topic_names is not None:
        names = frozenset(request.subscribed_topic_names)
        if names != member.topic_names:
            new["topic_names"] = names
    return replace(member, **new) if new else member


class _Step:
    """What one heartbeat moves: the member, the group's epoch, the assignment."""

    def __init__(self, group: ShareGroup, before: ShareMember, member: ShareMember, now: Now) -> None:
        self.outcome = Outcome()
        self.member = member
        self._group = group
        self._topics = group.machine.topics
        self._before = before
        self._now = now
        self._epoch = group.epoch
        self._names = group.subscribed_with(member)
        self._target_epoch = group.assignment_epoch
        self._target = group.target_of(member.member_id)
        self._is_bumped = False

    @property
    def is_assignment_due(self) -> bool:
        """Whether the group has moved on, and the last assignment is not long enough ago for another."""
        return self._target_epoch < self._epoch

    def join(self) -> None:
        """Write what is new of the member, and a new group epoch if that changes what is to be read."""
        group, member = self._group, self.member
        if member != self._before or member.member_id not in group.members:
            self.outcome.records.append(records.member_metadata(group.group_id, member))
        is_bumped = member.topic_names != self._before.topic_names
        if group.assignment_epoch >= group.epoch:
            is_bumped |= group.is_assignment_due
        if not is_bumped and not group.is_stale:
            return
        found = metadata_hash(self._names, self._topics)
        group.is_stale = False
        if is_bumped or found != group.metadata_hash:
            self._is_bumped = True
            self._epoch += 1
            self.outcome.records.append(records.group_epoch(group.group_id, self._epoch, found))

    def initialize(self) -> Initialize | None:
        """Begin with partitions that are subscribed to and have no state yet."""
        group = self._group
        if group.is_settled and self._names is group.subscribed:
            return None
        retry_after_ms = group.machine.settings().group_share_initialize_retry_interval_ms
        missing = {}
        for name in self._names:
            topic_id = self._topics.topic_id(name)
            count = self._topics.partition_count(name)
            if topic_id is None or count is None:
                continue
            indices = group.partitions.missing(topic_id, count, retry_after_ms, self._now.wall_ms)
            if indices:
                missing[topic_id] = SharedTopic(name, indices)
        if not missing:
            group.is_settled = not group.partitions.initializing
            return None
        self.outcome.records.append(group.written(group.partitions.begin(missing)))
        return Initialize(
            group.group_id,
            self._epoch,
            {topic_id: dict.fromkeys(topic.partitions, -1) for topic_id, topic in missing.items()},
        )

    def assign(self) -> None:
        """Make a new target assignment, if the group has moved on and the last one is some time ago."""
        group, now_ms = self._group, self._now.wall_ms
        if group.assignment_epoch >= self._epoch:
            return
        interval_ms = group.machine.group_settings(group.group_id).share_assignment_interval_ms
        if not may_assign(group.assigned_at_ms, interval_ms, now_ms):
            return
        for member_id, target in self._targets().items():
            if member_id == self.member.member_id:
                self._target = target
            if group.targets.get(member_id) != target:
                self.outcome.records.append(records.target(group.group_id, member_id, target))
        self._target_epoch = self._epoch
        self.outcome.records.append(records.target_epoch(group.group_id, self._epoch, now_ms))

    def _targets(self) -> dict[str, Assignment]:
        group = self._group
        known: dict[frozenset[str], frozenset[Uuid]] = {}
        subscribers = {}
        for member_id, member in {**group.members, self.member.member_id: self.member}.items():
            names = member.topic_names
            if names not in known:
                known[names] = topic_ids(names, self._topics)
            subscribers[member_id] = Subscriber(known[names], group.target_of(member_id))
        ready = {topic_id: topic.partitions for topic_id, topic in group.partitions.initialized.items()}
        return assignor.assign(subscribers, ready)

    def reconcile(self) -> None:
        """Bring the member to the target, or at least to what it still wants of it."""
        member = self.member
        if self._target_epoch == member.epoch and not self._is_bumped:
            return
        wanted = topic_ids(member.topic_names, self._topics)
        self.member = member.moved(
            self._target_epoch, frozenset(one for one in self._target if one[0] in wanted)
        )
        if self.member is not member:
            self.outcome.records.append(records.current(self._group.group_id, self.member))


def _assignment(member: ShareMember) -> message.Assignment:
    return message.Assignment(
        topic_partitions=[
            message.TopicPartitions(topic_id=topic_id, partitions=indices)
            for topic_id, indices in member.assigned_by_topic().items()
        ]
    )


def _leave(machine: GroupMachine, request: ShareGroupHeartbeatRequest) -> Outcome:
    group = machine.groups.get(request.group_id)
    if group is None:
        raise GroupIdNotFound(f"Group {request.group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise GroupIdNotFound(f"Group {request.group_id} is not a share group.")
    member = group.member(request.member_id)
    outcome = Outcome()
    group.remove(member.member_id, outcome)
    outcome.reply = Heard(
        ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
    )
    return outcome
