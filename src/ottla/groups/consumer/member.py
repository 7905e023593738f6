"""One member of a consumer group. It does not change: what a request or a record says makes another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import Partition
from ottla.protocol.stored.groups import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

JOINING: Final = 0  # the epoch with which a member comes
LEFT: Final = -1  # ... and goes
AWAY: Final = -2  # ... and with which a static one goes to come back

NOTHING: Final[Mapping[Partition, int]] = {}


class State(IntEnum):
    """How far a member is on its way to the target assignment."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to give up partitions, and has not said yet that it did
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others have to give up
    UNKNOWN = 127  # written by a later version of Kafka

    @classmethod
    def _missing_(cls, value: object) -> State:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""  # empty for none
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None  # of one that speaks the classic protocol
    epoch: int = JOINING
    previous_epoch: int = LEFT
    state: State = State.STABLE
    # Partition -> the epoch in which the member got it. What it is revoking is still its own.
    assigned: Mapping[Partition, int] = field(default_factory=dict)
    revoking: Mapping[Partition, int] = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def is_reconciled(self, target_epoch: int) -> bool:
        return self.state is State.STABLE and self.epoch == target_epoch

    def moved(
        self,
        epoch: int,
        state: State,
        assigned: Mapping[Partition, int],
        revoking: Mapping[Partition, int] = NOTHING,
    ) -> Member:
        """The member one step on."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    def with_metadata(
        self, value: ConsumerGroupMemberMetadataValue, topic_names: frozenset[str] | None = None
    ) -> Member:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topic_names=frozenset(value.subscribed_topic_names) if topic_names is None else topic_names,
            topic_regex=value.subscribed_topic_regex or "",
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=State(value.state),
            assigned=_with_epochs(value.assigned_partitions, value.member_epoch),
            revoking=_with_epochs(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> Member:
        return replace(
            self,
            epoch=LEFT,
            previous_epoch=LEFT,
            state=State.STABLE,
            assigned=NOTHING,
            revoking=NOTHING,
        )


def _with_epochs(topics: Iterable[TopicPartitions], member_epoch: int) -> Mapping[Partition, int]:
    """Kafka before 4.3 did not write since when a member has its partitions: then since its present epoch."""
    result: dict[Partition, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        for partition, epoch in zip(topic.partitions, epochs, strict=False):
            result[topic.topic_id, partition] = epoch
    return result


def by_topic(partitions: Iterable[Partition]) -> dict[Uuid, list[int]]:
    """Topic -> its partitions, all in order."""
    result: dict[Uuid, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        result.setdefault(topic_id, []).append(partition)
    return result
