"""The range assignor: consecutive partitions, alike for topics of the same size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import Uuid
from ottla.groups.assignors.range import assign
from ottla.groups.assignors.subscribers import Assignment, Subscriber


def topic(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def shown(assigned: dict[str, Assignment]) -> dict[str, dict[int, list[int]]]:
    """Member -> the number of a topic -> its partitions."""
    result: dict[str, dict[int, list[int]]] = {name: {} for name in assigned}
    for name, held in assigned.items():
        for each, index in sorted(held):
            result[name].setdefault(int.from_bytes(each, "big"), []).append(index)
    return result


def test_the_first_members_have_one_more() -> None:
    members = {name: Subscriber(frozenset({topic(1)})) for name in "abc"}

    assert shown(assign(members, {topic(1): 8})) == {
        "a": {1: [0, 1, 2]},
        "b": {1: [3, 4, 5]},
        "c": {1: [6, 7]},
    }


def test_topics_of_the_same_size_are_divided_alike() -> None:
    counts = {topic(1): 3, topic(2): 3}
    members = {name: Subscriber(frozenset(counts)) for name in "ab"}

    assert shown(assign(members, counts)) == {"a": {1: [0, 1], 2: [0, 1]}, "b": {1: [2], 2: [2]}}


def test_each_topic_is_divided_among_its_own_subscribers() -> None:
    members = {
        "a": Subscriber(frozenset({topic(1), topic(2)})),
        "b": Subscriber(frozenset({topic(2)})),
        "c": Subscriber(frozenset({topic(3)})),
    }

    assert shown(assign(members, {topic(1): 2, topic(2): 3})) == {
        "a": {1: [0, 1], 2: [0, 1]},
        "b": {2: [2]},
        "c": {},
    }


def test_static_members_come_first_by_their_instance() -> None:
    wanted = frozenset({topic(1)})
    members = {
        "a": Subscriber(wanted),
        "b": Subscriber(wanted, instance_id="second"),
        "c": Subscriber(wanted, instance_id="first"),
    }

    assert shown(assign(members, {topic(1): 3})) == {"a": {1: [2]}, "b": {1: [1]}, "c": {1: [0]}}


def test_more_members_than_partitions_leave_the_last_without() -> None:
    members = {name: Subscriber(frozenset({topic(1)})) for name in "abc"}

    assert shown(assign(members, {topic(1): 1})) == {"a": {1: [0]}, "b": {}, "c": {}}


names = st.integers(0, 9).map(lambda number: f"member-{number}")
topics = st.integers(0, 5).map(topic)


@given(
    st.dictionaries(names, st.frozensets(topics).map(Subscriber), min_size=1),
    st.dictionaries(topics, st.integers(1, 12)),
)
def test_every_topic_is_covered_once_in_order(
    members: dict[str, Subscriber], counts: dict[Uuid, int]
) -> None:
    assigned = assign(members, counts)

    for each, count in counts.items():
        subscribers = sorted(name for name in members if each in members[name].topics)
        ranges = [sorted(i for t, i in assigned[name] if t == each) for name in subscribers]
        if subscribers:
            assert [index for part in ranges for index in part] == list(range(count))
        lengths = [len(part) for part in ranges]
        assert lengths == sorted(lengths, reverse=True)
        assert not lengths or lengths[0] - lengths[-1] <= 1
