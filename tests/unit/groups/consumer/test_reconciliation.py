"""The step of one member towards its target, by itself."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ottla.core.ids import Uuid
from ottla.groups.consumer.member import Member, State
from ottla.groups.consumer.reconciliation import reconcile
from ottla.protocol.errors import FencedMemberEpoch

T, U = Uuid(b"t" * 16), Uuid(b"u" * 16)


def partitions(topic: Uuid, *indices: int) -> frozenset[tuple[Uuid, int]]:
    return frozenset((topic, index) for index in indices)


def step(
    member: Member,
    epoch: int,
    target: frozenset[tuple[Uuid, int]],
    *,
    owned: frozenset[tuple[Uuid, int]] | None = None,
    taken: frozenset[tuple[Uuid, int]] = frozenset(),
    wants: Collection[Uuid] = (T, U),
    changed: bool = False,
) -> Member:
    return reconcile(
        member,
        epoch,
        target,
        wants=lambda topic: topic in wants,
        subscription_changed=changed,
        owned=owned,
        is_free=lambda partition: partition not in taken,
    )


def stable(epoch: int, assigned: frozenset[tuple[Uuid, int]]) -> Member:
    return Member("m", epoch=epoch, previous_epoch=epoch - 1, assigned=dict.fromkeys(assigned, epoch))


def test_a_new_member_is_given_what_is_free() -> None:
    moved = step(Member("m"), 5, partitions(T, 0, 1))

    assert (moved.epoch, moved.previous_epoch, moved.state) == (5, 0, State.STABLE)
    assert moved.assigned == dict.fromkeys(partitions(T, 0, 1), 5)


def test_what_others_have_is_waited_for_and_the_rest_given() -> None:
    moved = step(Member("m"), 5, partitions(T, 0, 1), taken=partitions(T, 1))

    assert (moved.epoch, moved.state) == (5, State.UNRELEASED_PARTITIONS)
    assert moved.assigned == {(T, 0): 5}

    again = step(moved, 5, partitions(T, 0, 1), taken=partitions(T, 1))
    assert (again.epoch, again.previous_epoch, again.state) == (5, 5, State.UNRELEASED_PARTITIONS)
    assert step(again, 5, partitions(T, 0, 1), taken=partitions(T, 1)) is again

    settled = step(again, 5, partitions(T, 0, 1))
    assert settled.state is State.STABLE
    assert settled.assigned == {(T, 0): 5, (T, 1): 5}


def test_what_is_to_go_is_given_up_first_in_the_old_epoch() -> None:
    member = stable(4, partitions(T, 0, 1))

    moved = step(member, 5, partitions(T, 0, 2))

    assert (moved.epoch, moved.state) == (4, State.UNREVOKED_PARTITIONS)
    assert (moved.assigned, moved.revoking) == ({(T, 0): 4}, {(T, 1): 4})
    # It does not say what it has, or still has it.
    assert step(moved, 5, partitions(T, 0, 2)) is moved
    assert step(moved, 5, partitions(T, 0, 2), owned=partitions(T, 0, 1)) is moved

    done = step(moved, 5, partitions(T, 0, 2), owned=partitions(T, 0))
    assert (done.epoch, done.state) == (5, State.STABLE)
    assert (done.assigned, done.revoking) == ({(T, 0): 4, (T, 2): 5}, {})


def test_one_that_has_nothing_need_not_give_up_anything() -> None:
    moved = step(stable(4, partitions(T, 0, 1)), 5, partitions(T, 0), owned=frozenset())

    assert (moved.epoch, moved.state) == (5, State.STABLE)
    assert moved.assigned == {(T, 0): 4}


def test_a_newer_target_is_taken_up_once_the_older_one_is_done_with() -> None:
    moved = step(stable(4, partitions(T, 0, 1)), 5, partitions(T, 0))

    done = step(moved, 6, partitions(T, 1), owned=partitions(T, 0))

    assert (done.epoch, done.state) == (4, State.UNREVOKED_PARTITIONS)
    assert (done.assigned, done.revoking) == ({}, {(T, 0): 4})


def test_what_it_has_just_given_up_may_come_back_to_it() -> None:
    moved = step(stable(4, partitions(T, 0, 1)), 5, partitions(T, 0))

    done = step(moved, 6, partitions(T, 0, 1), owned=partitions(T, 0))

    assert (done.epoch, done.state) == (6, State.STABLE)
    assert done.assigned == {(T, 0): 4, (T, 1): 6}


def test_a_member_at_its_target_stays_as_it_is() -> None:
    member = stable(4, partitions(T, 0))

    assert step(member, 4, partitions(T, 0, 1)) is member


def test_what_it_no_longer_wants_it_gives_up_without_a_new_target() -> None:
    member = stable(4, partitions(T, 0) | partitions(U, 0))

    moved = step(member, 4, partitions(T, 0) | partitions(U, 0), wants=(T,), changed=True)

    assert (moved.epoch, moved.state) == (4, State.UNREVOKED_PARTITIONS)
    assert (moved.assigned, moved.revoking) == ({(T, 0): 4}, {(U, 0): 4})
    assert step(member, 4, partitions(T, 0), changed=True) is member

    gone = step(member, 4, partitions(T, 0), wants=(T,), changed=True, owned=partitions(T, 0))
    assert (gone.state, gone.assigned) == (State.STABLE, {(T, 0): 4})


def test_it_may_want_even_less_while_it_gives_up_partitions() -> None:
    moved = step(stable(4, partitions(T, 0, 1) | partitions(U, 0)), 5, partitions(T, 0) | partitions(U, 0))

    less = step(moved, 5, partitions(T, 0), wants=(T,), changed=True)

    assert (less.state, less.assigned) == (State.UNREVOKED_PARTITIONS, {(T, 0): 4})
    assert less.revoking == {(T, 1): 4, (U, 0): 4}


def test_a_target_that_is_older_than_its_wish_gives_it_nothing_it_does_not_want() -> None:
    moved = step(Member("m"), 5, partitions(T, 0) | partitions(U, 0), wants=(T,), changed=True)

    assert moved.assigned == {(T, 0): 5}


def test_a_state_of_a_later_kafka_makes_it_start_over() -> None:
    member = Member("m", epoch=4, state=State.UNKNOWN, assigned={(T, 0): 4})

    with pytest.raises(FencedMemberEpoch):
        step(member, 5, partitions(T, 0))
    assert step(member, 5, partitions(T, 0), owned=frozenset()).state is State.STABLE
