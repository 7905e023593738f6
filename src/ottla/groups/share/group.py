"""A share group: its members, what they are to read, and which partitions are ready to be read.

All of it is in the log, and changes only in the `apply_...` methods. The epochs are those of consumer groups:
the group's own, the assignment's, and each member's. As several members may read a partition, nobody has to
give one up before another gets it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.groups.assignors.subscribers import Assignment
from ottla.groups.consumer.group import FIRST_EPOCH
from ottla.groups.consumer.subscriptions import metadata_hash
from ottla.groups.group import Committed, Group, PartitionCheck
from ottla.groups.share import records
from ottla.groups.share.member import ShareMember
from ottla.groups.share.partitions import PartitionStates
from ottla.protocol.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from ottla.protocol.stored import groups as stored

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine


class ShareGroup(Group):
    kind = "share"
    expires = False  # its positions are with the share coordinator
    __slots__ = (
        "_is_assignment_due",
        "_subscribed",
        "assigned_at_ms",
        "assignment_epoch",
        "epoch",
        "is_settled",
        "is_stale",
        "members",
        "metadata_hash",
        "partitions",
        "targets",
    )

    def __init__(self, group_id: str, machine: GroupMachine) -> None:
        super().__init__(group_id, machine)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0  # wall time
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.partitions = PartitionStates()
        # Not in the log: whether topics may have changed since the epoch was last looked at,
        self.is_stale = True
        # whether all that is subscribed to is known to be initialized,
        self.is_settled = False
        # and whether what is initialized is assigned; None when that has to be found out.
        self._is_assignment_due: bool | None = None
        self._subscribed: frozenset[str] | None = None

    # What it looks like

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def protocol_type_name(self) -> str:
        return "share"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that any member wants."""
        if self._subscribed is None:
            self._subscribed = frozenset().union(*{each.topic_names for each in self.members.values()})
        return self._subscribed

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscribed

    def subscribed_with(self, member: ShareMember) -> frozenset[str]:
        """The topics that any member wants, when this one is as it will be."""
        known = self.members.get(member.member_id)
        if known is not None and known.topic_names == member.topic_names:
            return self.subscribed
        others = {each.topic_names for each in self.members.values() if each.member_id != member.member_id}
        return member.topic_names.union(*others)

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, frozenset())

    @property
    def is_assignment_due(self) -> bool:
        """Whether partitions that somebody wants have become ready since the last assignment."""
        if self._is_assignment_due is None:
            self._is_assignment_due = bool(self.members) and self._has_unassigned()
        return self._is_assignment_due

    def _has_unassigned(self) -> bool:
        wanted = {
            (topic_id, index)
            for topic_id, topic in self.partitions.initialized.items()
            if topic.name in self.subscribed
            for index in topic.partitions
        }
        return not wanted <= frozenset().union(*self.targets.values())

    # Who may do what

    def member(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
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
        raise self._no_consumer_group()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._no_consumer_group()

    def check_offset_delete(self) -> None:
        raise self._no_consumer_group()

    def _no_consumer_group(self) -> GroupIdNotFound:
        return GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup

    def retained_from(self, committed: Committed) -> int | None:
        return None

    # The log

    def tombstones(self) -> list[LogRecord]:
        result: list[LogRecord] = []
        for member_id in self.members:
            result += records.forget_member(self.group_id, member_id)
        return result + records.no_group(self.group_id)

    def apply_member(self, member_id: str, value: stored.ShareGroupMemberMetadataValue | None) -> None:
        self._subscribed = None
        self._is_assignment_due = None
        self.is_settled = False
        if value is None:
            self.members.pop(member_id, None)
        else:
            known = self.members.get(member_id) or ShareMember(member_id)
            self.members[member_id] = known.with_metadata(value)

    def apply_epoch(self, value: stored.ShareGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_target_epoch(self, value: stored.ShareGroupTargetAssignmentMetadataValue | None) -> None:
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assigned_at_ms = 0 if value is None else value.assignment_timestamp
        # Whatever is left unassigned now was left on purpose.
        self._is_assignment_due = False

    def apply_target(
        self, member_id: str, value: stored.ShareGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = frozenset(
                (topic.topic_id, index) for topic in value.topic_partitions for index in topic.partitions
            )

    def apply_current(
        self, member_id: str, value: stored.ShareGroupCurrentMemberAssignmentValue | None
    ) -> None:
        known = self.members.get(member_id)
        if value is not None:
            self.members[member_id] = (known or ShareMember(member_id)).with_assignment(value)
        elif known is not None:
            self.members[member_id] = known.without_assignment()

    def apply_partitions(
        self, value: stored.ShareGroupStatePartitionMetadataValue | None, timestamp_ms: int
    ) -> None:
        self._is_assignment_due = None
        self.is_settled = False
        if value is None:
            self.partitions = PartitionStates()
        else:
            self.partitions = PartitionStates.from_record(value, timestamp_ms)

    def written(self, partitions: PartitionStates) -> LogRecord:
        """The record of what the partitions are to be."""
        return records.partition_states(
            self.group_id, partitions.initializing, partitions.initialized, partitions.deleting
        )

    # Sessions

    def heard_from(self, member_id: str, now: Now) -> None:
        """Put off the end of a member's session."""
        machine, group_id = self.machine, self.group_id
        timeout_ms = machine.group_settings(group_id).share_session_timeout_ms
        if not machine.timeouts.put_off(group_id, member_id, timeout_ms, now):
            timers = machine.timeouts.of(group_id, member_id)
            action = partial(_expire, machine, group_id, member_id)
            timers.session = machine.timeouts.restart(timers.session, timeout_ms, now, action)

    def remove(self, member_id: str, outcome: Outcome) -> None:
        """Take a member out. The others are assigned anew with their next heartbeat."""
        outcome.records += records.forget_member(self.group_id, member_id)
        left = {each.topic_names for each in self.members.values() if each.member_id != member_id}
        found = metadata_hash(frozenset().union(*left), self.machine.topics)
        outcome.records.append(records.group_epoch(self.group_id, self.epoch + 1, found))
        self.machine.timeouts.forget(self.group_id, member_id)

    # News

    def loaded(self, now: Now, outcome: Outcome) -> None:
        for member_id in self.members:
            self.heard_from(member_id, now)

    def topics_changed(self, changed: set[str], now: Now, outcome: Outcome) -> None:
        if not self.subscribed.isdisjoint(changed):
            self.is_stale = True  # which the next heartbeat finds
            self.is_settled = False
        # The share coordinator hears of deleted topics by itself.
        name_of = self.machine.topics.name_of
        gone = [topic_id for topic_id in self.partitions.topic_ids() if name_of(topic_id) is None]
        if gone:
            outcome.records.append(self.written(self.partitions.without(gone)))


def _expire(machine: GroupMachine, group_id: str, member_id: str, now: Now, outcome: Outcome) -> None:
    """A member was not heard from. By its name, since the group may not be the one it was."""
    group = machine.groups.get(group_id)
    if isinstance(group, ShareGroup) and member_id in group.members:
        group.remove(member_id, outcome)
