"""One partition as the metadata log knows it: who holds it, who is in sync, who leads."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.core.ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid
from ottla.metadata.versions import MV_DIRECTORY_ASSIGNMENT, MV_ELIGIBLE_LEADER_REPLICAS
from ottla.protocol.stored.metadata import PartitionChangeRecord, PartitionRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1

Ids = tuple[int, ...]


class PartitionState(NamedTuple):
    """Immutable, so that a reader may keep it and compare it with what comes later."""

    replicas: Ids
    isr: Ids
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    directories: tuple[Uuid, ...] = ()
    elr: Ids = ()
    last_known_elr: Ids = ()
    adding: Ids = ()
    removing: Ids = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    def directory(self, broker: int) -> Uuid:
        """Where a broker keeps its replica; unassigned when the broker has not said."""
        for replica, directory in zip(self.replicas, self.directories, strict=False):
            if replica == broker:
                return directory
        return UNASSIGNED_DIRECTORY

    @classmethod
    def from_record(cls, record: PartitionRecord) -> PartitionState:
        replicas = tuple(record.replicas)
        return cls(
            replicas=replicas,
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            directories=_directories(tuple(record.directories), len(replicas)),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            adding=tuple(record.adding_replicas),
            removing=tuple(record.removing_replicas),
        )

    def to_record(self, topic_id: Uuid, partition: int, metadata_version: int) -> PartitionRecord:
        """The record that brings this state about, with no more fields than the level may carry."""
        record = PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        if metadata_version >= MV_DIRECTORY_ASSIGNMENT:
            record.directories = list(self.directories)
        if metadata_version >= MV_ELIGIBLE_LEADER_REPLICAS:
            # Null, not empty, when there are none: that is how Kafka keeps the common record small.
            record.eligible_leader_replicas = list(self.elr) or None
            record.last_known_elr = list(self.last_known_elr) or None
        return record

    def changed(self, change: PartitionChangeRecord) -> PartitionState:
        """This state after a change. A leader field, even an unchanged one, starts a new leader epoch."""
        replicas = self.replicas if change.replicas is None else tuple(change.replicas)
        elr = change.eligible_leader_replicas
        leads = change.leader != NO_LEADER_CHANGE
        return PartitionState(
            replicas=replicas,
            isr=self.isr if change.isr is None else tuple(change.isr),
            leader=change.leader if leads else self.leader,
            leader_epoch=self.leader_epoch + leads,
            partition_epoch=self.partition_epoch + 1,
            leader_recovery_state=(
                self.leader_recovery_state
                if change.leader_recovery_state == NO_RECOVERY_CHANGE
                else change.leader_recovery_state
            ),
            directories=_directories(
                self.directories if change.directories is None else tuple(change.directories), len(replicas)
            ),
            elr=self.elr if elr is None else tuple(elr),
            last_known_elr=(
                self.last_known_elr if change.last_known_elr is None else tuple(change.last_known_elr)
            ),
            adding=self.adding if change.adding_replicas is None else tuple(change.adding_replicas),
            removing=self.removing if change.removing_replicas is None else tuple(change.removing_replicas),
        )


def _directories(given: tuple[Uuid, ...], replicas: int) -> tuple[Uuid, ...]:
    """One directory per replica. Records from before directories were tracked name none."""
    return given if len(given) == replicas else (MIGRATING_DIRECTORY,) * replicas
