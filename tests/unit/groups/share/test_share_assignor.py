"""The simple assignor: everybody reads something, everything is read, and little moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import Assignment, Subscriber
from ottla.groups.share.assignor import assign

A, B, C = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))
TOPICS = st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=3, unique=True).map(frozenset)


def _members(count: int, topics: frozenset[Uuid] = frozenset([A])) -> dict[str, Subscriber]:
    return {f"m{number}": Subscriber(topics) for number in range(count)}


def _again(members: dict[str, Subscriber], assigned: dict[str, Assignment]) -> dict[str, Subscriber]:
    return {
        member_id: member._replace(assigned=assigned.get(member_id, frozenset()))
        for member_id, member in members.items()
    }


def _sizes(assigned: dict[str, Assignment]) -> list[int]:
    return sorted(len(given) for given in assigned.values())


def test_fewer_members_than_partitions_share_them_out() -> None:
    assert _sizes(assign(_members(2), {A: range(5)})) == [2, 3]


def test_more_members_than_partitions_read_some_together() -> None:
    assigned = assign(_members(5), {A: range(2)})
    assert _sizes(assigned) == [1, 1, 1, 1, 2]
    readers = Counter(partition for given in assigned.values() for partition in given)
    assert sorted(readers.values()) == [3, 3]


def test_nothing_moves_without_a_reason() -> None:
    members = _members(3)
    first = assign(members, {A: range(7)})
    assert assign(_again(members, first), {A: range(7)}) == first


def test_a_member_that_comes_gets_its_share_and_others_keep_most() -> None:
    members = _members(2)
    first = assign(members, {A: range(6)})
    more = _again(_members(3), first)
    second = assign(more, {A: range(6)})
    assert _sizes(second) == [2, 2, 2]
    for member_id in members:
        assert second[member_id] < first[member_id]


def test_only_partitions_that_are_ready_are_assigned() -> None:
    assert assign(_members(1), {A: [1, 3]}) == {"m0": frozenset([(A, 1), (A, 3)])}
    assert assign(_members(1), {}) == {"m0": frozenset()}
    assert assign({}, {A: range(3)}) == {}


def test_members_that_want_different_topics_get_those() -> None:
    members = {"a": Subscriber(frozenset([A])), "ab": Subscriber(frozenset([A, B]))}
    assigned = assign(members, {A: range(2), B: range(2)})
    assert {topic for topic, _ in assigned["a"]} == {A}
    assert {(B, 0), (B, 1)} <= assigned["ab"]
    assert {index for topic, index in assigned["a"] | assigned["ab"] if topic == A} == {0, 1}


@given(
    subscriptions=st.lists(TOPICS, min_size=1, max_size=12),
    had=st.lists(st.sets(st.tuples(st.sampled_from([A, B, C]), st.integers(0, 6))), max_size=12),
    counts=st.fixed_dictionaries({A: st.integers(0, 6), B: st.integers(0, 6), C: st.integers(0, 6)}),
)
def test_everybody_reads_something_and_everything_is_read(
    subscriptions: list[frozenset[Uuid]],
    had: list[set[tuple[Uuid, int]]],
    counts: dict[Uuid, int],
) -> None:
    members = {
        f"m{number}": Subscriber(topics, had[number] if number < len(had) else frozenset())
        for number, topics in enumerate(subscriptions)
    }
    assigned = assign(members, {topic: range(count) for topic, count in counts.items()})
    assert assigned.keys() == members.keys()
    wanted = set().union(*subscriptions)
    every = {(topic, index) for topic in wanted for index in range(counts[topic])}
    assert set().union(*assigned.values()) == every
    for member_id, given_to_it in assigned.items():
        assert {topic for topic, _ in given_to_it} <= members[member_id].topics
        assert given_to_it or not any(counts[topic] for topic in members[member_id].topics)
    if len(set(subscriptions)) == 1:
        sizes = _sizes(assigned)
        assert sizes[-1] - sizes[0] <= 1 or len(members) > len(every)
