"""What JoinGroup, SyncGroup, Heartbeat and LeaveGroup do to a classic group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.caller import Caller
from ottla.core.outcome import Now, Outcome
from ottla.groups.classic import rebalance
from ottla.groups.classic.group import ClassicGroup, State, refused
from ottla.groups.classic.member import Member
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
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine

NEW_MEMBER_TIMEOUT_MS: Final = 300_000  # a new member that waits cannot be heard from: it may be gone
ID_REQUIRED_SINCE: Final = 4  # versions of JoinGroup
SKIP_ASSIGNMENT_SINCE: Final = 9


class _Join:
    """One JoinGroup, and what it needs to know."""

    __slots__ = ("caller", "group", "now", "outcome", "protocols", "request", "ticket")

    def __init__(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now: Now, ticket: object
    ) -> None:
        self.group = group
        self.request = request
        self.caller = caller
        self.now = now
        self.ticket = ticket
        self.outcome = Outcome()
        self.protocols: dict[str, bytes] = {}
        for protocol in request.protocols:
            self.protocols.setdefault(protocol.name, protocol.metadata)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has one timeout for both."""
        given = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if given < 0 else given

    def run(self) -> None:
        """Answer, or have the member wait."""
        group, request = self.group, self.request
        if not _has_room(group, request.member_id):
            self._turn_away()
            raise GroupMaxSizeReached
        if not group.supports(request.protocol_type, self.protocols):
            raise InconsistentGroupProtocol
        if request.member_id:
            self._known()
        elif request.group_instance_id is None:
            self._new_dynamic()
        else:
            self._new_static(request.group_instance_id)

    def _turn_away(self) -> None:
        group, member_id = self.group, self.request.member_id
        if member_id in group.members:
            group.remove(group.members[member_id], self.outcome)
        group.remove_pending(member_id)
        rebalance.complete_if_joined(group, self.now, self.outcome)

    def _new_dynamic(self) -> None:
        member_id = self._new_member_id(self.caller.client_id)
        if self.caller.version < ID_REQUIRED_SINCE:
            self._add(member_id)
            return
        # It joins again under this id, so that a lost answer does not leave a member behind (KIP-394).
        rebalance.start_pending(self.group, member_id, self.request.session_timeout_ms, self.now)
        self.outcome.reply = refused(MemberIdRequired.code, member_id)

    def _new_static(self, instance_id: str) -> None:
        member_id = self._new_member_id(instance_id)
        known_as = self.group.static.get(instance_id)
        if known_as is None:
            self._add(member_id)
        else:
            self._replace(self.group.members[known_as], member_id)

    def _known(self) -> None:
        group, request = self.group, self.request
        if request.member_id in group.pending and request.group_instance_id is None:
            self._add(request.member_id)
            return
        member = group.check_member(request.member_id, request.group_instance_id)
        if group.state is State.PREPARING_REBALANCE or not member.matches(self.protocols):
            self._rejoin(member)
        elif group.state is State.STABLE and group.leader == member.member_id:
            # The leader may have seen what its members' subscriptions do not show: more partitions.
            self._rejoin(member)
        else:
            # It missed our answer, or has nothing new to say.
            self.outcome.reply = group.joined(member)

    def _add(self, member_id: str) -> None:
        group, request = self.group, self.request
        member = Member(
            member_id,
            request.group_instance_id,
            self.caller.client_id,
            self.caller.client_host,
            self.rebalance_timeout_ms,
            request.session_timeout_ms,
            self.protocols,
        )
        member.is_new = True
        if group.state is State.PREPARING_REBALANCE and group.is_initial:
            group.new_member_added = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member, self.ticket)
        rebalance.start_session(group, member, NEW_MEMBER_TIMEOUT_MS, self.now)
        rebalance.prepare_or_complete(group, self.now, self.outcome)

    def _rejoin(self, member: Member) -> None:
        self.group.update(member, self.protocols, self.rebalance_timeout_ms, self.request.session_timeout_ms)
        self._await(member)
        rebalance.prepare_or_complete(self.group, self.now, self.outcome)

    def _replace(self, old: Member, member_id: str) -> None:
        """A static member is back. As long as the protocol stays, nobody else has to notice."""
        group, request = self.group, self.request
        led_by = group.leader
        member = Member(
            member_id,
            request.group_instance_id,
            self.caller.client_id,
            self.caller.client_host,
            self.rebalance_timeout_ms,
            request.session_timeout_ms,
            self.protocols,
            old.assignment,
        )
        group.replace(old, member, self.outcome)
        rebalance.start_session(group, member, member.session_timeout_ms, self.now)
        if group.state is not State.STABLE or group.protocol != group.elect_protocol():
            self._await(member)
            rebalance.prepare_or_complete(group, self.now, self.outcome)
            return
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        self.outcome.records.append(group.metadata_record(assignments))
        if self.caller.version >= SKIP_ASSIGNMENT_SINCE:
            self.outcome.reply = group.joined(member, skip=True)
        else:
            # If it led the group it would assign anew and nobody would ask for the result. So it is told
            # that its former self leads.
            self.outcome.reply = group.joined(member, leader=led_by)

    def _await(self, member: Member) -> None:
        # A client that asks again has given up on its last request.
        self.group.answer_join(member, refused(RebalanceInProgress.code, member.member_id), self.outcome)
        self.group.await_join(member, self.ticket)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{_java_text(self.group.machine.new_id())}"


def join_group(
    machine: GroupMachine, request: JoinGroupRequest, caller: Caller, now: Now, ticket: object
) -> Outcome:
    """Join a classic group, or one that comes to exist by it."""
    group = machine.groups.get(request.group_id)
    is_new = group is None
    if group is None:
        if request.member_id:
            return Outcome(reply=refused(UnknownMemberId.code, request.member_id))
        group = ClassicGroup(request.group_id, machine, now.wall_ms)
    assert isinstance(group, ClassicGroup), f"{group.group_id} is a {group.kind} group"
    join = _Join(group, request, caller, now, ticket)
    try:
        join.run()
    except GroupMaxSizeReached as error:
        join.outcome.reply = refused(error.code)
        return join.outcome
    except KafkaError as error:
        return Outcome(reply=refused(error.code, request.member_id))
    if is_new:
        machine.groups[group.group_id] = group
        if not join.outcome.records:
            join.outcome.records.append(group.empty_record())
    return settle(join.outcome, ticket)


def sync_group(group: ClassicGroup, request: SyncGroupRequest, now: Now, ticket: object) -> Outcome:
    outcome = Outcome()
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGeneration
    for theirs, ours in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol),
    ):
        if theirs is not None and ours is not None and theirs != ours:
            raise InconsistentGroupProtocol
    if group.state is State.PREPARING_REBALANCE:
        raise RebalanceInProgress
    group.unsynced.discard(member.member_id)
    if not group.unsynced:
        rebalance.stop_awaiting_syncs(group)
    if group.state is State.STABLE:
        outcome.reply = _synced(group, member.assignment)
        return outcome
    again = SyncGroupResponse(error_code=RebalanceInProgress.code)
    group.answer_sync(member, again, outcome)
    member.syncing = ticket
    if member.member_id == group.leader:
        assignments = {each.member_id: each.assignment for each in request.assignments}
        outcome.records.append(group.metadata_record(assignments))
        for each in group.members.values():
            if each.syncing is not None:
                group.heard_from(each, now)
            group.answer_sync(each, _synced(group, assignments.get(each.member_id, b"")), outcome)
    return settle(outcome, ticket)


def heartbeat(group: ClassicGroup, request: HeartbeatRequest, now: Now) -> Outcome:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGeneration
    group.heard_from(member, now)
    if group.state is State.PREPARING_REBALANCE:
        raise RebalanceInProgress
    return Outcome(reply=HeartbeatResponse())


def leave_group(group: ClassicGroup, request: LeaveGroupRequest, now: Now) -> Outcome:
    outcome = Outcome()
    answers = []
    before = len(group.members)
    for identity in request.members:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        try:
            _leave(group, identity, outcome)
        except KafkaError as error:
            answer.error_code = error.code
        answers.append(answer)
    outcome.reply = LeaveGroupResponse(members=answers)
    if len(group.members) < before:
        rebalance.prepare_or_complete(group, now, outcome)
    else:
        rebalance.complete_if_joined(group, now, outcome)
    return outcome


def settle(outcome: Outcome, ticket: object) -> Outcome:
    """If the caller's own ticket was released, that is its reply."""
    for index, (waiting, response) in enumerate(outcome.released):
        if waiting is ticket:
            outcome.reply = response
            del outcome.released[index]
            break
    return outcome


def _leave(group: ClassicGroup, identity: MemberIdentity, outcome: Outcome) -> None:
    member_id = identity.member_id
    if not member_id:
        # An administrator removes a static member by its instance id.
        known_as = group.static.get(identity.group_instance_id or "")
        if identity.group_instance_id is None or known_as is None:
            raise UnknownMemberId
        group.remove(group.members[known_as], outcome)
    elif member_id in group.pending:
        group.remove_pending(member_id)
    else:
        group.remove(group.check_member(member_id, identity.group_instance_id), outcome)


def _has_room(group: ClassicGroup, member_id: str) -> bool:
    limit = group.machine.settings().group_max_size
    member = group.members.get(member_id)
    if group.state is State.EMPTY:
        return True
    if group.state is State.PREPARING_REBALANCE:
        # The members that have joined count, not all: after the limit was lowered the last ones are
        # turned away.
        return (member is not None and member.joining is not None) or group.joining_count < limit
    return member is not None or len(group.members) < limit


def _synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def _java_text(sixteen: bytes) -> str:
    """As Java prints a UUID."""
    text = sixteen.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
