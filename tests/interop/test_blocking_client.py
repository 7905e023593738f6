"""The blocking client against a broker: topics, offsets, batches out and in, transactions."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.arrow.decode import Decoder
from ottla.client.blocking.cluster import BlockingCluster, cached_cluster
from ottla.client.blocking.fetch import fetch
from ottla.client.blocking.transaction import (
    IdempotentProducer,
    TransactionalProducer,
    TransactionHandle,
    end_transaction,
)
from ottla.client.errors import BadAddress, NoAnswer, Unreachable
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, iter_batches, read_records, write_batch
from ottla.protocol.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    MessageTooLarge,
    OffsetOutOfRange,
    ProducerFenced,
    UnknownTopicOrPartition,
)
from tests.interop.topics import Names, NewTopic, eventually

READ_COMMITTED = 1


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[BlockingCluster]:
    with BlockingCluster(bootstrap, timeout=60) as cluster:
        yield cluster


def batch(*values: bytes, timestamp_ms: int | None = None, codec: int = 0) -> bytearray:
    now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
    return write_batch([Record(0, now_ms, None, value) for value in values], codec=codec)


def write(cluster: BlockingCluster, partition: TopicPartition, *batches: bytearray) -> None:
    producer = IdempotentProducer.start(cluster)
    for each in batches:
        producer.produce({partition: each})
    producer.flush()
    producer.close()


def values(
    cluster: BlockingCluster, partition: TopicPartition, start: int = 0, **options: int
) -> list[bytes]:
    """The values up to the end, without those that readers do not see."""
    isolation_level = options.get("isolation_level", 0)
    decoder = Decoder(*partition, columns=["value"], read_committed=bool(isolation_level))
    end = cluster.list_offsets({partition: -1}, isolation_level=isolation_level)[partition].offset
    found: list[bytes] = []
    for fetched in fetch(cluster, partition, start, end, **options):
        decoded = decoder.decode(fetched.records, start=start, end=end, aborted=fetched.aborted)
        found += decoded.column("value").to_pylist()
    return found


# --- topics ----------------------------------------------------------------------------------


def test_topics_are_listed_by_name_by_pattern_and_all(cluster: BlockingCluster, unique: Names) -> None:
    one, two = unique("one"), unique("two")
    cluster.create_topic(one, partitions=3, configs={"retention.ms": "-1"})
    cluster.create_topic(two, partitions=1)
    assert cluster.topics([one, two]) == {one: [0, 1, 2], two: [0]}
    assert cluster.topics(pattern=f"o.e{one[3:]}") == {one: [0, 1, 2]}
    assert cluster.topics(pattern=one[:-1]) == {}
    assert cluster.topics().items() >= {one: [0, 1, 2], two: [0]}.items()
    with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
        cluster.topics([one, "nowhere"])


def test_partitions_added_meanwhile_are_seen(cluster: BlockingCluster, unique: Names) -> None:
    from ottla.protocol.messages.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreatePartitionsTopic,
    )

    name = unique("growing")
    cluster.create_topic(name, partitions=1)
    assert cluster.topics([name]) == {name: [0]}
    topic = CreatePartitionsTopic(name=name, count=2, assignments=None)
    cluster.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=30_000), CreatePartitionsResponse)
    while cluster.topics([name]) != {name: [0, 1]}:
        pass  # brokers learn of it one after the other


def test_a_mistyped_address_is_said_at_once() -> None:
    with BlockingCluster("127.0.0.1:1") as cluster, pytest.raises(Unreachable, match="connection refused"):
        cluster.topics()
    with pytest.raises(BadAddress):
        BlockingCluster("nonsense:port")


# --- offsets ---------------------------------------------------------------------------------


def test_offsets_are_found_by_end_and_by_time(cluster: BlockingCluster, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    now_ms = time.time_ns() // 1_000_000
    write(cluster, one, batch(b"a", b"b", timestamp_ms=now_ms), batch(b"c", timestamp_ms=now_ms + 1000))
    assert {p: o.offset for p, o in cluster.list_offsets({one: -2, two: -2}).items()} == {one: 0, two: 0}
    assert {p: o.offset for p, o in cluster.list_offsets({one: -1, two: -1}).items()} == {one: 3, two: 0}
    by_time = cluster.list_offsets({one: now_ms + 1, two: now_ms})
    assert (by_time[one].offset, by_time[one].timestamp) == (2, now_ms + 1000)
    assert by_time[two].offset == -1
    assert cluster.list_offsets({one: now_ms + 1001})[one].offset == -1
    assert cluster.list_offsets({}) == {}


def test_a_group_without_members_keeps_offsets(
    cluster: BlockingCluster, new_topic: NewTopic, unique: Names
) -> None:
    topic, group = new_topic(partitions=3), unique("group")
    one, two, three = (TopicPartition(topic, number) for number in range(3))
    assert cluster.committed(group) == {}
    assert cluster.committed(group, [one]) == {}
    cluster.commit_offsets(group, {one: 5, two: (7, "seven")})
    assert cluster.committed(group) == {one: (5, ""), two: (7, "seven")}
    assert cluster.committed(group, [two, three]) == {two: (7, "seven")}


# --- records ---------------------------------------------------------------------------------


def test_batches_come_back_as_they_were_sent(cluster: BlockingCluster, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    write(cluster, partition, *(batch(b"%d" % number, codec=number % 5) for number in range(20)))
    expected = [b"%d" % number for number in range(20)]
    assert values(cluster, partition) == expected
    assert values(cluster, partition, max_bytes=1) == expected
    assert values(cluster, partition, 7) == expected[7:]


def test_a_range_begins_and_ends_inside_batches(cluster: BlockingCluster, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    write(cluster, partition, batch(b"a", b"b", b"c"), batch(b"d", b"e"), batch(b"f"))
    fetched = list(fetch(cluster, partition, 1, 4))
    assert len(fetched) == 1  # what is behind the end is left away
    offsets = [r.offset for _, each in iter_batches(fetched[0].records) for r in read_records(each)]
    assert offsets == [0, 1, 2, 3, 4]
    assert (fetched[0].log_start_offset, fetched[0].high_watermark, fetched[0].next_offset) == (0, 6, 5)
    assert list(fetch(cluster, partition, 4, 4)) == []


def test_records_that_come_while_they_are_waited_for_are_read(cluster: BlockingCluster, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    write(cluster, partition, batch(b"a"))
    reading = fetch(cluster, partition, 0, 3)
    assert len(read_records(next(reading).records)) == 1
    write(cluster, partition, batch(b"b"), batch(b"c"))
    assert sum(len(each.records) > 0 for each in reading) in (1, 2)


def test_records_that_do_not_come_are_given_up(cluster: BlockingCluster, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    write(cluster, partition, batch(b"a"))
    with pytest.raises(NoAnswer, match=r"from 1 up to 2 did not come within 0.1 s \(high watermark 1\)"):
        list(fetch(cluster, partition, 0, 2, timeout=0.1))


def test_records_that_are_gone_are_out_of_range(cluster: BlockingCluster, topic: str) -> None:
    from ottla.protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        DeleteRecordsTopic,
    )

    partition = TopicPartition(topic, 0)
    write(cluster, partition, batch(b"a"), batch(b"b"), batch(b"c"))
    wanted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
    request = DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000)
    cluster.leader(partition).ask(request, DeleteRecordsResponse)
    with pytest.raises(OffsetOutOfRange, match=f"{topic}-0"):
        list(fetch(cluster, partition, 0, 3))
    (fetched,) = fetch(cluster, partition, 2, 3)
    assert fetched.log_start_offset == 2


def test_several_ranges_are_read_in_turns_and_may_be_left_unfinished(
    cluster: BlockingCluster, new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=2)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    for each in partitions:
        write(cluster, each, *(batch(b"x" * 1000) for _ in range(10)))
    readers = [fetch(cluster, each, 0, 10, max_bytes=1000) for each in partitions]
    assert [next(reader).next_offset for reader in readers * 3] == [1, 1, 2, 2, 3, 3]
    readers[0].close()  # its next request is under way
    assert cluster.list_offsets({partitions[0]: -1})[partitions[0]].offset == 10
    assert len(list(readers[1])) == 7
    assert len(values(cluster, partitions[0])) == 10


def test_a_topic_that_is_gone_is_said_and_not_waited_for(cluster: BlockingCluster, unique: Names) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        list(fetch(cluster, TopicPartition(unique("nowhere"), 0), 0, 1, timeout=0.1))


def test_the_brokers_refusal_reaches_the_writer(cluster: BlockingCluster, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=1000)
    producer = IdempotentProducer.start(cluster)
    with pytest.raises(MessageTooLarge, match=f"{topic}-0"):
        producer.produce({TopicPartition(topic, 0): batch(b"x" * 2000)})
        producer.flush()
    with pytest.raises(MessageTooLarge):
        producer.produce({TopicPartition(topic, 0): batch(b"x")})


def test_many_batches_to_many_partitions_are_all_there_in_order(
    cluster: BlockingCluster, new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=4)
    partitions = [TopicPartition(topic, number) for number in range(4)]
    producer = IdempotentProducer.start(cluster)
    for number in range(50):
        producer.produce({each: batch(b"%d" % number) for each in partitions[: 1 + number % 4]})
    producer.flush()
    for each in partitions:
        expected = [b"%d" % number for number in range(50) if number % 4 >= each.partition]
        assert values(cluster, each) == expected
        assert producer.end_offsets[each] == len(expected)


# --- transactions ----------------------------------------------------------------------------


@pytest.fixture(params=[2, 1], ids=["transaction.version 2", "transaction.version 1"])
def transactions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions as brokers of both kinds want them; those of Kafka 4 still take the older kind."""
    if request.param == 1:
        monkeypatch.setattr("ottla.client.blocking.transaction._is_implicit", lambda connection: False)


@pytest.mark.usefixtures("transactions")
def test_a_transaction_is_ended_by_another_process(
    cluster: BlockingCluster, bootstrap: str, topic: str, unique: Names
) -> None:
    partition, name = TopicPartition(topic, 0), unique("transaction")
    producer = TransactionalProducer.begin(cluster, name, 60_000)
    assert not producer.is_open
    producer.produce({partition: batch(b"a", b"b")})
    producer.flush()
    assert producer.is_open
    assert values(cluster, partition, isolation_level=READ_COMMITTED) == []
    handle = pickle.loads(pickle.dumps(producer.handle))
    spawned = multiprocessing.get_context("spawn").Process(target=commit, args=(bootstrap, handle))
    spawned.start()
    spawned.join()
    assert spawned.exitcode == 0
    committed_are([b"a", b"b"], cluster, partition)


def committed_are(expected: list[bytes], cluster: BlockingCluster, partition: TopicPartition) -> None:
    """Kafka answers EndTxn before it has told all partitions."""
    eventually(lambda: values(cluster, partition, isolation_level=READ_COMMITTED, max_bytes=1) == expected)


def commit(bootstrap: str, handle: TransactionHandle) -> None:
    with BlockingCluster(bootstrap) as cluster:
        end_transaction(cluster, handle, True)


@pytest.mark.usefixtures("transactions")
def test_a_transaction_that_was_ended_may_be_ended_again_in_the_same_way_only(
    cluster: BlockingCluster, topic: str, unique: Names
) -> None:
    for is_commit in (True, False):
        producer = TransactionalProducer.begin(cluster, unique("transaction"), 60_000)
        producer.produce({TopicPartition(topic, 0): batch(b"a")})
        producer.flush()
        for _ in range(3):
            end_transaction(cluster, producer.handle, is_commit)
        with pytest.raises(InvalidTxnState):
            end_transaction(cluster, producer.handle, not is_commit)


@pytest.mark.usefixtures("transactions")
def test_offsets_count_when_their_transaction_is_committed(
    cluster: BlockingCluster, topic: str, unique: Names
) -> None:
    partition, group, name = TopicPartition(topic, 0), unique("group"), unique("transaction")
    for is_commit, expected in ((False, {}), (True, {partition: (3, "tasks=2")})):
        producer = TransactionalProducer.begin(cluster, name, 60_000)
        producer.produce({partition: batch(b"a")})
        producer.commit_offsets(group, {partition: (3, "tasks=2")})
        producer.flush()
        end_transaction(cluster, producer.handle, is_commit)
        assert cluster.committed(group, [partition]) == expected


@pytest.mark.usefixtures("transactions")
def test_a_later_producer_of_the_same_id_fences_the_earlier_one(
    cluster: BlockingCluster, topic: str, unique: Names
) -> None:
    partition, name = TopicPartition(topic, 0), unique("transaction")
    zombie = TransactionalProducer.begin(cluster, name, 60_000)
    zombie.produce({partition: batch(b"zombie")})
    zombie.flush()
    producer = TransactionalProducer.begin(cluster, name, 60_000)  # waits until the other's is aborted
    assert producer.handle.producer_epoch > zombie.handle.producer_epoch
    producer.produce({partition: batch(b"living")})
    producer.flush()
    with pytest.raises((InvalidProducerEpoch, ProducerFenced)):
        zombie.produce({partition: batch(b"again")})
        zombie.flush()
    with pytest.raises(KafkaError) as refused:
        end_transaction(cluster, zombie.handle, True)
    assert isinstance(refused.value, InvalidProducerEpoch | ProducerFenced)
    end_transaction(cluster, producer.handle, True)
    committed_are([b"living"], cluster, partition)


@pytest.mark.usefixtures("transactions")
def test_a_transaction_writes_to_many_partitions_in_many_batches(
    cluster: BlockingCluster, new_topic: NewTopic, unique: Names
) -> None:
    topic = new_topic(partitions=3)
    partitions = [TopicPartition(topic, number) for number in range(3)]
    producer = TransactionalProducer.begin(cluster, unique("transaction"), 60_000)
    for number in range(30):
        producer.produce({partitions[number % 3]: batch(b"%d" % number)})
    producer.flush()
    end_transaction(cluster, producer.handle, True)
    for each in partitions:
        expected = [b"%d" % number for number in range(30) if number % 3 == each.partition]
        committed_are(expected, cluster, each)


@pytest.mark.usefixtures("transactions")
def test_transactions_follow_each_other_under_one_id(
    cluster: BlockingCluster, topic: str, unique: Names
) -> None:
    partition, name = TopicPartition(topic, 0), unique("transaction")
    for number in range(5):
        producer = TransactionalProducer.begin(cluster, name, 60_000)
        producer.produce({partition: batch(b"%d" % number)})
        producer.flush()
        producer.close()
        end_transaction(cluster, producer.handle, number % 2 == 0)
    committed_are([b"0", b"2", b"4"], cluster, partition)


# --- processes and threads -------------------------------------------------------------------


def test_every_process_and_thread_has_a_cluster_of_its_own(bootstrap: str, topic: str) -> None:
    mine = cached_cluster(bootstrap)
    assert cached_cluster(bootstrap) is mine
    assert cached_cluster(bootstrap, client_id="another") is not mine
    found: list[BlockingCluster] = []
    thread = threading.Thread(target=lambda: found.append(cached_cluster(bootstrap)))
    thread.start()
    thread.join()
    assert found[0] is not mine
    mine.topics([topic])
    connection = mine.any()
    child = os.fork()
    if not child:
        # Only what a child does that was forked in the middle of it: no assertion, no cleanup of the test's.
        try:
            its_own = cached_cluster(bootstrap)
            fine = its_own is not mine and its_own.topics([topic]) == {topic: [0]}
        except BaseException:
            fine = False
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert mine.any() is connection
    assert mine.topics([topic]) == {topic: [0]}
    mine.close()
