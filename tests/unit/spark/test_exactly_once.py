"""The rules of the exactly-once sink, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.types import TopicPartition
from ottla.spark.exactly_once import (
    METADATA_LIMIT,
    Marker,
    Open,
    Progress,
    ReplayDiffers,
    Share,
    group_of,
    plan_commit,
    slot_of,
    transactional_id,
)

NOTHING = Progress(7, {})
SHARES = [
    Share(0),
    Share(1, 10, Open(1, 100, 0)),
    Share(2, 20, Open(2, 101, 3)),
    Share(3),
    Share(4, 30, Open(4, 102, 1)),
]


def progress_of(*markers: Marker, batch_id: int = 7, topic: str = "sink") -> Progress:
    """As it is read back from the group."""
    return Progress.of(
        batch_id,
        [
            (TopicPartition(topic, number), (marker.offset, marker.metadata()))
            for number, marker in enumerate(markers)
        ],
    )


numbers = st.integers(0, 2**62)


@given(
    st.builds(
        Marker,
        numbers,
        numbers,
        numbers,
        numbers,
        numbers,
        numbers,
        numbers,
        st.lists(st.builds(Open, numbers, numbers, st.integers(0, 32767)), max_size=5).map(tuple),
    )
)
def test_a_marker_is_read_as_it_was_written(marker: Marker) -> None:
    assert Marker.parse(marker.offset, marker.metadata()) == marker


@pytest.mark.parametrize("metadata", ["", "x", "task=1/2", "task=1/2 writer=0/1 slots=2 rows=3 open=1:2"])
def test_what_somebody_else_has_stored_in_the_group_is_passed_over(metadata: str) -> None:
    positions = [(TopicPartition("sink", 0), (8, metadata))]
    assert Progress.of(7, positions) == NOTHING


def test_names_that_do_not_fit_are_left_out_of_a_marker() -> None:
    few = Marker(7, 0, 9, 0, 9, 3, 10, tuple(Open(task, 10**9 + task, 5) for task in range(1, 200)))
    assert len(few.metadata()) <= METADATA_LIMIT
    assert Marker.parse(few.offset, few.metadata()) == few
    many = few._replace(rest=tuple(Open(task, 10**9 + task, 5) for task in range(1, 2000)))
    assert len(many.metadata()) <= METADATA_LIMIT
    assert Marker.parse(many.offset, many.metadata()) == many._replace(rest=())


def test_markers_of_other_batches_do_not_count() -> None:
    marker = Marker(6, 1, 5, 0, 1, 3, 10)
    assert not progress_of(marker).is_decided
    assert progress_of(marker, batch_id=6).is_complete


def test_a_new_batch_is_committed_in_the_order_of_its_tasks_and_the_first_marker_names_the_others() -> None:
    plan = plan_commit(NOTHING, SHARES, slots=2)
    assert [transaction.task for _, transaction in plan.ends] == [1, 2, 4]
    assert [marker.ordinal for marker, _ in plan.ends] == [0, 1, 2]
    assert {(marker.tasks, marker.writers, marker.slots) for marker, _ in plan.ends} == {(5, 3, 2)}
    assert [marker.rest for marker, _ in plan.ends] == [(Open(2, 101, 3), Open(4, 102, 1)), (), ()]
    assert plan.stray == []


def test_a_batch_without_rows_needs_nothing() -> None:
    assert plan_commit(NOTHING, [Share(0), Share(1)], slots=1) == ([], [])


def markers(count: int) -> list[Marker]:
    return [marker for marker, _ in plan_commit(NOTHING, SHARES, slots=2).ends][:count]


def test_a_batch_is_decided_by_its_first_marker_and_complete_with_its_last() -> None:
    assert not progress_of().is_decided
    assert progress_of(*markers(1)).is_decided
    assert not progress_of(*markers(2)).is_complete
    assert progress_of(*markers(3)).is_complete
    assert progress_of(*markers(2)).unfinished() == [Open(4, 102, 1)]
    assert progress_of(*markers(3)).unfinished() == []
    assert progress_of(*markers(2), topic="elsewhere").topic == "elsewhere"


def again(*shares: Share) -> list[Share]:
    """The batch run again: those whose task is named here are as given."""
    return sorted({**{each.task: each for each in SHARES}, **{each.task: each for each in shares}}.values())


RECORDED = Share(1, 10, is_recorded=True)
AFTER_THE_FIRST = progress_of(*markers(1))


def test_of_a_batch_that_was_committed_in_part_the_rest_is_committed_in_the_same_slots() -> None:
    plan = plan_commit(AFTER_THE_FIRST, again(RECORDED), slots=99)
    assert [(marker.ordinal, marker.slots, marker.rest) for marker, _ in plan.ends] == [
        (1, 2, ()),
        (2, 2, ()),
    ]
    assert [transaction.task for _, transaction in plan.ends] == [2, 4]


def test_of_a_complete_batch_nothing_is_committed_again() -> None:
    complete = progress_of(*markers(3))
    assert plan_commit(complete, SHARES, slots=2) == ([], [each.open for each in SHARES if each.open])
    other_tasks = [Share(0, 60, Open(0, 9, 9))]
    assert plan_commit(complete, other_tasks, slots=2) == ([], [Open(0, 9, 9)])


def test_what_was_committed_after_all_is_not_committed_a_second_time() -> None:
    plan = plan_commit(AFTER_THE_FIRST, SHARES, slots=2)
    assert plan.stray == [Open(1, 100, 0)]
    assert [transaction.task for _, transaction in plan.ends] == [2, 4]


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        (again(RECORDED)[:-1], "with 5 tasks and now has 4"),
        (again(RECORDED, Share(5)), "with 5 tasks and now has 6"),
        (again(RECORDED._replace(rows=11)), "task 1 had 10 rows and now has 11"),
        (again(RECORDED, Share(4)), "rows in 3 tasks and now has rows in 2"),
        (again(RECORDED, Share(3, 1, Open(3, 5, 5))), "rows in 3 tasks and now has rows in 4"),
        (
            again(RECORDED, Share(0, 1, Open(0, 5, 5)), Share(4)),
            "task 1 had rows in the place of task 0",
        ),
    ],
)
def test_a_batch_committed_in_part_is_refused_when_it_is_not_the_same_again(
    shares: list[Share], words: str
) -> None:
    with pytest.raises(ReplayDiffers, match=words):
        plan_commit(AFTER_THE_FIRST, shares, slots=2)


def test_markers_that_have_gone_are_noticed() -> None:
    with pytest.raises(ReplayDiffers, match="have gone"):
        plan_commit(NOTHING, again(RECORDED), slots=2)


@given(st.integers(1, 50), st.integers(1, 200))
def test_no_two_markers_have_the_same_slot(slots: int, writers: int) -> None:
    found = {slot_of(ordinal, slots) for ordinal in range(writers)}
    assert len(found) == writers
    assert all(partition < slots for _, partition in found)
    first = Marker(0, 0, writers, 0, writers, slots, 1)
    assert {shelf for shelf, _ in found} == set(range(progress_of(first, batch_id=0).shelves))


def test_names_tell_queries_tasks_and_shelves_apart() -> None:
    assert transactional_id("q", 3) == "ottla-q-3"
    assert group_of("q") == "ottla-sink-q"
    assert group_of("q", 2) == "ottla-sink-q-2"
