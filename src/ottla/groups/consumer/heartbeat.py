"""ConsumerGroupHeartbeat: how a member joins, stays in and leaves a consumer group."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.config.broker import BrokerSettings
from ottla.core.caller import Caller
from ottla.core.outcome import Now, Outcome
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer import membership, migration, records
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import AWAY, JOINING, LEFT, Member, by_topic
from ottla.groups.consumer.progress import Progress
from ottla.groups.consumer.target import assignors
from ottla.groups.group import Group
from ottla.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitionsResponse,
)

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine

OWN_ID_SINCE: Final = 1  # the version in which members make their own id
# Who waits for partitions is asked to come back this soon. Kafka leaves it at the heartbeat interval, and a
# consumer that was started a moment after another has nothing to do for up to ten seconds.
WAITING_INTERVAL_MS: Final = 1_000


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, settings: BrokerSettings) -> None:
    """Raise unless the request makes sense by itself."""
    epoch = request.member_epoch
    if version >= OWN_ID_SINCE or epoch > 0 or epoch == LEFT:
        _require(request.member_id.strip(), "MemberId can't be empty.")
    _require(request.group_id.strip(), "GroupId can't be empty.")
    _require(request.instance_id is None or request.instance_id.strip(), "InstanceId can't be empty.")
    _require(request.rack_id is None or request.rack_id.strip(), "RackId can't be empty.")
    if epoch == JOINING:
        _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
        _require(
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif epoch == AWAY:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require(epoch >= LEFT, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors(settings):
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors(settings))}."
        )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise InvalidRequest(message)


def heartbeat(
    machine: GroupMachine, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Now
) -> Outcome:
    check_request(request, caller.version, machine.settings())
    if request.member_epoch < 0:
        return _leave(machine, request, now)
    outcome = Outcome()
    found = machine.groups.get(request.group_id)
    group = _group(machine, request, found, outcome)
    if (
        len(group.members) >= machine.settings().group_consumer_max_size
        and request.member_id not in group.members
    ):
        raise GroupMaxSizeReached(
            "The consumer group has reached its maximum capacity of "
            f"{machine.settings().group_consumer_max_size} members."
        )
    owned = _owned(request)
    before, replaced = _member(group, request, owned, outcome)
    member = _updated(before, request, caller)
    interval_ms = machine.group_settings(group.group_id).consumer_heartbeat_interval_ms
    if caller.may_describe is not None and _is_overdue(group, now):
        group.is_stale = True
    if (
        member is not before
        or group.is_stale
        or group.epoch != group.assignment_epoch
        or not member.is_reconciled(group.epoch)
    ):
        progress = Progress(group, before, member, caller, now, outcome, replaced=replaced)
        member = progress.run(owned)
        if progress.is_waiting:
            interval_ms = min(interval_ms, WAITING_INTERVAL_MS)
    if isinstance(found, ClassicGroup):
        migration.retire(found, outcome)
        for classic in group.members.values():
            membership.heard_from(group, classic, now)
    if replaced is not None:
        machine.timeouts.forget(group.group_id, replaced)
    membership.heard_from(group, member, now)
    outcome.reply = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
    )
    if (
        request.member_epoch == JOINING
        or _is_full(request)
        or (member is not before and member.assigned != before.assigned)
    ):
        outcome.reply.assignment = assignment_of(member)
    return outcome


def _group(
    machine: GroupMachine, request: ConsumerGroupHeartbeatRequest, group: Group | None, outcome: Outcome
) -> ConsumerGroup:
    """The group; joining, a new one, or one that was classic. Those are in the machine once written."""
    if isinstance(group, ConsumerGroup):
        return group
    if request.member_epoch == JOINING:
        if group is None:
            return ConsumerGroup(request.group_id, machine)
        if isinstance(group, ClassicGroup):
            return migration.upgrade(group, outcome)
    elif group is None:
        raise GroupIdNotFound(f"Consumer group {request.group_id} not found.")
    raise GroupIdNotFound(f"Group {request.group_id} is not a consumer group.")


def _member(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    owned: Set[Partition] | None,
    outcome: Outcome,
) -> tuple[Member, str | None]:
    """The member as the group knows it, and the id of the static member whose place it takes."""
    if request.member_epoch != JOINING:
        member = group.known_member(request.member_id, request.instance_id)
        _check_epoch(member, request.member_epoch, owned)
        return member, None
    member_id = request.member_id or str(group.machine.new_id())
    if request.instance_id is None:
        return group.members.get(member_id) or Member(member_id), None
    known_as = group.static.get(request.instance_id)
    if known_as is None:
        return group.members.get(member_id) or Member(member_id), None
    known = group.members[known_as]
    if known_as == member_id:
        # Kafka refuses a static member that joins twice. It may just have missed the answer.
        return replace(known, epoch=JOINING, previous_epoch=JOINING) if known.epoch == AWAY else known, None
    if not known.is_classic and known.epoch != AWAY:
        raise UnreleasedInstanceId(
            f"Static member {member_id} with instance id {request.instance_id} cannot join the group "
            f"because the instance id is owned by {known_as} member."
        )
    return take_place(group, known, member_id, outcome), known_as


def take_place(group: ConsumerGroup, known: Member, member_id: str, outcome: Outcome) -> Member:
    """A static member is back under another id, and goes on where it was."""
    member = replace(known, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    outcome.records += records.forget_member(group.group_id, known.member_id)
    outcome.records.append(records.member_metadata(group.group_id, member))
    outcome.records.append(records.target(group.group_id, member_id, group.target_of(known.member_id)))
    outcome.records.append(records.current(group.group_id, member))
    return member


def _check_epoch(member: Member, epoch: int, owned: Set[Partition] | None) -> None:
    if epoch == member.epoch:
        return
    if epoch > member.epoch:
        raise FencedMemberEpoch(
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
    # The answer with its new epoch may have been lost. That is fine as long as it has only what is its own.
    if epoch != member.previous_epoch or owned is None or not owned <= member.assigned.keys():
        raise FencedMemberEpoch(
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """The member with what the request says of it; what it does not say is as before."""
    new: dict[str, Any] = {}
    if caller.client_id != member.client_id:
        new["client_id"] = caller.client_id
    if caller.client_host != member.client_host:
        new["client_host"] = caller.client_host
    if member.classic is not None:
        new["classic"] = None
    if request.instance_id is not None and request.instance_id != member.instance_id:
        new["instance_id"] = request.instance_id
    if request.rack_id is not None and request.rack_id != member.rack_id:
        new["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms not in (-1, member.rebalance_timeout_ms):
        new["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None and request.server_assignor != member.assignor:
        new["assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        names = frozenset(request.subscribed_topic_names)
        if names != member.topic_names:
            new["topic_names"] = names
    if request.subscribed_topic_regex is not None and request.subscribed_topic_regex != member.topic_regex:
        new["topic_regex"] = request.subscribed_topic_regex
    return replace(member, **new) if new else member


def _owned(request: ConsumerGroupHeartbeatRequest) -> Set[Partition] | None:
    if request.topic_partitions is None:
        return None
    return {(topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions}


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member that missed an answer says everything again, and has to be told everything."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _is_overdue(group: ConsumerGroup, now: Now) -> bool:
    """Whether access rules may have changed what regular expressions stand for."""
    interval_ms = group.machine.settings().group_consumer_regex_refresh_interval_ms
    return any(now.wall_ms > found.timestamp + interval_ms for found in group.resolved.values())


def assignment_of(member: Member) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitionsResponse(topic_id=topic_id, partitions=indices)
            for topic_id, indices in by_topic(member.assigned).items()
        ]
    )


def _leave(machine: GroupMachine, request: ConsumerGroupHeartbeatRequest, now: Now) -> Outcome:
    group = machine.groups.get(request.group_id)
    if group is None:
        raise GroupIdNotFound(f"Group {request.group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise GroupIdNotFound(f"Group {request.group_id} is not a consumer group.")
    member = group.known_member(request.member_id, request.instance_id)
    outcome = Outcome()
    if request.member_epoch == AWAY:
        membership.go_away(group, member, outcome)
    else:
        membership.fence(group, [member], now, outcome)
    outcome.reply = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id, member_epoch=request.member_epoch
    )
    return outcome
