"""Records of consumer groups, byte for byte as Apache Kafka 4.3.0 writes them."""

from __future__ import annotations

from ottla.core.ids import Uuid
from ottla.core.outcome import Applied, LogRecord
from ottla.groups.consumer import records
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member, State
from ottla.groups.records import read
from tests.unit.groups.conftest import GroupShard

GROUP = "grp-consumer"
MEMBER = Member(
    "ORUMXswrQIGzEI3u4Ne9Ew",
    client_id="cl-consumer",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=300_000,
    topic_names=frozenset({"g-txn", "g-none"}),
)
TXN, NONE = Uuid.parse("MbbgwKesT0mDjul0l8HB4w"), Uuid.parse("T1_nOd0oRwaBDP5_JE9qCw")

# Of a group whose only member joined, and left.
MEMBER_KEY = "000c6772702d636f6e73756d657200164f52554d587377725149477a45493375344e65394577"
GROUP_KEY = "000c6772702d636f6e73756d6572"
WRITTEN = {
    "0005" + MEMBER_KEY: (
        "000000000c636c2d636f6e73756d65720b2f3132372e302e302e310307672d6e6f6e6506672d74786e01000493e0"
        "0001000100"
    ),
    "0003" + GROUP_KEY: "000000000002010008e51eba85c08a8be0",
    "0007" + MEMBER_KEY: (
        "0000034f5fe739dd284706810cfe7f244f6a0b02000000000031b6e0c0a7ac4f49838ee97497c1c1e302000000000000"
    ),
    "0006" + GROUP_KEY: "000000000002010008000001a1e116ca4b",
    "0008" + MEMBER_KEY: (
        "00000000000200000000000331b6e0c0a7ac4f49838ee97497c1c1e3020000000001000502000000024f5fe739dd284706"
        "810cfe7f244f6a0b020000000001000502000000020100"
    ),
}


def kafkas(key: str) -> LogRecord:
    return LogRecord(bytes.fromhex(key), bytes.fromhex(WRITTEN[key]))


def test_a_member_is_written_as_kafka_writes_it() -> None:
    assert records.member_metadata(GROUP, MEMBER) == kafkas("0005" + MEMBER_KEY)


def test_a_group_epoch_is_written_as_kafka_writes_it() -> None:
    assert records.group_epoch(GROUP, 2, -1936905706099012640) == kafkas("0003" + GROUP_KEY)
    assert records.group_epoch(GROUP, 3, 0).value == bytes.fromhex("00000000000300")


def test_a_target_is_written_as_kafka_writes_it() -> None:
    written = records.target(GROUP, MEMBER.member_id, {(TXN, 0), (NONE, 0)})
    theirs = kafkas("0007" + MEMBER_KEY)

    assert written.key == theirs.key
    ours, expected = read(written), read(theirs)
    assert ours is not None and expected is not None
    # Kafka lists topics in the order of a hash map.
    assert ours.value is not None and expected.value is not None
    assert ours.value.topic_partitions == list(reversed(expected.value.topic_partitions))
    assert len(written.value or b"") == len(theirs.value or b"")


def test_a_target_epoch_is_written_as_kafka_writes_it() -> None:
    assert records.target_epoch(GROUP, 2, 1794777729611) == kafkas("0006" + GROUP_KEY)


def test_a_present_assignment_is_written_as_kafka_writes_it() -> None:
    member = Member(
        MEMBER.member_id, epoch=2, previous_epoch=0, assigned={(TXN, 0): 2, (NONE, 0): 2}, state=State.STABLE
    )
    assert records.current(GROUP, member) == kafkas("0008" + MEMBER_KEY)


def test_who_leaves_is_taken_back_in_kafkas_order() -> None:
    assert [each.key.hex() for each in records.forget_member(GROUP, MEMBER.member_id)] == [
        "0008" + MEMBER_KEY,
        "0007" + MEMBER_KEY,
        "0005" + MEMBER_KEY,
    ]


def test_a_group_that_kafka_wrote_is_understood(shard: GroupShard) -> None:
    for offset, key in enumerate(WRITTEN):
        shard.machine.apply(kafkas(key), Applied(offset, 0))

    group = shard.machine.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert group.state_name == "Stable"
    assert (group.epoch, group.assignment_epoch, group.assigned_at_ms) == (2, 2, 1794777729611)
    (member,) = group.members.values()
    assert member.topic_names == MEMBER.topic_names
    assert member.assigned == {(TXN, 0): 2, (NONE, 0): 2}
    assert group.owners == dict.fromkeys([(TXN, 0), (NONE, 0)], MEMBER.member_id)


def test_epochs_of_partitions_are_those_of_the_member_if_an_older_kafka_wrote_it(shard: GroupShard) -> None:
    older = bytes.fromhex(
        "0000000000070000000600" + "02" + NONE.hex() + "03" + "00000000" + "00000001" + "00" + "0100"
    )
    key = bytes.fromhex("0008" + MEMBER_KEY)

    shard.machine.apply(LogRecord(key, older), Applied(0, 0))

    group = shard.machine.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert group.members[MEMBER.member_id].assigned == {(NONE, 0): 7, (NONE, 1): 7}


def test_a_state_of_a_later_kafka_is_kept_as_unknown() -> None:
    assert State(9) is State.UNKNOWN
