from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.placement import UsableBroker, place
from ottla.protocol.errors import InvalidReplicationFactor


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(number, rack, number in fenced) for number, rack in enumerate(racks)]


def first(below: int) -> int:
    return 0


def test_replicas_go_to_different_racks_as_far_as_there_are_any() -> None:
    racks = ["a", "a", "b", "b", "c", "c"]
    for replicas in place(brokers(*racks), 20, 3, first):
        assert {racks[broker] for broker in replicas} == {"a", "b", "c"}


def test_leaders_are_spread_evenly_over_unfenced_brokers() -> None:
    leaders = Counter(replicas[0] for replicas in place(brokers(None, None, None), 300, 2, first))
    assert leaders == {0: 100, 1: 100, 2: 100}


def test_a_fenced_broker_follows_but_does_not_lead() -> None:
    for replicas in place(brokers(None, None, None, fenced=(1,)), 12, 3, first):
        assert replicas[0] != 1
        assert sorted(replicas) == [0, 1, 2]


def test_a_single_unfenced_broker_leads_everything() -> None:
    assert place(brokers("a", "b", fenced=(0,)), 3, 1, first) == [(1,)] * 3


@pytest.mark.parametrize(
    ("usable", "factor"),
    [(brokers(), 1), (brokers("a"), 2), (brokers("a"), 0), (brokers("a", fenced=(0,)), 1)],
)
def test_what_cannot_be_placed_is_refused(usable: list[UsableBroker], factor: int) -> None:
    with pytest.raises(InvalidReplicationFactor):
        place(usable, 1, factor, first)


@given(data=st.data())
def test_replicas_are_distinct_and_the_leader_is_there(data: st.DataObject) -> None:
    racks = data.draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8))
    fenced = data.draw(st.sets(st.integers(0, len(racks) - 1), max_size=len(racks) - 1))
    usable = brokers(*racks, fenced=tuple(fenced))
    factor = data.draw(st.integers(1, len(racks)))
    draw = lambda below: data.draw(st.integers(0, below - 1))  # noqa: E731

    placed = place(usable, data.draw(st.integers(1, 12)), factor, draw)

    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] not in fenced
