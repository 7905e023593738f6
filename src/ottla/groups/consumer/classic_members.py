"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

To them it looks like a classic group in which they are never the leader. Their generation is their epoch;
when they should see to their partitions they are told that a rebalance is in progress, and what a member of
the consumer protocol learns by a heartbeat they learn by joining and syncing again.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Final

from ottla.core.caller import Caller
from ottla.core.outcome import Now, Outcome
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.classic import protocol as classic
from ottla.groups.classic.group import CONSUMER, refused
from ottla.groups.consumer import membership, migration
from ottla.groups.consumer.embedded import assignment_bytes, partitions_of, read_subscription
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import take_place
from ottla.groups.consumer.member import Member, State
from ottla.groups.consumer.progress import Progress
from ottla.groups.consumer.subscriptions import metadata_hash
from ottla.protocol.errors import (
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.stored.groups import ClassicMemberMetadata, ClassicProtocol
from ottla.protocol.wire import MalformedFrame

ID_REQUIRED_SINCE: Final = 4  # versions of JoinGroup


def join_group(
    group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Now, ticket: object
) -> Outcome:
    if group.is_empty:
        return _join_emptied(group, request, caller, now, ticket)
    try:
        return _join(group, request, caller, now)
    except KafkaError as error:
        return Outcome(reply=refused(error.code, request.member_id))


def _join_emptied(
    group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Now, ticket: object
) -> Outcome:
    """Nobody is left who speaks the consumer protocol: whoever joins finds a classic group."""
    groups = group.machine.groups
    del groups[group.group_id]
    outcome = classic.join_group(group.machine, request, caller, now, ticket)
    if group.group_id in groups:
        outcome.records[:0] = group.tombstones()
    else:
        groups[group.group_id] = group  # it was refused
    return outcome


def _join(group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Now) -> Outcome:
    machine = group.machine
    protocols = {protocol.name: protocol.metadata for protocol in reversed(request.protocols)}
    member_id = request.member_id or str(machine.new_id())
    if len(group.members) >= machine.settings().group_consumer_max_size and member_id not in group.members:
        raise GroupMaxSizeReached
    if not group.supports_classic(request.protocol_type, protocols):
        raise InconsistentGroupProtocol
    if not request.member_id and request.group_instance_id is None and caller.version >= ID_REQUIRED_SINCE:
        return Outcome(reply=refused(MemberIdRequired.code, member_id))
    outcome = Outcome()
    before, replaced = _member(group, request, member_id, outcome)
    try:
        subscription = read_subscription(request.protocols[0].metadata)
    except MalformedFrame:
        raise InconsistentGroupProtocol from None
    member = replace(
        before,
        instance_id=request.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        rebalance_timeout_ms=(
            request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms
        ),
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=protocol.name, metadata=protocol.metadata)
                for protocol in request.protocols
            ],
        ),
    )
    progress = Progress(group, before, member, caller, now, outcome, replaced=replaced)
    owned = partitions_of(subscription.owned_partitions, machine.topics)
    if (
        replaced is not None
        and not group.members[replaced].is_classic
        and migration.can_downgrade(group, {replaced})
    ):
        member = _join_downgraded(progress, owned, now, outcome)
    else:
        member = progress.run(owned)
        membership.await_sync(group, member, now)
        membership.heard_from(group, member, now)
    if replaced is not None:
        machine.timeouts.forget(group.group_id, replaced)
    outcome.reply = JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
    )
    return outcome


def _member(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, outcome: Outcome
) -> tuple[Member, str | None]:
    """The member as the group knows it, and the id of the static member whose place it takes."""
    instance_id = request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or Member(member_id), None
    if request.member_id:
        return group.static_member(instance_id, member_id), None
    known_as = group.static.get(instance_id)
    if known_as is None:
        return Member(member_id), None
    return take_place(group, group.members[known_as], member_id, outcome), known_as


def _join_downgraded(progress: Progress, owned: Set[Partition], now: Now, outcome: Outcome) -> Member:
    """The last member of the consumer protocol is back with the classic one: so the group is classic.

    As long as nothing else has changed it goes on with what everybody has.
    """
    group, replaced = progress.group, progress.replaced
    assert replaced is not None
    progress.update_subscription()
    is_old = progress.epoch > group.assignment_epoch
    if not is_old:
        progress.reconcile(owned)
    migration.downgrade(group, {replaced}, now, outcome, joining=progress.member, rebalances=is_old)
    return replace(progress.member, epoch=group.epoch)


def sync_group(group: ConsumerGroup, request: SyncGroupRequest, now: Now) -> Outcome:
    member = _classic_member(group, request.member_id, request.group_instance_id)
    assert member.classic is not None
    _check_generation(member, request.generation_id)
    protocol = member.classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol.name):
        raise InconsistentGroupProtocol
    if _is_behind(group, member) and member.state is not State.UNREVOKED_PARTITIONS:
        membership.await_join(group, member, now)
        raise RebalanceInProgress
    timeouts = group.machine.timeouts
    timeouts.stop(timeouts.of(group.group_id, member.member_id).sync)
    membership.heard_from(group, member, now)
    return Outcome(
        reply=SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(member.assigned, group.machine.topics, protocol.metadata),
        )
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, now: Now) -> Outcome:
    member = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    membership.heard_from(group, member, now)
    if (
        _is_behind(group, member)
        or member.state is State.UNREVOKED_PARTITIONS
        or (member.state is State.UNRELEASED_PARTITIONS and not group.is_waiting_for_others(member))
    ):
        membership.await_join(group, member, now)
        raise RebalanceInProgress
    return Outcome(reply=HeartbeatResponse())


def _is_behind(group: ConsumerGroup, member: Member) -> bool:
    """Whether there is a newer target for the member, or should be.

    As long as there are members of the consumer protocol, their heartbeats see to that. Without any, a
    classic member has to join for it.
    """
    if group.classic_count < len(group.members):
        return member.epoch < group.assignment_epoch
    if group.is_stale:
        group.is_stale = metadata_hash(group.subscribed, group.machine.topics) != group.metadata_hash
    return group.is_stale or member.epoch < group.epoch


def leave_group(group: ConsumerGroup, request: LeaveGroupRequest, now: Now) -> Outcome:
    outcome = Outcome()
    leaving: dict[str, Member] = {}
    answers = []
    for identity in request.members:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        try:
            member = _leaving(group, identity)
            if member.member_id in leaving:
                raise UnknownMemberId
            leaving[member.member_id] = member
            answer.member_id = member.member_id
        except KafkaError as error:
            answer.error_code = error.code
        answers.append(answer)
    if leaving:
        membership.fence(group, leaving.values(), now, outcome)
    outcome.reply = LeaveGroupResponse(members=answers)
    return outcome


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.member_id or identity.group_instance_id is None:
        return _classic_member(group, identity.member_id, identity.group_instance_id)
    # An administrator removes a static member by its instance id.
    return _classic_member(
        group, group.static.get(identity.group_instance_id, ""), identity.group_instance_id
    )


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    member = group.known_member(member_id, instance_id)
    if not member.is_classic:
        raise UnknownMemberId(f"Member {member_id} does not use the classic protocol.")
    return member


def _check_generation(member: Member, generation: int) -> None:
    if generation != member.epoch:
        raise IllegalGeneration(
            f"The request generation id {generation} is not equal to the member epoch {member.epoch} "
            f"of member {member.member_id}."
        )
