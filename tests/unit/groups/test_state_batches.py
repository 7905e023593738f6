"""Combining state batches: checked against every offset taken by itself, and by example."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.share import StateBatch
from ottla.groups.state_batches import combine

BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 12),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)


@given(known=BATCHES, new=BATCHES, start=st.integers(-1, 20))
def test_every_offset_has_the_strongest_word_on_it(
    known: list[StateBatch], new: list[StateBatch], start: int
) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for batch in [*known, *new]:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            if offset >= start:
                word = (batch.delivery_count, batch.delivery_state)
                expected[offset] = max(expected.get(offset, word), word)
    combined = combine(known, new, start)
    said = {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in combined
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert said == expected
    assert sum(batch.last_offset - batch.first_offset + 1 for batch in combined) == len(expected)
    assert combined == sorted(combined)


@given(known=BATCHES, new=BATCHES)
def test_neighbours_that_say_the_same_are_one(known: list[StateBatch], new: list[StateBatch]) -> None:
    combined = combine(known, new, -1)
    if len(known) + len(new) < 2:
        return
    for before, after in pairwise(combined):
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


def test_a_later_delivery_overrules_an_earlier_one() -> None:
    assert combine([StateBatch(0, 9, 0, 1)], [StateBatch(3, 5, 2, 2)], 0) == [
        StateBatch(0, 2, 0, 1),
        StateBatch(3, 5, 2, 2),
        StateBatch(6, 9, 0, 1),
    ]


def test_what_lies_before_the_start_is_cut_off() -> None:
    assert combine([StateBatch(0, 4, 2, 1), StateBatch(5, 9, 0, 1)], [], 7) == [StateBatch(7, 9, 0, 1)]


def test_single_records_become_a_range() -> None:
    new = [StateBatch(offset, offset, 2, 1) for offset in range(5)]
    assert combine([], new, 0) == [StateBatch(0, 4, 2, 1)]
