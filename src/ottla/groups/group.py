"""What a shard asks of a group, whatever its kind.

The kinds are `classic.group.ClassicGroup`, and the consumer and share groups in their packages. A group is
found in `GroupMachine.groups` by its id; there is one of an id, of one kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine


class Committed(NamedTuple):
    """A committed position, as it is kept."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1  # of commits with a retention time of their own
    topic_id: Uuid = ZERO_UUID
    record_offset: int = -1  # where in the log it stands


# Raises a KafkaError unless the caller may commit this partition: (topic, topic id, partition).
PartitionCheck = Callable[[str, Uuid, int], None]


class Group:
    """A group of any kind. Kinds override what they know better."""

    kind: ClassVar[str]  # "classic", "consumer", "share": Kafka's words for the type of a group
    expires: ClassVar[bool] = True  # whether it is forgotten once it has neither members nor positions
    __slots__ = ("group_id", "machine")

    def __init__(self, group_id: str, machine: GroupMachine) -> None:
        self.group_id = group_id
        self.machine = machine

    @property
    def state_name(self) -> str:
        """The state as ListGroups and the describe APIs show it."""
        raise NotImplementedError

    @property
    def protocol_type_name(self) -> str:
        """The protocol type as ListGroups shows it: "consumer" for consumers, "" for nobody in particular."""
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        raise NotImplementedError

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type_name,
            group_state=self.state_name,
            group_type=self.kind,
        )

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads the topic, as far as the group can tell."""
        return False

    def check_offset_commit(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        generation: int,  # or the member epoch
        transactional: bool,
        version: int,  # of OffsetCommit or TxnOffsetCommit
        now: Now,
    ) -> PartitionCheck | None:
        """Raise unless the caller may commit; what it answers is asked again for every partition.

        A commit shows that the member is alive, so a kind may put off its session's end here.
        """
        raise NotImplementedError

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise unless the caller may read the positions."""

    def check_offset_delete(self) -> None:
        """Raise unless positions may be deleted."""
        raise NotImplementedError

    def check_delete(self) -> None:
        """Raise unless the group may be deleted."""
        raise NotImplementedError

    def retained_from(self, committed: Committed) -> int | None:
        """The time (wall ms) from which offsets.retention.minutes counts; None when it must not expire."""
        raise NotImplementedError

    def tombstones(self) -> list[LogRecord]:
        """The records that take the group back, without its positions."""
        raise NotImplementedError

    def loaded(self, now: Now, outcome: Outcome) -> None:
        """The log has been read: start the timers."""

    def topics_changed(self, changed: set[str], now: Now, outcome: Outcome) -> None:
        """Topics of these names were created, grew, moved or went."""
