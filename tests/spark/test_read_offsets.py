"""Which records a batch query reads: subscriptions, offsets, times, tasks, and data that is gone."""

from __future__ import annotations

import json
import logging

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from ottla.client.errors import BadSecurity, Unreachable
from ottla.spark.data_loss import DataLoss
from ottla.spark.properties import BadOption
from tests.spark.conftest import Broker
from tests.spark.direct import batch_reader, ranges, rows, source, table, values


def offsets(topic: str, *numbers: int) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in enumerate(numbers)}})


def test_all_partitions_of_several_topics_are_read(broker: Broker) -> None:
    one, two = broker.filled(2, partitions=2), broker.filled(1)
    found = {(row["topic"], row["partition"], row["offset"]) for row in rows(broker.options(f"{one},{two}"))}
    assert found == {(one, 0, 0), (one, 0, 1), (one, 1, 0), (one, 1, 1), (two, 0, 0)}


def test_topics_are_found_by_pattern(broker: Broker) -> None:
    stem = broker.process.unique("pattern")
    for name, value in (("a", b"1"), ("b", b"2")):
        broker.process.topic(f"{stem}.{name}")
        broker.send(f"{stem}.{name}", [value])
    assert sorted(values(broker.options(subscribePattern=f"{stem}\\.[ab]"))) == [b"1", b"2"]
    assert values(broker.options(subscribePattern=f"{stem}\\.b")) == [b"2"]
    assert values(broker.options(subscribePattern=f"{stem}\\.c")) == []


def test_single_partitions_are_assigned(broker: Broker) -> None:
    topic = broker.filled(2, partitions=3)
    assert values(broker.options(assign=json.dumps({topic: [2]}))) == [b"2-0", b"2-1"]
    with pytest.raises(BadOption, match=f"there is no partition {topic}-7"):
        values(broker.options(assign=json.dumps({topic: [0, 7]})))


def test_a_topic_that_does_not_exist_is_an_error_that_names_it(broker: Broker) -> None:
    with pytest.raises(BadOption, match="there is no topic nothing-here at"):
        values(broker.options("nothing-here", **{"fetchOffset.retryIntervalMs": 1}))


def test_an_empty_topic_has_no_rows(broker: Broker) -> None:
    assert rows(broker.options(broker.topic(partitions=2))) == []


def test_a_batch_reads_between_offsets(broker: Broker) -> None:
    topic = broker.filled(5, partitions=2)
    options = broker.options(
        topic, startingOffsets=offsets(topic, 1, -2), endingOffsets=offsets(topic, 3, -1)
    )
    assert values(options) == [b"0-1", b"0-2", b"1-0", b"1-1", b"1-2", b"1-3", b"1-4"]


def test_offsets_have_to_be_named_for_every_partition(broker: Broker) -> None:
    topic = broker.filled(1, partitions=2)
    with pytest.raises(
        BadOption, match=f"has to name every partition .* Named: {topic}-0; to be read: {topic}-0, "
    ):
        values(broker.options(topic, startingOffsets=offsets(topic, 0)))


def test_a_start_beyond_the_end_is_refused(broker: Broker) -> None:
    topic = broker.topic(retention_ms=-1)
    broker.send(topic, [b"a", b"b"], timestamp=1000)
    with pytest.raises(BadOption, match="from offset 2 up to 0: the start is after the end"):
        values(broker.options(topic, startingOffsets=offsets(topic, 2), endingTimestamp=500))


def test_a_batch_reads_between_times(broker: Broker) -> None:
    topic = broker.topic(partitions=2, retention_ms=-1)
    for number in range(4):
        broker.send(topic, [b"0-%d" % number], timestamp=1000 + 10 * number)
    broker.send(topic, [b"1-0"], partition=1, timestamp=5000)
    options = broker.options(topic, startingTimestamp=1005, endingTimestamp=1030)
    assert values(options) == [b"0-1", b"0-2"]
    times = json.dumps({topic: {"0": 1020, "1": 0}})
    assert values(broker.options(topic, startingOffsetsByTimestamp=times)) == [b"0-2", b"0-3", b"1-0"]
    assert values(broker.options(topic, endingOffsetsByTimestamp=times)) == [b"0-0", b"0-1"]


def test_a_time_after_all_records_is_an_error_or_the_end(broker: Broker) -> None:
    topic = broker.topic(retention_ms=-1)
    broker.send(topic, [b"a"], timestamp=1000)
    with pytest.raises(BadOption, match=f"{topic}-0 has no record at or after the time 2000; .*to latest"):
        values(broker.options(topic, startingTimestamp=2000))
    options = broker.options(topic, startingTimestamp=2000, startingOffsetsByTimestampStrategy="latest")
    assert values(options) == []
    assert values(broker.options(topic, endingTimestamp=2000)) == [b"a"]


def test_large_partitions_are_divided_among_tasks(broker: Broker) -> None:
    topic = broker.filled(10, partitions=2)
    assert len(ranges(broker.options(topic))) == 2
    for options in ({"minPartitions": 5}, {"maxRecordsPerPartition": 3}):
        wanted = broker.options(topic, **options)
        assert len(ranges(wanted)) >= 5
        assert sorted(values(wanted)) == sorted(b"%d-%d" % (p, n) for p in range(2) for n in range(10))
    assert {each.start for each in ranges(broker.options(topic, minPartitions=5))} >= {-2}, (
        "found by the task"
    )


def test_what_came_after_planning_is_read_too_as_earliest_and_latest_are_found_by_tasks(
    broker: Broker,
) -> None:
    topic = broker.filled(1)
    reader = batch_reader(broker.options(topic))
    planned = reader.partitions()
    broker.send(topic, [b"later"])
    assert [row["value"] for each in planned for row in table(reader, each)] == [b"0-0", b"later"]


def delete_records(broker: Broker, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([Position(topic, 0, before)]).values():
        future.result()


def test_records_that_are_gone_fail_a_batch_that_asked_for_them(broker: Broker) -> None:
    topic = broker.filled(6)
    delete_records(broker, topic, 4)
    assert values(broker.options(topic)) == [b"0-4", b"0-5"], "earliest is what there is"
    with pytest.raises(
        DataLoss, match=f"cannot read partition {topic}-0 from offset 1 up to 6.*failOnDataLoss"
    ):
        values(broker.options(topic, startingOffsets=offsets(topic, 1)))


def test_records_that_are_gone_are_passed_over_if_that_is_wanted(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = broker.filled(6)
    delete_records(broker, topic, 4)
    options = broker.options(topic, startingOffsets=offsets(topic, 1), failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "ottla.spark"):
        assert values(options) == [b"0-4", b"0-5"]
    assert "cannot read partition" in caplog.text
    assert values({**options, "endingOffsets": offsets(topic, 3)}) == []


def test_a_start_beyond_all_records_is_a_loss(broker: Broker) -> None:
    topic = broker.filled(2)
    options = broker.options(topic, startingOffsets=offsets(topic, 7), endingOffsets=offsets(topic, 9))
    with pytest.raises(DataLoss, match="from offset 7 up to 9"):
        values(options)
    assert values({**options, "failOnDataLoss": "false"}) == []


def test_only_committed_records_are_read_if_that_is_wanted(broker: Broker) -> None:
    topic = broker.topic()
    for number, commits in enumerate((True, False, True)):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-{number}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for index in range(3):
            producer.produce(topic, b"%d-%d" % (number, index))
        producer.flush()
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    committed = [b"0-0", b"0-1", b"0-2", b"2-0", b"2-1", b"2-2"]
    assert values(broker.options(topic, **{"kafka.isolation.level": "read_committed"})) == committed
    assert len(values(broker.options(topic))) == 9
    small = {"kafka.isolation.level": "read_committed", "maxRecordsPerPartition": 2}
    assert values(broker.options(topic, **small)) == committed, (
        "also where a task begins inside a transaction"
    )


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_read(broker: Broker, codec: str) -> None:
    topic = broker.topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 50})
    wanted = [b"%d" % number * 20 for number in range(200)]
    for value in wanted:
        producer.produce(topic, value)
    producer.flush()
    assert values(broker.options(topic)) == wanted


def test_small_fetches_read_the_same_as_one(broker: Broker) -> None:
    topic = broker.filled(300)
    assert values(broker.options(topic, **{"kafka.max.partition.fetch.bytes": 200})) == values(
        broker.options(topic)
    )


def test_a_broker_that_is_not_there_is_said_at_once(broker: Broker) -> None:
    with pytest.raises(Unreachable):
        values({**broker.options("any"), "kafka.bootstrap.servers": "127.0.0.1:1"})


def test_a_lost_connection_is_not_noticed(broker: Broker) -> None:
    topic = broker.filled(20)
    with broker.process.disconnect("Fetch", topic=topic, times=2) as fault:
        assert len(values(broker.options(topic, **{"kafka.max.partition.fetch.bytes": 100}))) == 20
        assert fault.hits == 2


def test_a_truststore_that_python_cannot_read_is_refused_when_the_frame_is_made(broker: Broker) -> None:
    security = {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "trust.jks"}
    with pytest.raises(BadSecurity, match="PEM"):
        source(broker.options("orders", **{**security, "kafka.ssl.truststore.type": "JKS"})).schema()
