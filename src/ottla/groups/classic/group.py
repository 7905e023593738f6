"""A classic group: who is in it, in which generation, and what it is waiting for.

The log knows a group as it was when its last generation was complete (`GroupMetadata` records). A rebalance
runs ahead of it: members, leader and the generation in the making are soft state until the leader's
assignments are written. After a failover the last complete generation is back, and its members find out by
ILLEGAL_GENERATION. How the states follow each other is in `rebalance.py`.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.groups.classic.member import Member
from ottla.groups.group import Committed, Group, PartitionCheck
from ottla.groups.records import record, tombstone
from ottla.groups.timers import Timer
from ottla.protocol.codec import decode
from ottla.protocol.errors import (
    FencedInstanceId,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from ottla.protocol.messages.describe_groups import DescribedGroup
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.stored.groups import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.protocol.wire import MalformedFrame

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine

CONSUMER: Final = "consumer"  # the protocol type whose subscriptions we can read
VALUE_VERSION: Final = 3  # what Kafka 4.3 writes, though it reads 4


class State(StrEnum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup(Group):
    """A group of the protocol of JoinGroup and SyncGroup, or (without members) of a simple consumer."""

    kind = "classic"
    __slots__ = (
        "generation",
        "is_initial",
        "join_timer",
        "joining_count",
        "leader",
        "logged",
        "members",
        "new_member_added",
        "pending",
        "protocol",
        "protocol_type",
        "state",
        "state_since_ms",
        "static",
        "subscribed",
        "supported",
        "sync_timer",
        "unsynced",
    )

    def __init__(self, group_id: str, machine: GroupMachine, now_ms: int | None = None) -> None:
        super().__init__(group_id, machine)
        self.logged: GroupMetadataValue | None = None  # what the log says; None of a simple group
        self.state = State.EMPTY
        self.state_since_ms = now_ms  # wall time
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # group instance id -> member id
        self.pending: dict[str, Timer] = {}  # ids that were handed out and have not joined yet
        self.supported: Counter[str] = Counter()  # protocol -> members that support it
        self.joining_count = 0  # members whose JoinGroup waits
        self.unsynced: set[str] = set()  # members that owe this generation a SyncGroup
        self.subscribed: frozenset[str] | None = None  # topics, if the protocol tells
        self.is_initial = False  # whether the rebalance is the first after the group was empty
        self.new_member_added = False  # since the initial delay was last looked at
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None

    # What it looks like

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type_name(self) -> str:
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER

    @property
    def has_all_joined(self) -> bool:
        return self.joining_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed(self, topic: str) -> bool:
        if self.subscribed is None:
            return self.uses_consumer_protocol  # it may be
        return topic in self.subscribed

    def described(self) -> DescribedGroup:
        protocol = self.protocol if self.state is State.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type_name,
            protocol_data=protocol or "",
            members=[member.described(protocol) for member in self.members.values()],
        )

    def joined(self, member: Member, *, leader: str | None = None, skip: bool = False) -> JoinGroupResponse:
        """The answer to a member that is in the present generation; the leader is shown all members."""
        leads = member.member_id == self.leader if leader is None else False
        assert self.protocol is not None, f"group {self.group_id} in {self.state} has no protocol"
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=(self.leader if leader is None else leader) or "",
            skip_assignment=skip and leads,
            member_id=member.member_id,
            members=[each.for_leader(self.protocol) for each in self.members.values()] if leads else [],
        )

    # Who may do what

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member, unless the caller is not it (any more)."""
        if instance_id is not None:
            known_as = self.static.get(instance_id)
            if known_as is None:
                raise UnknownMemberId
            if known_as != member_id:
                raise FencedInstanceId
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId
        return member

    def check_offset_commit(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        generation: int,
        transactional: bool,
        version: int,
        now: Now,
    ) -> PartitionCheck | None:
        if generation < 0 and self.state is State.EMPTY:
            return None  # an administrator, or a consumer that assigns its partitions itself
        member = None
        if generation >= 0 or member_id or instance_id is not None:
            member = self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise IllegalGeneration
        elif not transactional and self.state is not State.EMPTY:
            raise UnknownMemberId
        if transactional:
            return None  # whatever the state
        if self.state is State.COMPLETING_REBALANCE:
            raise RebalanceInProgress
        if member is not None:
            self.heard_from(member, now)
        return None

    def check_offset_delete(self) -> None:
        if self.state is not State.EMPTY and not self.uses_consumer_protocol:
            raise NonEmptyGroup

    def check_delete(self) -> None:
        if self.state is not State.EMPTY:
            raise NonEmptyGroup

    def retained_from(self, committed: Committed) -> int | None:
        if self.protocol_type is None:
            return committed.commit_timestamp  # of a simple consumer
        if self.state is State.EMPTY:
            return committed.commit_timestamp if self.state_since_ms is None else self.state_since_ms
        if self.state is State.STABLE and self.uses_consumer_protocol and self.subscribed is not None:
            return committed.commit_timestamp
        return None

    # Membership

    def add(self, member: Member, ticket: object | None) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static, (
                f"{member.instance_id} is in {self.group_id} already"
            )
            self.static[member.instance_id] = member.member_id
        self.machine.timers.cancel(self.pending.pop(member.member_id, None))
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.supported.update(member.protocols.keys())
        self.await_join(member, ticket)

    def remove(self, member: Member, outcome: Outcome) -> None:
        """Forget a member. If it waits for something it is told that it is unknown, and may join anew."""
        self._forget(member)
        self.answer_join(member, refused(UnknownMemberId.code), outcome)
        self.answer_sync(member, SyncGroupResponse(error_code=UnknownMemberId.code), outcome)
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def remove_pending(self, member_id: str) -> None:
        self.machine.timers.cancel(self.pending.pop(member_id, None))

    def replace(self, old: Member, new: Member, outcome: Outcome) -> None:
        """The same instance, started again: it takes the place of its predecessor, which is fenced."""
        assert old.instance_id is not None
        self._forget(old)
        self.answer_join(old, refused(FencedInstanceId.code, old.member_id), outcome)
        self.answer_sync(old, SyncGroupResponse(error_code=FencedInstanceId.code), outcome)
        if self.leader == old.member_id:
            self.leader = new.member_id
        del self.static[old.instance_id]
        self.add(new, None)

    def _forget(self, member: Member) -> None:
        del self.members[member.member_id]
        self.supported.subtract(member.protocols.keys())
        self.unsynced.discard(member.member_id)
        self.machine.timers.cancel(member.session)

    def update(
        self,
        member: Member,
        protocols: dict[str, bytes],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self.supported.subtract(member.protocols.keys())
        member.protocols = protocols
        self.supported.update(protocols.keys())
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def supports(self, protocol_type: str, protocols: dict[str, bytes]) -> bool:
        """Whether someone with these protocols would have one in common with all the members."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and any(
            self.supported[name] == len(self.members) for name in protocols
        )

    def elect_protocol(self) -> str:
        """Each member votes for its favourite among those that all support; most votes win."""
        candidates = {name for name, count in self.supported.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def elect_leader(self) -> bool:
        """Make sure that the leader has joined; False when nobody has."""
        if self.leader is not None and self.members[self.leader].joining is not None:
            return True
        joined = next((each for each in self.members.values() if each.joining is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def find_subscribed(self) -> frozenset[str] | None:
        """The topics that members read, if the protocol is one whose subscriptions we can read."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                # Later versions only append to the first, so it is a part of all of them.
                subscription = member.protocols[self.protocol]
                topics.update(decode(ConsumerProtocolSubscription, 0, subscription, 2).topics)
        except MalformedFrame:
            return None
        return frozenset(topics)

    # Waiting, and being heard from

    def await_join(self, member: Member, ticket: object | None) -> None:
        self.joining_count += (ticket is not None) - (member.joining is not None)
        member.joining = ticket

    def answer_join(self, member: Member, response: JoinGroupResponse, outcome: Outcome) -> None:
        if member.joining is not None:
            outcome.released.append((member.joining, response))
            member.joining = None
            self.joining_count -= 1

    def answer_sync(self, member: Member, response: SyncGroupResponse, outcome: Outcome) -> None:
        if member.syncing is not None:
            outcome.released.append((member.syncing, response))
            member.syncing = None

    def heard_from(self, member: Member, now: Now) -> None:
        """Put off the end of a member's session."""
        if member.session is not None:
            self.machine.timers.move(member.session, now.monotonic_ms + member.session_timeout_ms)

    # The log

    def tombstones(self) -> list[LogRecord]:
        return [tombstone(GroupMetadataKey(group=self.group_id))]

    def metadata_record(self, assignments: dict[str, bytes]) -> LogRecord:
        """The present generation, with these assignments by member id."""
        members = [
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols[self.protocol or ""],
                assignment=assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type_name,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
            members=members,
        )
        return record(GroupMetadataKey(group=self.group_id), value, VALUE_VERSION)

    def empty_record(self) -> LogRecord:
        """That the group exists, and no more."""
        since = -1 if self.state_since_ms is None else self.state_since_ms
        value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=since)
        return record(GroupMetadataKey(group=self.group_id), value, VALUE_VERSION)

    def apply(self, value: GroupMetadataValue) -> None:
        """A generation is complete: take over what the record says of it.

        While the group gathers its members only one record can come, the one that says that it exists.
        The members that made it exist are here already and must stay.
        """
        self.logged = value
        if self.state is State.PREPARING_REBALANCE:
            return
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.leader = value.leader
        self.state_since_ms = None if value.current_state_timestamp == -1 else value.current_state_timestamp
        kept = {each.member_id for each in value.members}
        for gone in [member for member in self.members.values() if member.member_id not in kept]:
            self._forget(gone)
        self.static = {
            each.group_instance_id: each.member_id
            for each in value.members
            if each.group_instance_id is not None
        }
        for each in value.members:
            member = self.members.get(each.member_id)
            if member is None:
                member = Member(
                    each.member_id,
                    each.group_instance_id,
                    each.client_id,
                    each.client_host,
                    each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout,
                    each.session_timeout,
                    {value.protocol or "": each.subscription},
                )
                self.members[each.member_id] = member
                self.supported.update(member.protocols.keys())
            member.assignment = each.assignment
        self.state = State.STABLE if self.members else State.EMPTY
        self.subscribed = self.find_subscribed()


def refused(error_code: int, member_id: str = "") -> JoinGroupResponse:
    """The answer to a member that is not let in."""
    return JoinGroupResponse(error_code=error_code, member_id=member_id, protocol_name=None)


def apply_group_metadata(
    machine: GroupMachine, key: GroupMetadataKey, value: GroupMetadataValue | None
) -> None:
    """Fold a GroupMetadata record into the shard."""
    group = machine.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            machine.forget(group)
        return
    if not isinstance(group, ClassicGroup):
        group = machine.groups[key.group] = ClassicGroup(key.group, machine)
    group.apply(value)
