"""Who leads a partition, and the record that says so.

The rules are those of KIP-966: a replica that was in sync when the in-sync set fell below
`min.insync.replicas` stays *eligible* to lead (the ELR) although it left the set, because it still holds
every committed record. It loses that only by a shutdown that may have lost the tail of its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ottla.core.ids import UNASSIGNED_DIRECTORY, Uuid
from ottla.metadata.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    Ids,
    PartitionState,
)
from ottla.metadata.versions import MV_DIRECTORY_ASSIGNMENT, MV_NO_EPOCH_BUMP_ON_ISR_SHRINK
from ottla.protocol.stored.metadata import PartitionChangeRecord


class Election(Enum):
    PREFERRED = "preferred"  # the first replica if it can, to balance the cluster
    ONLINE = "online"  # anyone who holds every committed record
    UNCLEAN = "unclean"  # anyone at all, when otherwise nobody could: records may be lost


class Elected(NamedTuple):
    leader: int
    unclean: bool = False


NOBODY = Elected(NO_LEADER)


def elect(
    election: Election,
    replicas: Ids,
    isr: Ids,
    elr: Ids,
    current: int,
    last_known_leader: int | None,
    is_acceptable: Callable[[int], bool],
) -> Elected:
    """The leader of a partition, or `NOBODY`.

    `last_known_leader` may lead again when there is nobody in sync and nobody eligible: it had the most to
    lose, so it has the most. It may still have lost something, so that counts as an unclean election.
    """

    def is_valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in elr)) and is_acceptable(replica)

    if election is Election.PREFERRED and is_valid(replicas[0]):
        return Elected(replicas[0])
    if is_valid(current):
        return Elected(current)
    for replica in replicas:
        if is_valid(replica):
            return Elected(replica)
    if last_known_leader is not None and not isr and not elr and is_acceptable(last_known_leader):
        return Elected(last_known_leader, unclean=True)
    if election is Election.UNCLEAN:
        for replica in replicas:
            if is_acceptable(replica):
                return Elected(replica, unclean=True)
    return NOBODY


@dataclass(slots=True)
class PartitionChange:
    """One wanted change of one partition. `record()` works out everything that follows from it.

    What is left None stays as it is.
    """

    topic_id: Uuid
    partition: int
    state: PartitionState
    is_acceptable: Callable[[int], bool]
    metadata_version: int
    min_isr: int
    elr_enabled: bool
    default_directory: Callable[[int], Uuid] = lambda broker: UNASSIGNED_DIRECTORY
    election: Election = Election.ONLINE
    isr: Iterable[int] | None = None
    replicas: Iterable[int] | None = None
    adding: Iterable[int] | None = None
    removing: Iterable[int] | None = None
    leader_recovery_state: int | None = None
    directories: Mapping[int, Uuid] = field(default_factory=dict)
    # Replicas whose broker came back from a crash: what they had may be gone.
    unclean_shutdown: Ids = ()

    def record(self) -> PartitionChangeRecord | None:
        """The record that makes the change, or None when there is nothing to change."""
        state = self.state
        isr, replicas, adding, removing = self._assignment()
        elr = self._eligible(isr)
        change = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition)

        last_known = state.last_known_elr[0] if self.elr_enabled and len(state.last_known_elr) == 1 else None
        elected = elect(self.election, replicas, isr, elr, state.leader, last_known, self.is_acceptable)
        if elected.leader != state.leader:
            change.leader = elected.leader
            if elected.leader in elr:
                isr, elr = (elected.leader,), tuple(r for r in elr if r != elected.leader)
            elif elected.unclean:
                isr, elr = (elected.leader,), ()
                if state.leader_recovery_state != RECOVERING:
                    change.leader_recovery_state = RECOVERING
        elif not set(state.replicas) <= set(replicas):
            # A replica that is taken away must stop fetching and serving: a new epoch tells it so.
            change.leader = state.leader

        if elr != state.elr:
            change.eligible_leader_replicas = list(elr)
        # Only where eligible replicas are tracked may the in-sync set become empty.
        if isr != state.isr and (isr or self.elr_enabled):
            change.isr = list(isr)
        self._bump_epoch_on_shrink(change)
        self._remember_last_leader(change)
        self._assign(change, replicas, adding, removing)
        wanted = self.leader_recovery_state
        if wanted is not None and wanted != state.leader_recovery_state:
            change.leader_recovery_state = wanted
        return None if _changes_nothing(change) else change

    def _assignment(self) -> tuple[Ids, Ids, Ids, Ids]:
        """The in-sync set and the replicas aimed for, with a reassignment that this completes carried out."""
        state = self.state
        isr = state.isr if self.isr is None else tuple(self.isr)
        replicas = state.replicas if self.replicas is None else tuple(self.replicas)
        adding = state.adding if self.adding is None else tuple(self.adding)
        removing = state.removing if self.removing is None else tuple(self.removing)
        if adding or removing:
            kept_isr = tuple(r for r in isr if r not in removing)
            kept = tuple(r for r in replicas if r not in removing)
            if kept_isr and kept and set(kept) <= set(kept_isr):
                return kept_isr, kept, (), ()
        return isr, replicas, adding, removing

    def _eligible(self, isr: Ids) -> Ids:
        """Who may lead although not in sync. Nobody, while the in-sync set is large enough by itself."""
        if not self.elr_enabled or len(isr) >= self.min_isr:
            return ()
        candidates = dict.fromkeys((*self.state.elr, *self.state.isr))
        return tuple(sorted(r for r in candidates if r not in isr and r not in self.unclean_shutdown))

    def _bump_epoch_on_shrink(self, change: PartitionChangeRecord) -> None:
        """Old brokers needed a new leader epoch when the in-sync set shrank (KAFKA-15021)."""
        if (
            self.metadata_version < MV_NO_EPOCH_BUMP_ON_ISR_SHRINK
            and change.leader == NO_LEADER_CHANGE
            and change.isr is not None
            and not set(self.state.isr) <= set(change.isr)
        ):
            change.leader = self.state.leader

    def _remember_last_leader(self, change: PartitionChangeRecord) -> None:
        """The last leader is noted when the in-sync set empties, and forgotten once there is a leader."""
        if not self.elr_enabled:
            return
        state = self.state
        will_lead = change.leader >= 0 or (state.leader != NO_LEADER and change.leader != NO_LEADER)
        if change.isr == [] and state.last_known_elr != (state.leader,):
            change.last_known_elr = [state.leader]
        elif will_lead and state.last_known_elr:
            change.last_known_elr = []

    def _assign(self, change: PartitionChangeRecord, replicas: Ids, adding: Ids, removing: Ids) -> None:
        state = self.state
        if replicas and self.metadata_version >= MV_DIRECTORY_ASSIGNMENT:
            known = dict(zip(state.replicas, state.directories, strict=False)) | dict(self.directories)
            directories = tuple(known.get(r) or self.default_directory(r) for r in replicas)
            if directories != state.directories:
                change.directories = list(directories)
        if replicas and replicas != state.replicas:
            change.replicas = list(replicas)
        if removing != state.removing:
            change.removing_replicas = list(removing)
        if adding != state.adding:
            change.adding_replicas = list(adding)


def _changes_nothing(change: PartitionChangeRecord) -> bool:
    return (
        change.leader == NO_LEADER_CHANGE
        and change.leader_recovery_state == NO_RECOVERY_CHANGE
        and change.isr is None
        and change.replicas is None
        and change.adding_replicas is None
        and change.removing_replicas is None
        and change.eligible_leader_replicas is None
        and change.last_known_elr is None
        and change.directories is None
    )
