"""One member of a share group. It does not change: what a request or a record says makes another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import Assignment
from ottla.groups.consumer.member import JOINING, LEFT, by_topic
from ottla.protocol.stored import groups as stored


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    epoch: int = JOINING
    previous_epoch: int = LEFT
    assigned: Assignment = frozenset()

    def moved(self, epoch: int, assigned: Assignment) -> ShareMember:
        """The member with another assignment; there is nothing to give up first, so it is there at once."""
        if epoch == self.epoch:
            return self if assigned == self.assigned else replace(self, assigned=assigned)
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=assigned)

    def with_metadata(self, value: stored.ShareGroupMemberMetadataValue) -> ShareMember:
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: stored.ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=frozenset(
                (topic.topic_id, index) for topic in value.assigned_partitions for index in topic.partitions
            ),
        )

    def without_assignment(self) -> ShareMember:
        return replace(self, epoch=LEFT, previous_epoch=LEFT, assigned=frozenset())

    def assigned_by_topic(self) -> dict[Uuid, list[int]]:
        return by_topic(self.assigned)
