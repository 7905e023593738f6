"""A consumer group: its members, the assignment they are on their way to, and who has which partition.

All of it is in the log, and changes only in the `apply_...` methods. Three epochs tell how far things are:
the group's own rises with every change of its members, their subscriptions or their topics; the assignment's
is the group epoch for which the target was made; a member's is the assignment epoch that it has reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.groups.assignors.subscribers import Assignment, Partition
from ottla.groups.consumer import records
from ottla.groups.consumer.member import Member, State
from ottla.groups.consumer.subscriptions import Resolved, all_topic_names
from ottla.groups.group import Committed, Group, PartitionCheck
from ottla.protocol.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from ottla.protocol.stored.groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine

FIRST_EPOCH: Final = 1  # before anything has happened; 0 is what members join with
EPOCH_COMMITS_SINCE: Final = 9  # the version of OffsetCommit that carries a member epoch
EMPTY: Final[Assignment] = frozenset()


class ConsumerGroup(Group):
    kind = "consumer"
    __slots__ = (
        "_names",
        "_subscribed",
        "assigned_at_ms",
        "assignment_epoch",
        "classic_count",
        "classic_protocols",
        "epoch",
        "has_partition_metadata",
        "is_stale",
        "members",
        "metadata_hash",
        "owners",
        "resolved",
        "static",
        "targets",
    )

    def __init__(self, group_id: str, machine: GroupMachine) -> None:
        super().__init__(group_id, machine)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0  # wall time
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # group instance id -> member id
        self.targets: dict[str, Assignment] = {}
        self.owners: dict[Partition, str] = {}  # partition -> the member that has it, or is giving it up
        self.resolved: dict[str, Resolved] = {}  # by regular expression
        self.classic_count = 0  # members that speak the classic protocol
        self.classic_protocols: Counter[str] = Counter()  # name -> how many of those support it
        self.has_partition_metadata = False  # a record that Kafka before 4.1 wrote
        # Not in the log: whether topics may have changed since the epoch was last looked at.
        self.is_stale = True
        self._subscribed: frozenset[str] | None = None
        self._names: dict[frozenset[str], frozenset[str]] = {}

    # What it looks like

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def protocol_type_name(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that any member wants."""
        if self._subscribed is None:
            self._subscribed = all_topic_names(self.members.values(), self.resolved)
        return self._subscribed

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscribed

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, EMPTY)

    def is_waiting_for_others(self, member: Member) -> bool:
        """Whether partitions that the member is to have are still another's."""
        return member.state is State.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned
            and self.owners.get(partition, member.member_id) != member.member_id
            for partition in self.target_of(member.member_id)
        )

    def supports_classic(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether someone with these protocols has one in common with all classic members."""
        return protocol_type == "consumer" and any(
            self.classic_protocols[name] == self.classic_count for name in protocols
        )

    # Who may do what

    def member(self, member_id: str) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str, member_id: str) -> Member:
        """The member that is known under the instance id, if it is this one."""
        known_as = self.static.get(instance_id)
        if known_as is None:
            raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
        if known_as != member_id:
            raise FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member {known_as}."
            )
        return self.members[known_as]

    def known_member(self, member_id: str, instance_id: str | None) -> Member:
        return self.member(member_id) if instance_id is None else self.static_member(instance_id, member_id)

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
        if generation < 0 and not self.members:
            return None  # an administrator, or a consumer that assigns its partitions itself
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None  # a producer that does not say for whom it commits
        member = self.member(member_id)
        if not transactional and not member.is_classic and version < EPOCH_COMMITS_SINCE:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            )
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise _wrong_epoch(
                member,
                f"Received member epoch {generation} is newer than current member epoch {member.epoch}.",
            )
        return self._since(member, generation)

    def _since(self, member: Member, epoch: int) -> PartitionCheck:
        """An older epoch will do for partitions that the member has had since then (KIP-1251).

        Otherwise a commit that was under way when the member moved on would be lost for nothing.
        """

        def check(topic: str, topic_id: Uuid, index: int) -> None:
            known = self.machine.topics.topic_id(topic) if topic_id == ZERO_UUID else topic_id
            partition = (known or ZERO_UUID, index)
            since = member.assigned.get(partition, member.revoking.get(partition))
            if since is None:
                raise _wrong_epoch(
                    member, f"Partition {topic}-{index} is not assigned or pending revocation for member."
                )
            if epoch < since:
                raise _wrong_epoch(
                    member,
                    f"Received member epoch {epoch} is older than assignment epoch {since} "
                    f"for partition {topic}-{index}.",
                )

        return check

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if not member_id and member_epoch < 0:
            return  # an administrator
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise _wrong_epoch(
                member,
                f"The received member epoch {member_epoch} does not match "
                f"the expected member epoch {member.epoch}.",
            )

    def check_offset_delete(self) -> None:
        """Anything that is not subscribed to may go."""

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup

    def retained_from(self, committed: Committed) -> int | None:
        return committed.commit_timestamp

    # The log

    def tombstones(self) -> list[LogRecord]:
        group_id = self.group_id
        result = [records.no_current(group_id, member_id) for member_id in self.members]
        result += [records.no_target(group_id, member_id) for member_id in self.members]
        result.append(records.no_target_epoch(group_id))
        result += [records.no_member_metadata(group_id, member_id) for member_id in self.members]
        result += [records.no_regular_expression(group_id, regex) for regex in self.resolved]
        if self.has_partition_metadata:
            result.append(records.no_partition_metadata(group_id))
        result.append(records.no_group_epoch(group_id))
        return result

    def apply_epoch(self, value: ConsumerGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        old = self.members.get(member_id)
        self._subscribed = None
        if old is not None:
            self._count_out(old)
        if value is None:
            if old is not None:
                del self.members[member_id]
                self._disown(old)
            return
        member = (old or Member(member_id)).with_metadata(value, self._shared(value.subscribed_topic_names))
        self.members[member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member_id
        if member.classic is not None:
            self.classic_count += 1
            self.classic_protocols.update(each.name for each in member.classic.supported_protocols)

    def _shared(self, topic_names: list[str]) -> frozenset[str]:
        """One set for all members that subscribe to the same, so that comparing them costs nothing."""
        if len(self._names) > 2 * len(self.members) + 8:
            self._names = {each.topic_names: each.topic_names for each in self.members.values()}
        names = frozenset(topic_names)
        return self._names.setdefault(names, names)

    def _count_out(self, member: Member) -> None:
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        if member.classic is not None:
            self.classic_count -= 1
            self.classic_protocols.subtract(each.name for each in member.classic.supported_protocols)

    def apply_target(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = frozenset(
                (topic.topic_id, index) for topic in value.topic_partitions for index in topic.partitions
            )

    def apply_target_epoch(self, value: ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assigned_at_ms = 0 if value is None else value.assignment_timestamp

    def apply_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        old = self.members.get(member_id)
        if value is None:
            if old is not None:
                self._disown(old)
                self.members[member_id] = old.without_assignment()
            return
        if old is not None:
            self._disown(old)
        member = self.members[member_id] = (old or Member(member_id)).with_assignment(value)
        for partitions in (member.assigned, member.revoking):
            self.owners.update(dict.fromkeys(partitions, member_id))

    def _disown(self, member: Member) -> None:
        # A log that is being compacted while it is read may show a new owner before the old one let go.
        for partitions in (member.assigned, member.revoking):
            for partition in partitions:
                if self.owners.get(partition) == member.member_id:
                    del self.owners[partition]

    def apply_regular_expression(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        self._subscribed = None
        if value is None:
            self.resolved.pop(regex, None)
        else:
            self.resolved[regex] = Resolved(frozenset(value.topics), value.timestamp)

    def topics_changed(self, changed: set[str], now: Now, outcome: Outcome) -> None:
        if self.resolved or not self.subscribed.isdisjoint(changed):
            self.is_stale = True  # which the next heartbeat finds


def _wrong_epoch(member: Member, message: str) -> KafkaError:
    """Each protocol has its own word for it."""
    return IllegalGeneration(message) if member.is_classic else StaleMemberEpoch(message)
