from __future__ import annotations

import pytest

from ottla.core.ids import UNASSIGNED_DIRECTORY, Uuid
from ottla.metadata.election import NOBODY, Elected, Election, PartitionChange, elect
from ottla.metadata.partition import PartitionState
from ottla.protocol.stored.metadata import PartitionChangeRecord

TOPIC = Uuid(b"t" * 16)
PREFERRED, ONLINE, UNCLEAN = Election.PREFERRED, Election.ONLINE, Election.UNCLEAN


@pytest.mark.parametrize(
    ("election", "isr", "elr", "current", "last_known", "alive", "expected"),
    [
        # Who leads goes on leading, unless the first replica is preferred.
        (ONLINE, (1, 2, 3), (), 2, None, {1, 2, 3}, Elected(2)),
        (UNCLEAN, (1, 2, 3), (), 2, None, {1, 2, 3}, Elected(2)),
        (PREFERRED, (1, 2, 3), (), 2, None, {1, 2, 3}, Elected(1)),
        (PREFERRED, (2, 3), (), 2, None, {1, 2, 3}, Elected(2)),
        (PREFERRED, (2, 3), (), 2, None, {3}, Elected(3)),
        # A leader that is gone is followed by the first replica in sync, in the order of the replicas.
        (ONLINE, (3, 2), (), 1, None, {2, 3}, Elected(2)),
        (ONLINE, (1,), (), 1, None, {2, 3}, NOBODY),
        # The eligible count only when nobody is in sync.
        (ONLINE, (), (3,), -1, None, {2, 3}, Elected(3)),
        (ONLINE, (1,), (3,), -1, None, {2, 3}, NOBODY),
        # The last known leader counts only when nobody is in sync or eligible, and its election as unclean.
        (ONLINE, (), (), -1, 2, {1, 2, 3}, Elected(2, True)),
        (ONLINE, (), (3,), -1, 2, {1, 2}, NOBODY),
        (ONLINE, (), (), -1, 2, {1, 3}, NOBODY),
        (PREFERRED, (), (), -1, 2, {1, 2, 3}, Elected(2, True)),
        # Anyone alive, if nothing else is left and that is wanted.
        (UNCLEAN, (1,), (), 1, None, {2, 3}, Elected(2, True)),
        (UNCLEAN, (1,), (), 1, None, set(), NOBODY),
    ],
)
def test_who_leads(
    election: Election,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    current: int,
    last_known: int | None,
    alive: set[int],
    expected: Elected,
) -> None:
    found = elect(election, (1, 2, 3), isr, elr, current, last_known, alive.__contains__)
    assert found == expected


def partition(**given: object) -> PartitionState:
    values = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "directories": (UNASSIGNED_DIRECTORY,) * 3,
    }
    return PartitionState(**(values | given))  # type: ignore[arg-type]


def change(
    state: PartitionState,
    alive: set[int],
    *,
    min_isr: int = 2,
    elr_enabled: bool = True,
    metadata_version: int = 30,
    **wanted: object,
) -> PartitionChangeRecord | None:
    return PartitionChange(
        topic_id=TOPIC,
        partition=0,
        state=state,
        is_acceptable=alive.__contains__,
        metadata_version=metadata_version,
        min_isr=min_isr,
        elr_enabled=elr_enabled,
        **wanted,  # type: ignore[arg-type]
    ).record()


def record(**given: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **given)  # type: ignore[arg-type]


def test_what_changes_nothing_is_no_record() -> None:
    assert change(partition(), {1, 2, 3}) is None


def test_an_unclean_leader_is_alone_in_sync_and_has_to_recover() -> None:
    state = partition(isr=(1,), elr=(2,))
    expected = record(isr=[3], leader=3, leader_recovery_state=1, eligible_leader_replicas=[])
    assert change(state, {3}, election=UNCLEAN, elr_enabled=False, min_isr=1) == expected


def test_who_leaves_below_min_isr_is_eligible_unless_it_crashed() -> None:
    state = partition(isr=(1, 2))
    assert change(state, {1}, isr=(1,)) == record(isr=[1], eligible_leader_replicas=[2])
    assert change(state, {1}, isr=(1,), unclean_shutdown=(2,)) == record(isr=[1])


def test_enough_in_sync_make_the_eligible_superfluous() -> None:
    state = partition(isr=(1,), elr=(2,), last_known_elr=(1,))
    assert change(state, {1, 2}, isr=(1, 2)) == record(
        isr=[1, 2], eligible_leader_replicas=[], last_known_elr=[]
    )


def test_an_old_cluster_bumps_the_leader_epoch_when_the_in_sync_set_shrinks() -> None:
    shrunk = change(partition(), {1, 2, 3}, isr=(1, 2), elr_enabled=False, metadata_version=11)
    assert shrunk == record(isr=[1, 2], leader=1)
    grown = change(partition(isr=(1, 2)), {1, 2, 3}, isr=(1, 2, 3), elr_enabled=False, metadata_version=11)
    assert grown == record(isr=[1, 2, 3])


def test_a_replica_that_is_taken_away_hears_of_it_by_a_new_epoch() -> None:
    found = change(partition(), {1, 2, 3}, replicas=(1, 2), isr=(1, 2))
    assert found is not None
    assert (found.leader, found.replicas) == (1, [1, 2])


def test_a_move_is_complete_when_all_its_replicas_are_in_sync() -> None:
    moving = partition(
        replicas=(3, 4, 1, 2),
        isr=(1, 2, 3),
        adding=(4,),
        removing=(1, 2),
        directories=(UNASSIGNED_DIRECTORY,) * 4,
    )
    assert change(moving, {1, 2, 3, 4}, isr=(1, 2, 3)) is None
    done = change(moving, {1, 2, 3, 4}, isr=(1, 2, 3, 4), min_isr=1)
    assert done is not None
    assert (done.replicas, done.isr, done.leader) == ([3, 4], [3, 4], 3)
    assert (done.adding_replicas, done.removing_replicas) == ([], [])


def test_leader_epochs_follow_the_leader_field_and_partition_epochs_every_change() -> None:
    state = partition()
    assert state.changed(record(isr=[1]))[3:5] == (0, 1)
    assert state.changed(record(leader=1))[3:5] == (1, 1)
    assert state.changed(record(leader=-1))[2:5] == (-1, 1, 1)
