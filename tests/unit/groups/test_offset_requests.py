"""OffsetCommit, OffsetFetch, OffsetDelete and TxnOffsetCommit in their versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.caller import Caller
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.groups.records import read
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.testing.shard import Written

HOST = "/127.0.0.1"
DAY_MS = 86_400_000


def fetch(shard: Any, topics: Any, *, version: int = 9, stable: bool = False) -> OffsetFetchResponseGroup:
    asked = OffsetFetchRequestGroup(group_id="g", topics=topics)
    caller = Caller("c", HOST, version)
    reply: OffsetFetchResponseGroup = shard.call(
        lambda machine, now, _: machine.offset_fetch(asked, caller, stable)
    )
    return reply


def by_name(name: str, *partitions: int) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(name=name, partition_indexes=list(partitions))


def by_id(topic_id: Uuid | None, *partitions: int) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(topic_id=topic_id or ZERO_UUID, partition_indexes=list(partitions))


def codes(reply: Any) -> list[int]:
    return [each.error_code for topic in reply.topics for each in topic.partitions]


def last_value(shard: Any) -> Any:
    written = [entry for entry in shard.log if isinstance(entry, Written)][-1]
    entry = read(written.record)
    assert entry is not None
    return entry.value


def test_a_position_comes_back_as_it_was_committed(shard: Any) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=2, committed_offset=77, committed_leader_epoch=4, committed_metadata="where"
    )
    shard.commit(topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    [answer] = fetch(shard, [by_name("t", 2)]).topics[0].partitions
    assert (answer.committed_offset, answer.committed_leader_epoch, answer.metadata) == (77, 4, "where")


def test_no_metadata_is_an_empty_string(shard: Any) -> None:
    partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata=None)
    shard.commit(topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    assert last_value(shard).metadata == ""


def test_a_partition_without_a_position_has_minus_one(shard: Any) -> None:
    for group_exists in (False, True):
        if group_exists:
            shard.commit()
        [answer] = fetch(shard, [by_name("u", 0)]).topics[0].partitions
        assert (answer.committed_offset, answer.committed_leader_epoch) == (-1, -1)
        assert (answer.metadata, answer.error_code) == ("", 0)


def test_the_topic_id_is_stored_whether_the_client_names_it_or_not(shard: Any) -> None:
    topic_id = shard.topics.topic_id("t")
    shard.commit(version=9)
    assert last_value(shard).topic_id == topic_id
    partition = OffsetCommitRequestPartition(committed_offset=6)
    reply = shard.commit(
        version=10, topics=[OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])]
    )
    assert codes(reply) == [0] and reply.topics[0].topic_id == topic_id
    assert (last_value(shard).topic_id, last_value(shard).offset) == (topic_id, 6)


def test_topic_ids_that_are_unknown_are_refused(shard: Any) -> None:
    unknown = Uuid(b"x" * 16)
    partition = OffsetCommitRequestPartition(committed_offset=6)
    topics = [OffsetCommitRequestTopic(topic_id=unknown, partitions=[partition])]
    reply = shard.commit(version=10, topics=topics)
    assert codes(reply) == [100] and reply.topics[0].topic_id == unknown
    assert codes(fetch(shard, [by_id(unknown, 0, 1)], version=10)) == [100, 100]


def test_positions_are_fetched_by_topic_id(shard: Any) -> None:
    shard.commit()
    topic_id = shard.topics.topic_id("t")
    reply = fetch(shard, [by_id(topic_id, 0)], version=10)
    assert reply.topics[0].topic_id == topic_id
    assert reply.topics[0].partitions[0].committed_offset == 5
    assert [topic.topic_id for topic in fetch(shard, None, version=10).topics] == [topic_id]


def test_positions_in_a_topic_that_is_gone_cannot_be_told_by_id(shard: Any) -> None:
    shard.commit()
    shard.topics.remove("t")
    assert fetch(shard, None, version=10).topics == []
    assert [topic.name for topic in fetch(shard, None, version=9).topics] == ["t"]


def test_a_topic_made_anew_does_not_inherit_positions(shard: Any) -> None:
    shard.commit()
    old = shard.topics.remove("t")
    shard.topics.add("t", 4)
    assert fetch(shard, [by_name("t", 0)]).topics[0].partitions[0].committed_offset == -1
    # Its own are kept when news of the deletion arrives late.
    shard.commit(topic="t")
    shard.take(lambda machine, now: machine.topics_changed({old: "t"}, set(), now))
    assert fetch(shard, [by_name("t", 0)]).topics[0].partitions[0].committed_offset == 5


def test_version_1_brings_its_own_commit_time(shard: Any) -> None:
    partition = OffsetCommitRequestPartition(committed_offset=1, commit_timestamp=123)
    shard.commit(version=1, topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    assert last_value(shard).commit_timestamp == 123


def test_a_retention_time_is_stored_as_the_time_it_ends(shard: Any) -> None:
    shard.commit(version=4, retention_time_ms=DAY_MS)
    assert last_value(shard).expire_timestamp == shard.now.wall_ms + DAY_MS
    shard.commit(version=4)
    assert last_value(shard).expire_timestamp == -1


def test_metadata_is_measured_as_java_measures_it(shard: Any) -> None:
    def commit(metadata: str) -> list[int]:
        partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata=metadata)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        return codes(shard.commit(topics=topics))

    assert commit("é" * 4_096) == [0]
    assert commit("x" * 4_097) == [12]
    assert commit("😀" * 2_048) == [0]  # two units each
    assert commit("😀" * 2_049) == [12]


@pytest.mark.parametrize(("version", "code"), [(1, 22), (8, 22), (9, 69), (10, 69)])
def test_a_generation_of_a_group_that_is_not_there(shard: Any, version: int, code: int) -> None:
    topic = OffsetCommitRequestTopic(
        name="t" if version < 10 else "",
        topic_id=ZERO_UUID if version < 10 else shard.topics.topic_id("t"),
        partitions=[OffsetCommitRequestPartition(committed_offset=1)],
    )
    reply = shard.commit(version=version, generation_id_or_member_epoch=1, member_id="m", topics=[topic])
    assert codes(reply) == [code]
    assert shard.log == []


def test_unknown_partitions_are_told_apart_from_a_wrong_generation(shard: Any) -> None:
    joined = shard.stable()
    topics = [
        OffsetCommitRequestTopic(
            name="t", partitions=[OffsetCommitRequestPartition(partition_index=index) for index in (0, 4, -1)]
        ),
        OffsetCommitRequestTopic(name="missing", partitions=[OffsetCommitRequestPartition()]),
    ]
    reply = shard.commit(
        topics=topics, generation_id_or_member_epoch=joined.generation_id - 1, member_id=joined.member_id
    )
    assert codes(reply) == [22, 3, 3, 3]


def test_a_commit_keeps_its_member_alive(shard: Any) -> None:
    joined = shard.stable()
    for _ in range(5):
        shard.advance(9_000)
        shard.commit(generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id)
    assert shard.machine.describe_group("g").group_state == "Stable"
    shard.advance(10_000)
    assert shard.machine.describe_group("g").group_state == "Empty"


def test_a_refused_commit_does_not(shard: Any) -> None:
    joined = shard.stable()
    shard.advance(9_000)
    shard.commit(generation_id_or_member_epoch=joined.generation_id + 1, member_id=joined.member_id)
    shard.advance(1_000)
    assert shard.machine.describe_group("g").group_state == "Empty"


def test_positions_in_a_transaction_carry_no_topic_id(shard: Any) -> None:
    request = TxnOffsetCommitRequest(
        group_id="g",
        producer_id=9,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t", partitions=[TxnOffsetCommitRequestPartition(committed_offset=3)]
            )
        ],
    )
    caller = Caller("c", HOST, 5)
    shard.call(lambda machine, now, _: machine.txn_offset_commit(request, caller, now), transaction=(9, 0))
    assert last_value(shard).topic_id == ZERO_UUID
    shard.end_transaction(9, 0, True)
    assert fetch(shard, [by_name("t", 0)], stable=True).topics[0].partitions[0].committed_offset == 3


def test_a_sweep_that_finds_much_goes_in_slices(shard: Any) -> None:
    shard.topics.add("wide", 700)
    for number in range(5):
        partitions = [OffsetCommitRequestPartition(partition_index=index) for index in range(700)]
        shard.commit(
            group_id=f"g{number}", topics=[OffsetCommitRequestTopic(name="wide", partitions=partitions)]
        )
    shard.take_news()
    shard.elapsed_ms += shard.settings.offsets_retention_minutes * 60_000
    outcome = shard.machine.expire(shard.now)
    assert 1_000 <= len(outcome.records) < 2_000
    due = shard.machine.deadline()
    assert due is not None and due <= shard.now.monotonic_ms, "it does not go on"


def test_the_whole_sweep_is_the_same_in_slices(shard: Any) -> None:
    shard.topics.add("wide", 700)
    for number in range(5):
        partitions = [OffsetCommitRequestPartition(partition_index=index) for index in range(700)]
        shard.commit(
            group_id=f"g{number}", topics=[OffsetCommitRequestTopic(name="wide", partitions=partitions)]
        )
    shard.advance((shard.settings.offsets_retention_minutes + 20) * 60_000)
    assert shard.machine.groups == {} and shard.machine.offsets.by_group == {}
    assert shard.replayed().groups == {}


def test_deleting_a_wide_topic_reaches_every_group(shard: Any) -> None:
    shard.topics.add("wide", 700)
    for number in range(5):
        partitions = [OffsetCommitRequestPartition(partition_index=index) for index in range(700)]
        shard.commit(
            group_id=f"g{number}", topics=[OffsetCommitRequestTopic(name="wide", partitions=partitions)]
        )
        shard.commit(group_id=f"g{number}")
    deleted = {shard.topics.remove("wide"): "wide"}
    shard.take(lambda machine, now: machine.topics_changed(deleted, set(), now))
    shard.advance(0)
    assert {name: list(topics) for name, topics in shard.machine.offsets.by_group.items()} == {
        f"g{number}": ["t"] for number in range(5)
    }
