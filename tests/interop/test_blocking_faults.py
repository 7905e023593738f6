"""The blocking client when things go wrong: errors that pass, lost answers, brokers that go away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.fetch import fetch
from ottla.client.blocking.transaction import IdempotentProducer, TransactionalProducer, end_transaction
from ottla.client.errors import Disconnected, NoAnswer, Unreachable
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, iter_batches, read_records, write_batch
from ottla.protocol.errors import (
    InvalidRecord,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from ottla.testing.broker import TestBroker

RETRIABLE = ["NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR"]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        yield broker


@pytest.fixture
def ottla(broker: TestBroker) -> Iterator[TestBroker]:
    yield broker
    broker.heal()


@pytest.fixture
def cluster(ottla: TestBroker) -> Iterator[BlockingCluster]:
    with BlockingCluster(ottla.bootstrap) as cluster:
        yield cluster


def batch(*values: bytes) -> bytearray:
    return write_batch([Record(0, time.time_ns() // 1_000_000, None, value) for value in values])


def write(cluster: BlockingCluster, partition: TopicPartition, count: int) -> None:
    producer = IdempotentProducer.start(cluster)
    for number in range(count):
        producer.produce({partition: batch(b"%d" % number)})
    producer.flush()
    producer.close()


def values(cluster: BlockingCluster, partition: TopicPartition, count: int) -> list[bytes | None]:
    found = []
    for fetched in fetch(cluster, partition, 0, count, max_bytes=1):
        for header, each in iter_batches(fetched.records):
            if not header.is_control:
                found += [record.value for record in read_records(each)]
    return found


def numbers(count: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(count)]


# --- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", RETRIABLE)
def test_an_error_of_a_fetch_that_passes_is_waited_out(
    ottla: TestBroker, cluster: BlockingCluster, error: str
) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    write(cluster, partition, 5)
    fault = ottla.fail("Fetch", error=error, topic=partition.topic, skip=2, times=2)
    assert values(cluster, partition, 5) == numbers(5)
    assert fault.hits == 2


def test_an_error_that_does_not_pass_is_raised(ottla: TestBroker, cluster: BlockingCluster) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    write(cluster, partition, 2)
    ottla.fail("Fetch", error="TOPIC_AUTHORIZATION_FAILED", topic=partition.topic, skip=1)
    with pytest.raises(TopicAuthorizationFailed, match=str(partition)):
        values(cluster, partition, 2)


def test_an_error_that_does_not_pass_in_time_is_raised(ottla: TestBroker, cluster: BlockingCluster) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    write(cluster, partition, 1)
    with ottla.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", topic=partition.topic, times=None) as fault:
        with pytest.raises(NotLeaderOrFollower):
            list(fetch(cluster, partition, 0, 1, timeout=0.3))
        assert fault.hits > 1


def test_a_topic_deleted_while_it_is_read_is_said_before_the_time_is_over(
    ottla: TestBroker, cluster: BlockingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.client.blocking.fetch.CREATION_SECONDS", 0.2)
    partition = TopicPartition(ottla.topic(), 0)
    write(cluster, partition, 1)
    ottla.fail("Fetch", error="UNKNOWN_TOPIC_ID", topic=partition.topic, times=None)
    ottla.fail("Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", topic=partition.topic, times=None)
    with pytest.raises(UnknownTopicOrPartition):
        list(fetch(cluster, partition, 0, 1))


def test_a_connection_that_breaks_between_and_within_fetches_is_made_again(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    write(cluster, partition, 6)
    fault = ottla.disconnect("Fetch", topic=partition.topic, skip=1, times=3)
    assert values(cluster, partition, 6) == numbers(6)
    assert fault.hits == 3


def test_a_broker_that_restarts_while_it_is_read_is_waited_for() -> None:
    with TestBroker() as ottla, BlockingCluster(ottla.bootstrap) as cluster:
        partition = TopicPartition(ottla.topic(), 0)
        write(cluster, partition, 10)
        reading = fetch(cluster, partition, 0, 10, max_bytes=1)
        first = [next(reading).next_offset for _ in range(3)]
        ottla.restart()
        assert first + [each.next_offset for each in reading] == list(range(1, 11))
        assert cluster.list_offsets({partition: -1})[partition].offset == 10


def test_a_fetch_that_is_not_answered_is_given_up_with_its_connection(ottla: TestBroker) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    with BlockingCluster(ottla.bootstrap, timeout=0.5) as cluster:
        write(cluster, partition, 1)
        ottla.delay("Fetch", 60, topic=partition.topic, times=1)
        with pytest.raises(NoAnswer, match=r"did not answer Fetch within 0.5 s"):
            list(fetch(cluster, partition, 0, 1, timeout=0.5))
        assert values(cluster, partition, 1) == numbers(1)


def test_offsets_are_asked_again_of_partitions_that_had_no_leader(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    topic = ottla.topic(partitions=3)
    for error in ("NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE"):
        fault = ottla.fail("ListOffsets", error=error, topic=topic, times=2)
        found = cluster.list_offsets({TopicPartition(topic, number): -1 for number in range(3)})
        assert [each.offset for each in found.values()] == [0, 0, 0]
        assert fault.hits == 2


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", RETRIABLE)
def test_batches_behind_one_that_is_refused_keep_their_order(
    ottla: TestBroker, cluster: BlockingCluster, error: str
) -> None:
    topic = ottla.topic(partitions=2)
    fault = ottla.fail("Produce", error=error, topic=topic, skip=2, times=3)
    producer = IdempotentProducer.start(cluster)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    for number in range(12):
        producer.produce({each: batch(b"%d" % number) for each in partitions})
    producer.flush()
    assert fault.hits == 3
    for each in partitions:
        assert values(cluster, each, 12) == numbers(12)
        assert cluster.list_offsets({each: -1})[each].offset == 12


@pytest.mark.parametrize("handled", [False, True])
def test_what_was_under_way_on_a_broken_connection_is_stored_once(
    ottla: TestBroker, cluster: BlockingCluster, handled: bool
) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    fault = ottla.disconnect("Produce", topic=partition.topic, skip=3, times=2, handled=handled)
    write(cluster, partition, 12)
    assert fault.hits == 2
    assert values(cluster, partition, 12) == numbers(12)
    assert cluster.list_offsets({partition: -1})[partition].offset == 12


def test_a_batch_that_is_refused_for_good_fails_the_producer_with_the_brokers_message(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    ottla.fail("Produce", error="INVALID_RECORD", topic=partition.topic, skip=1)
    producer = IdempotentProducer.start(cluster)
    with pytest.raises(InvalidRecord, match=str(partition)):
        for _ in range(3):
            producer.produce({partition: batch(b"x")})
        producer.flush()
    for use in (producer.flush, lambda: producer.produce({partition: batch(b"x")})):
        with pytest.raises(InvalidRecord):
            use()
    write(cluster, partition, 2)  # its connections went back in order


def test_a_sequence_out_of_order_with_nothing_before_it_is_an_error(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    ottla.fail("Produce", error="OUT_OF_ORDER_SEQUENCE_NUMBER", topic=partition.topic)
    with pytest.raises(OutOfOrderSequenceNumber):
        write(cluster, partition, 1)


def test_errors_that_do_not_pass_in_time_are_raised(ottla: TestBroker) -> None:
    partition = TopicPartition(ottla.topic(), 0)
    with BlockingCluster(ottla.bootstrap, timeout=0.5) as cluster:
        ottla.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=partition.topic, times=None)
        with pytest.raises(NotLeaderOrFollower):
            write(cluster, partition, 3)


def test_a_broker_that_restarts_while_it_is_written_to_has_everything_once() -> None:
    with TestBroker() as ottla, BlockingCluster(ottla.bootstrap) as cluster:
        partition = TopicPartition(ottla.topic(), 0)
        producer = IdempotentProducer.start(cluster)
        for number in range(10):
            if number in (3, 7):
                ottla.restart()
            producer.produce({partition: batch(b"%d" % number)})
        producer.flush()
        assert values(cluster, partition, 10) == numbers(10)
        assert cluster.list_offsets({partition: -1})[partition].offset == 10


def test_a_broker_that_stays_away_is_unreachable_in_the_end() -> None:
    with TestBroker() as ottla, BlockingCluster(ottla.bootstrap, timeout=0.5) as cluster:
        partition = TopicPartition(ottla.topic(), 0)
        producer = IdempotentProducer.start(cluster)
        producer.produce({partition: batch(b"x")})
        ottla.kill()
        with pytest.raises((Unreachable, Disconnected)):
            for _ in range(10):
                producer.produce({partition: batch(b"x")})
            producer.flush()
        with pytest.raises(Unreachable):
            list(fetch(cluster, partition, 0, 1, timeout=0.1))


def test_a_patient_cluster_waits_for_a_broker_that_is_not_there_yet() -> None:
    with TestBroker() as ottla:
        topic = ottla.topic()
        ottla.stop()
        with BlockingCluster(ottla.bootstrap) as hasty, pytest.raises(Unreachable):
            hasty.topics()
        with BlockingCluster(ottla.bootstrap, patient=True, timeout=0.1) as patient:
            with pytest.raises(Unreachable):
                patient.topics()
            ottla.start()
            patient.timeout = 30
            assert patient.topics([topic]) == {topic: [0]}


# --- coordinators ----------------------------------------------------------------------------


def test_a_coordinator_that_moves_or_loads_is_found_again(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    partition, group = TopicPartition(ottla.topic(), 0), ottla.unique("group")
    faults = [
        ottla.fail(name, error=error, times=2)
        for name, error in [
            ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
            ("OffsetCommit", "NOT_COORDINATOR"),
            ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
        ]
    ]
    cluster.commit_offsets(group, {partition: 4})
    assert cluster.committed(group) == {partition: (4, "")}
    assert [fault.hits for fault in faults] == [2, 2, 2]


def test_every_step_of_a_transaction_survives_a_lost_answer(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    partition, group = TopicPartition(ottla.topic(), 0), ottla.unique("group")
    steps = ["InitProducerId", "Produce", "TxnOffsetCommit", "EndTxn"]
    faults = [ottla.disconnect(name, handled=True) for name in steps]
    producer = TransactionalProducer.begin(cluster, ottla.unique("transaction"), 60_000)
    producer.produce({partition: batch(b"0")})
    producer.produce({partition: batch(b"1")})
    producer.commit_offsets(group, {partition: 2})
    producer.flush()
    end_transaction(cluster, producer.handle, True)
    assert [fault.hits for fault in faults] == [1, 1, 1, 1]
    assert cluster.committed(group) == {partition: (2, "")}
    assert cluster.list_offsets({partition: -1}, isolation_level=1)[partition].offset == 3
    assert values(cluster, partition, 3) == numbers(2)


def test_every_step_of_a_transaction_waits_out_errors_that_pass(
    ottla: TestBroker, cluster: BlockingCluster
) -> None:
    partition, group = TopicPartition(ottla.topic(), 0), ottla.unique("group")
    faults = [
        ottla.fail(name, error=error, times=2)
        for name, error in [
            ("InitProducerId", "CONCURRENT_TRANSACTIONS"),
            ("Produce", "CONCURRENT_TRANSACTIONS"),
            ("TxnOffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"),
            ("EndTxn", "NOT_COORDINATOR"),
        ]
    ]
    producer = TransactionalProducer.begin(cluster, ottla.unique("transaction"), 60_000)
    producer.produce({partition: batch(b"0")})
    producer.commit_offsets(group, {partition: 1})
    producer.flush()
    end_transaction(cluster, producer.handle, True)
    assert [fault.hits for fault in faults] == [2, 2, 2, 2]
    assert values(cluster, partition, 2) == numbers(1)
