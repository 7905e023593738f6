"""The uniform assignor: level loads, few moves, whatever the subscriptions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import Assignment, Partition, Subscriber
from ottla.groups.assignors.uniform import assign

Members = dict[str, Subscriber]


def topic(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def partitions(counts: dict[Uuid, int]) -> set[Partition]:
    return {(each, index) for each, count in counts.items() for index in range(count)}


def again(members: Members, assigned: dict[str, Assignment]) -> Members:
    return {name: each._replace(assigned=assigned.get(name, frozenset())) for name, each in members.items()}


def check_complete(members: Members, counts: dict[Uuid, int], assigned: dict[str, Assignment]) -> None:
    """Every partition that someone subscribes to has one owner, who does subscribe to it."""
    owners = Counter(partition for each in assigned.values() for partition in each)
    wanted = {each for member in members.values() for each in member.topics}
    assert set(owners) == {each for each in partitions(counts) if each[0] in wanted}
    assert set(owners.values()) <= {1}
    assert set(assigned) == set(members)
    for name, held in assigned.items():
        assert {each for each, _ in held} <= members[name].topics


def check_level(members: Members, assigned: dict[str, Assignment]) -> None:
    """No partition could go to a subscriber that has two fewer than its owner."""
    for owner, held in assigned.items():
        for each in {each for each, _ in held}:
            for other, member in members.items():
                if each in member.topics:
                    assert len(held) - len(assigned[other]) <= 1, (owner, other)


def test_partitions_are_divided_evenly_and_topics_are_spread() -> None:
    counts = {topic(1): 6, topic(2): 6}
    members = {name: Subscriber(frozenset(counts)) for name in "abc"}

    assigned = assign(members, counts)

    assert [len(assigned[name]) for name in "abc"] == [4, 4, 4]
    for held in assigned.values():
        assert Counter(each for each, _ in held) == {topic(1): 2, topic(2): 2}


def test_a_newcomer_takes_its_share_and_nothing_else_moves() -> None:
    counts = {topic(1): 900}
    members = {f"m{number:03}": Subscriber(frozenset(counts)) for number in range(100)}
    before = assign(members, counts)
    members = again(members, before) | {"newcomer": Subscriber(frozenset(counts))}

    after = assign(members, counts)

    check_complete(members, counts, after)
    check_level(members, after)
    assert len(after["newcomer"]) == 8
    moved = sum(len(before[name] - after[name]) for name in before)
    assert moved == 8


def test_a_newcomer_gets_something_of_every_topic() -> None:
    counts = {topic(1): 6, topic(2): 6, topic(3): 6}
    everything = Subscriber(frozenset(counts))
    before = assign({"a": everything}, counts)

    after = assign(again({"a": everything, "b": everything}, before), counts)

    for held in after.values():
        assert Counter(each for each, _ in held) == {topic(1): 3, topic(2): 3, topic(3): 3}


def test_those_who_stay_keep_all_they_have_when_one_leaves() -> None:
    counts = {topic(number): 7 for number in range(10)}
    members = {name: Subscriber(frozenset(counts)) for name in "abcde"}
    before = assign(members, counts)
    members = {name: each for name, each in again(members, before).items() if name != "c"}

    after = assign(members, counts)

    check_complete(members, counts, after)
    check_level(members, after)
    assert all(before[name] <= after[name] for name in "abde")


def test_more_members_than_partitions_leave_some_without() -> None:
    counts = {topic(1): 2}
    members = {name: Subscriber(frozenset(counts)) for name in "abcd"}

    assert sorted(len(each) for each in assign(members, counts).values()) == [0, 0, 1, 1]


def test_a_topic_that_is_gone_or_smaller_is_let_go() -> None:
    gone, here = topic(1), topic(2)
    had = frozenset({(gone, 0), (here, 0), (here, 5)})
    members = {"a": Subscriber(frozenset({gone, here}), had)}

    assert assign(members, {here: 2}) == {"a": {(here, 0), (here, 1)}}


def test_a_partition_that_two_were_to_have_goes_to_one() -> None:
    counts = {topic(1): 4}
    both = frozenset({(topic(1), 0), (topic(1), 1)})
    members = {"a": Subscriber(frozenset(counts), both), "b": Subscriber(frozenset(counts), both)}

    check_complete(members, counts, assign(members, counts))


def test_who_can_have_little_else_has_what_others_can_spare() -> None:
    shared, alone = topic(1), topic(2)
    members = {"a": Subscriber(frozenset({shared, alone})), "b": Subscriber(frozenset({shared}))}

    assigned = assign(members, {shared: 4, alone: 4})

    assert assigned == {
        "a": {(alone, index) for index in range(4)},
        "b": {(shared, index) for index in range(4)},
    }


def test_nobody_subscribes_to_anything() -> None:
    assert assign({}, {topic(1): 3}) == {}
    assert assign({"a": Subscriber(frozenset())}, {topic(1): 3}) == {"a": frozenset()}


names = st.integers(0, 12).map(lambda number: f"member-{number}")
topics = st.integers(0, 6).map(topic)
groups = st.dictionaries(names, st.frozensets(topics).map(Subscriber), min_size=1)
sizes = st.dictionaries(topics, st.integers(1, 9))


@settings(max_examples=200)
@given(groups, sizes, groups, sizes)
def test_any_group_after_any_change_is_complete_level_and_settled(
    first: Members, first_counts: dict[Uuid, int], second: Members, second_counts: dict[Uuid, int]
) -> None:
    before = assign(first, first_counts)
    check_complete(first, first_counts, before)
    check_level(first, before)

    changed = again(second, before)
    after = assign(changed, second_counts)
    check_complete(changed, second_counts, after)
    check_level(changed, after)

    assert assign(again(changed, after), second_counts) == after


@settings(max_examples=200)
@given(st.frozensets(names, min_size=1), st.frozensets(names, min_size=1), sizes)
def test_with_one_subscription_no_move_is_needless(
    first: frozenset[str], second: frozenset[str], counts: dict[Uuid, int]
) -> None:
    everything = Subscriber(frozenset(counts))
    before = assign(dict.fromkeys(first, everything), counts)
    after = assign(again(dict.fromkeys(second, everything), before), counts)

    total = sum(counts.values())
    each, extra = divmod(total, len(second))
    had = sorted((len(before.get(name, ())) for name in second), reverse=True)
    kept = sum(min(size, each + (index < extra)) for index, size in enumerate(had))
    assert sum(len(before[name] & after[name]) for name in first & second) == kept
