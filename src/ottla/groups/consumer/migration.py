"""Groups that change from the classic protocol to the consumer protocol, and back, while they run.

The first member that speaks the consumer protocol makes a classic group a consumer group; members that speak
the classic one stay in it (`classic_members.py`). When the last one that speaks the consumer protocol leaves,
the group is classic again. Members keep what they have, either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.groups.assignors.subscribers import Assignment
from ottla.groups.classic import rebalance
from ottla.groups.classic.group import CONSUMER, ClassicGroup
from ottla.groups.classic.group import State as ClassicState
from ottla.groups.classic.member import Member as ClassicMember
from ottla.groups.consumer import records
from ottla.groups.consumer.embedded import (
    assignment_bytes,
    partitions_of,
    read_assignment,
    read_subscription,
)
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.timeouts import is_running
from ottla.protocol.errors import GroupIdNotFound, RebalanceInProgress
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.protocol.stored.groups import ClassicMemberMetadata, ClassicProtocol
from ottla.protocol.wire import MalformedFrame

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine


# What these put beside the partitions is for themselves, and no loss. Kafka refuses them too when there is
# any, and librdkafka's cooperative-sticky does leave some in its assignments.
OWN_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


# Classic to consumer


def upgrade(classic: ClassicGroup, outcome: Outcome) -> ConsumerGroup:
    """The consumer group that a classic group is to become, and the records that make it one.

    It changes nothing yet: the member whose joining is the reason for it may still be refused. `retire` is
    what has to happen to the classic group if it is not.
    """
    group = ConsumerGroup(classic.group_id, classic.machine)
    if not classic.is_empty:
        _check_upgrade(classic)
        _fill(group, classic)
    outcome.records += classic.tombstones()
    if group.members:
        outcome.records += _records_of(group)
    return group


def _check_upgrade(classic: ClassicGroup) -> None:
    settings = classic.machine.settings()
    if settings.group_consumer_migration_policy.upper() not in ("UPGRADE", "BIDIRECTIONAL"):
        raise _refused(classic, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER:
        raise _refused(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.group_consumer_max_size:
        raise _refused(classic, "the group size exceeds the consumer group maximum size")


def _refused(classic: ClassicGroup, why: str) -> GroupIdNotFound:
    return GroupIdNotFound(
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
    )


def _fill(group: ConsumerGroup, classic: ClassicGroup) -> None:
    """Everybody keeps what the last generation gave them. A rebalance that was under way starts over.

    The hash of the topics is left at 0: the leader may not have assigned all there is, so the first target
    has to be made whoever it is that joins.
    """
    topics = group.machine.topics
    group.epoch = group.assignment_epoch = max(classic.generation, group.epoch)
    try:
        for old in classic.members.values():
            protocols = old.protocols
            used = protocols.get(classic.protocol or "", next(iter(protocols.values())))
            subscription = read_subscription(used)
            assignment = read_assignment(old.assignment)
            if assignment.user_data and classic.protocol not in OWN_ASSIGNORS:
                raise _refused(classic, "an unsupported custom assignor is in use")
            partitions = partitions_of(assignment.assigned_partitions, topics)
            group.members[old.member_id] = Member(
                old.member_id,
                old.instance_id,
                subscription.rack_id or None,
                old.client_id,
                old.client_host,
                old.rebalance_timeout_ms,
                frozenset(subscription.topics),
                classic=ClassicMemberMetadata(
                    session_timeout_ms=old.session_timeout_ms,
                    supported_protocols=[
                        ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()
                    ],
                ),
                epoch=group.epoch,
                previous_epoch=group.epoch,
                assigned=dict.fromkeys(partitions, group.epoch),
            )
            group.targets[old.member_id] = partitions
            group.owners.update(dict.fromkeys(partitions, old.member_id))
            if old.instance_id is not None:
                group.static[old.instance_id] = old.member_id
            group.classic_count += 1
            group.classic_protocols.update(protocols)
    except MalformedFrame:
        raise _refused(classic, "the embedded consumer protocol is malformed") from None


def _records_of(group: ConsumerGroup) -> list[LogRecord]:
    group_id, members = group.group_id, group.members.values()
    result = [records.member_metadata(group_id, member) for member in members]
    result.append(records.group_epoch(group_id, group.epoch, group.metadata_hash))
    result += [records.target(group_id, member_id, group.targets[member_id]) for member_id in group.members]
    result.append(records.target_epoch(group_id, group.epoch, 0))
    result += [records.current(group_id, member) for member in members]
    return result


def retire(classic: ClassicGroup, outcome: Outcome) -> None:
    """A classic group is about to be a consumer group. Whoever waits for its rebalance has to join anew."""
    timers = classic.machine.timers
    for timer in (classic.join_timer, classic.sync_timer, *classic.pending.values()):
        timers.cancel(timer)
    for member in classic.members.values():
        timers.cancel(member.session)
        joined = JoinGroupResponse(error_code=RebalanceInProgress.code, member_id=member.member_id)
        classic.answer_join(member, joined, outcome)
        classic.answer_sync(member, SyncGroupResponse(error_code=RebalanceInProgress.code), outcome)


# Consumer to classic


def can_downgrade(group: ConsumerGroup, without: Set[str]) -> bool:
    """Whether the members speak nothing but the classic protocol once these are gone."""
    left = len(group.members) - len(without)
    classic = group.classic_count - sum(group.members[member_id].is_classic for member_id in without)
    settings = group.machine.settings()
    return (
        left == classic
        and left > 0
        and left <= settings.group_max_size
        and settings.group_consumer_migration_policy.upper() in ("DOWNGRADE", "BIDIRECTIONAL")
    )


def downgrade(
    group: ConsumerGroup,
    without: Set[str],
    now: Now,
    outcome: Outcome,
    *,
    joining: Member | None = None,
    rebalances: bool = True,
) -> None:
    """Make the group a classic one, without these members, and with the one that joins as one of them left.

    The classic group comes to be when the records are applied; a timer that is due at once has it rebalance.
    """
    machine, group_id = group.machine, group.group_id
    members = {
        member.member_id: member for member in group.members.values() if member.member_id not in without
    }
    targets = dict(group.targets)
    outcome.records += group.tombstones()
    if joining is not None:
        members[joining.member_id] = joining
        targets[joining.member_id] = frozenset(joining.assigned)
        outcome.records[-1:-1] = records.forget_member(group_id, joining.member_id)
    classic = _classic_group(group, members, targets, now)
    assignments = {member.member_id: member.assignment for member in classic.members.values()}
    outcome.records.append(classic.metadata_record(assignments))
    for member_id in {*group.members, *members}:
        machine.timeouts.forget(group_id, member_id)
    machine.timers.start(now.monotonic_ms, partial(_go_on, machine, group_id, rebalances))


def _classic_group(
    group: ConsumerGroup, members: Mapping[str, Member], targets: Mapping[str, Assignment], now: Now
) -> ClassicGroup:
    """The classic group as it is to be written; it is not the one that will be."""
    classic = ClassicGroup(group.group_id, group.machine, now.wall_ms)
    classic.state = ClassicState.STABLE
    classic.generation = group.epoch
    classic.protocol_type = CONSUMER
    for member in members.values():
        assert member.classic is not None, f"{member.member_id} does not speak the classic protocol"
        protocols = {each.name: each.metadata for each in member.classic.supported_protocols}
        classic.add(
            ClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                protocols,
            ),
            None,
        )
    classic.protocol = classic.elect_protocol()
    for each in classic.members.values():
        each.assignment = assignment_bytes(
            targets.get(each.member_id, frozenset()), group.machine.topics, each.protocols[classic.protocol]
        )
    return classic


def _go_on(machine: GroupMachine, group_id: str, rebalances: bool, now: Now, outcome: Outcome) -> None:
    """The group is classic now: its members have sessions again, and divide what the one that left had."""
    group = machine.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return
    for member in group.members.values():
        if not is_running(member.session):
            rebalance.start_session(group, member, member.session_timeout_ms, now)
    if rebalances and group.state is ClassicState.STABLE:
        rebalance.prepare(group, now, outcome)
