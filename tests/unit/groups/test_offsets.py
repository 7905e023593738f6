"""Positions in transactions, against a model that replays everything in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.outcome import Applied
from ottla.groups.offsets import Offsets
from ottla.protocol.stored.groups import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

GROUPS, TOPICS, PARTITIONS, PRODUCERS = ("g", "h"), ("t", "u"), (0, 1), (-1, 7, 8)
PLACES = st.tuples(st.sampled_from(GROUPS), st.sampled_from(TOPICS), st.sampled_from(PARTITIONS))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), PLACES, st.sampled_from(PRODUCERS)),
        st.tuples(st.just("delete"), PLACES, st.just(-1)),
        st.tuples(st.just("end"), st.booleans(), st.sampled_from(PRODUCERS[1:])),
    ),
    max_size=40,
)


@given(STEPS)
def test_positions_take_force_in_the_order_in_which_they_were_written(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    offsets = Offsets()
    in_force: dict[tuple[str, str, int], int] = {}
    pending: dict[int, dict[tuple[str, str, int], int]] = {7: {}, 8: {}}
    for offset, (verb, what, producer_id) in enumerate(steps):
        if verb == "end":
            offsets.end_transaction(producer_id, what)
            for place, written in pending[producer_id].items():
                if what and written > in_force.get(place, -1):
                    in_force[place] = written
            pending[producer_id] = {}
            continue
        group, topic, partition = what
        key = OffsetCommitKey(group=group, topic=topic, partition=partition)
        if verb == "delete":
            offsets.apply(key, None, Applied(offset, 0))
            for positions in (in_force, *pending.values()):
                positions.pop(what, None)
        else:
            value = OffsetCommitValue(offset=offset)
            offsets.apply(key, value, Applied(offset, 0, producer_id, 0 if producer_id >= 0 else -1))
            (in_force if producer_id < 0 else pending[producer_id])[what] = offset
    for group in GROUPS:
        held = {place for positions in pending.values() for place in positions if place[0] == group}
        assert offsets.has_open_transactions(group) == bool(held)
        everything = set(offsets.everything_of(group))
        assert everything == {place[1:] for place in {*in_force, *held} if place[0] == group}
        for topic in TOPICS:
            for partition in PARTITIONS:
                position = offsets.get(group, topic, partition)
                known = None if position is None else position.offset
                assert known == in_force.get((group, topic, partition))
                assert offsets.is_pending(group, topic, partition) == ((group, topic, partition) in held)


def test_positions_from_before_groups_count() -> None:
    offsets = Offsets()
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=0)
    offsets.apply(key, LegacyOffsetCommitValue(offset=4, metadata="m", commit_timestamp=9), Applied(0, 0))
    position = offsets.get("g", "t", 0)
    assert position is not None and (position.offset, position.metadata, position.leader_epoch) == (
        4,
        "m",
        -1,
    )
