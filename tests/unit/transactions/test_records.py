from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.core.outcome import LogRecord
from ottla.core.types import TopicPartition
from ottla.transactions import records
from ottla.transactions.states import PREDECESSORS, State
from ottla.transactions.transaction import VERSION_1, VERSION_2, Transaction

EVENTS_0, EVENTS_3, OTHER = (
    TopicPartition("events", 0),
    TopicPartition("events", 3),
    TopicPartition("other", 1),
)

ONGOING = Transaction(
    transactional_id="tx-golden",
    producer_id=3,
    producer_epoch=0,
    timeout_ms=60_000,
    state=State.ONGOING,
    partitions=frozenset({TopicPartition("__consumer_offsets", 10)}),
    start_ms=1794777725573,
    last_update_ms=1794777725573,
    previous_producer_id=3,
    version=VERSION_2,
)
# What Kafka 4.3 wrote for it.
KEY = bytes.fromhex("0000000974782d676f6c64656e")


def test_the_bytes_are_those_of_kafka() -> None:
    record = records.record_of(ONGOING, 2)
    assert record.key == KEY
    assert record.value is not None
    assert len(record.value) == 74
    assert record.value == bytes.fromhex(
        "0001"  # version
        "0000000000000003"  # producer id
        "0000"  # epoch
        "0000ea60"  # timeout
        "01"  # ongoing
        "02"  # one topic
        "135f5f636f6e73756d65725f6f666673657473"
        "02"  # one partition
        "0000000a"
        "00"  # no tags in the topic
        "000001a1e116ba85"  # last update
        "000001a1e116ba85"  # start
        "02"  # two tags
        "00080000000000000003"  # previous producer id
        "02020002"  # client's version
    )


@pytest.mark.parametrize("state", [s for s in State if s in PREDECESSORS and s is not State.DEAD])
def test_what_is_written_is_read_back(state: State) -> None:
    partitions = frozenset() if state is State.EMPTY else frozenset({EVENTS_0, EVENTS_3, OTHER})
    transaction = replace(ONGOING, state=state, partitions=partitions, next_producer_id=99)
    entry = records.read(records.record_of(transaction, 2))
    assert entry == ("tx-golden", transaction)


def test_a_cluster_that_does_not_know_version_2_writes_values_of_before() -> None:
    old = replace(ONGOING, version=VERSION_1)
    record = records.record_of(old, 0)
    assert record.value is not None
    assert record.value[:2] == b"\0\0"
    entry = records.read(record)
    assert entry is not None
    assert entry.transaction == replace(old, previous_producer_id=-1)
    assert records.read(records.record_of(ONGOING, 0)) == ("tx-golden", ONGOING)


def test_partitions_are_listed_by_topic() -> None:
    value = records.record_of(replace(ONGOING, partitions=frozenset({EVENTS_3, OTHER, EVENTS_0})), 2).value
    assert value is not None
    assert value.count(b"events") == 1
    assert value.index(b"events") < value.index(b"other")


def test_a_tombstone_has_the_key_and_no_value() -> None:
    assert records.tombstone("tx-golden") == LogRecord(KEY, None)
    assert records.read(LogRecord(KEY, None)) == ("tx-golden", None)


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(b"\0\x05" + KEY[2:], b"\0\0"),  # a type of a later Kafka
        LogRecord(KEY, b"\0\x02 something new"),
        LogRecord(KEY, b"\0\x01\0"),
        LogRecord(b"", None),
        LogRecord(KEY[:-1], None),
    ],
)
def test_what_is_not_understood_is_passed_over(record: LogRecord) -> None:
    assert records.read(record) is None
