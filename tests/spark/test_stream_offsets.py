"""How far each micro-batch goes: starts, limits, partitions that come and go, committed progress."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from ottla.client.blocking.cluster import BlockingCluster
from ottla.spark.data_loss import DataLoss
from ottla.spark.stream_reader import OttlaStreamReader
from tests.spark.conftest import Broker
from tests.spark.direct import between, stream_reader

QUICKLY = {"fetchOffset.retryIntervalMs": 1}
ALL = ReadAllAvailable()


@contextmanager
def stream(broker: Broker, topic: str | None, **options: object) -> Iterator[OttlaStreamReader]:
    reader = stream_reader(broker.options(topic, **{**QUICKLY, **options}))
    try:
        yield reader
    finally:
        reader.stop()


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


# --- starts --------------------------------------------------------------------------------


def test_a_stream_starts_where_it_is_told(broker: Broker) -> None:
    topic = broker.topic(partitions=2, retention_ms=-1)
    broker.send(topic, [b"a", b"b", b"c"], timestamp=1000)
    for options, start in (
        ({}, [3, 0]),
        ({"startingOffsets": "latest"}, [3, 0]),
        ({"startingOffsets": "earliest"}, [0, 0]),
        ({"startingOffsets": json.dumps({topic: {"0": 2, "1": -1}})}, [2, 0]),
        ({"startingOffsets": json.dumps({topic: {"0": -2, "1": 0}})}, [0, 0]),
        ({"startingTimestamp": 900, "startingOffsetsByTimestampStrategy": "latest"}, [0, 0]),
        ({"startingTimestamp": 1100, "startingOffsetsByTimestampStrategy": "latest"}, [3, 0]),
    ):
        with stream(broker, topic, **options) as reader:
            assert reader.initialOffset() == {topic: {"0": start[0], "1": start[1]}}, options


def test_the_start_does_not_move_while_a_query_runs(broker: Broker) -> None:
    topic = broker.filled(2)
    with stream(broker, topic) as reader:
        first = reader.initialOffset()
        broker.send(topic, [b"later"])
        assert reader.initialOffset() == first == {topic: {"0": 2}}


def test_a_start_at_the_latest_offset_is_kept_by_an_empty_first_batch(broker: Broker) -> None:
    topic = broker.filled(2)
    with stream(broker, topic) as reader:
        start = reader.initialOffset()
        broker.send(topic, [b"early"])
        first = reader.latestOffset(start, ALL)
        assert first == start, "in the checkpoint now"
        assert between(reader, start, first) == []
    broker.send(topic, [b"meanwhile"])
    with stream(broker, topic) as restarted:
        again = restarted.initialOffset()
        assert again == {topic: {"0": 4}}
        assert between(restarted, again, first) == [], "the first batch again, which was not done"
        assert between(restarted, first, restarted.latestOffset(first, ALL)) == [b"early", b"meanwhile"]


# --- limits --------------------------------------------------------------------------------


def test_a_batch_goes_to_the_end_unless_it_is_limited(broker: Broker) -> None:
    topic = broker.filled(10, partitions=2)
    with stream(broker, topic, startingOffsets="earliest") as reader:
        assert reader.getDefaultReadLimit() == ALL
        assert reader.latestOffset(reader.initialOffset(), ALL) == {topic: {"0": 10, "1": 10}}


def test_a_limit_is_shared_among_partitions(broker: Broker) -> None:
    topic = broker.filled(10, partitions=2)
    with stream(broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=6) as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMaxRows(6)
        first = reader.latestOffset(reader.initialOffset(), limit)
        assert first == {topic: {"0": 3, "1": 3}}
        assert reader.latestOffset(first, limit) == {topic: {"0": 6, "1": 6}}
        assert reader.reportLatestOffset() == {topic: {"0": 10, "1": 10}}, "from which lag is seen"
        assert reader.latestOffset(first, ALL) == {topic: {"0": 10, "1": 10}}, "Trigger.Once knows no limit"


def test_a_batch_waits_until_there_is_enough_or_the_delay_is_over(broker: Broker) -> None:
    topic = broker.filled(2)
    options = {"startingOffsets": "earliest", "minOffsetsPerTrigger": 5, "maxTriggerDelay": "1h"}
    with stream(broker, topic, **options) as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMinRows(5)
        first = reader.latestOffset(reader.initialOffset(), limit)
        assert first == {topic: {"0": 2}}, "the first batch does not wait"
        broker.send(topic, [b"x"] * 4)
        assert reader.latestOffset(first, limit) == first
        broker.send(topic, [b"x"])
        assert reader.latestOffset(first, limit) == {topic: {"0": 7}}
    with stream(broker, topic, **{**options, "maxTriggerDelay": "0s"}) as reader:
        first = reader.latestOffset(reader.initialOffset(), limit)
        broker.send(topic, [b"x"])
        assert reader.latestOffset(first, limit) == {topic: {"0": 8}}


def test_the_least_and_the_most_of_a_batch_work_together(broker: Broker) -> None:
    topic = broker.filled(10)
    options = {"startingOffsets": "earliest", "minOffsetsPerTrigger": 3, "maxOffsetsPerTrigger": 4}
    with stream(broker, topic, **options) as reader:
        limit, at = reader.getDefaultReadLimit(), reader.initialOffset()
        seen = []
        for _ in range(4):
            at = reader.latestOffset(at, limit)
            seen.append(at[topic]["0"])
        assert seen == [4, 8, 8, 8]
    with stream(broker, topic, **options) as reader:
        reader.prepareForTriggerAvailableNow()
        assert reader.latestOffset({topic: {"0": 8}}, limit) == {topic: {"0": 10}}, "there will be no more"


def test_all_that_is_available_now_does_not_grow(broker: Broker) -> None:
    topic = broker.filled(10)
    with stream(broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=6) as reader:
        reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        first = reader.latestOffset(reader.initialOffset(), limit)
        broker.send(topic, [b"later"] * 5)
        second = reader.latestOffset(first, limit)
        assert (first, second) == ({topic: {"0": 6}}, {topic: {"0": 10}})
        assert reader.latestOffset(second, limit) == second


def test_tasks_are_as_many_as_wanted(broker: Broker) -> None:
    topic = broker.filled(10)
    for options in ({"minPartitions": 4}, {"maxRecordsPerPartition": 3}):
        with stream(broker, topic, startingOffsets="earliest", **options) as reader:
            assert len(reader.partitions({topic: {"0": 0}}, {topic: {"0": 10}})) == 4
            assert len(between(reader, {topic: {"0": 0}}, {topic: {"0": 10}})) == 10


def test_few_records_of_many_partitions_are_read_by_one_task(broker: Broker) -> None:
    topic = broker.filled(3, partitions=4)
    start, end = ({topic: {str(number): offset for number in range(4)}} for offset in (0, 3))
    for options, tasks in (({}, 1), ({"minPartitions": 2}, 4), ({"maxRecordsPerPartition": 100}, 4)):
        with stream(broker, topic, startingOffsets="earliest", **options) as reader:
            assert len(reader.partitions(start, end)) == tasks
            assert sorted(between(reader, start, end)) == sorted(
                b"%d-%d" % (partition, number) for partition in range(4) for number in range(3)
            )


# --- partitions come and go ----------------------------------------------------------------


def test_new_partitions_are_read_from_their_beginning(broker: Broker, admin: AdminClient) -> None:
    topic = broker.filled(2)
    with stream(broker, topic, maxOffsetsPerTrigger=100) as reader:
        start = reader.initialOffset()
        for future in admin.create_partitions([NewPartitions(topic, 2)]).values():
            future.result()
        broker.forget()
        broker.send(topic, [b"new"], partition=1)
        reader.latestOffset(start, reader.getDefaultReadLimit())
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert end == {topic: {"0": 2, "1": 1}}
        assert between(reader, start, end) == [b"new"]


def test_new_topics_that_match_are_read_from_their_beginning(broker: Broker) -> None:
    stem = broker.process.unique("stream")
    with stream(broker, None, subscribePattern=f"^{stem}") as reader:
        start = reader.initialOffset()
        assert start == {}
        broker.process.topic(f"{stem}.a")
        broker.send(f"{stem}.a", [b"new"])
        end = reader.latestOffset(start, ALL)
        assert between(reader, start, end) == [b"new"]


def test_partitions_are_looked_up_no_more_often_than_wanted(broker: Broker, admin: AdminClient) -> None:
    topic = broker.filled(1)
    with stream(broker, topic, **{"partition.metadata.cache.ttl.ms": 3_600_000}) as reader:
        start = reader.initialOffset()
        for future in admin.create_partitions([NewPartitions(topic, 2)]).values():
            future.result()
        assert reader.latestOffset(start, ALL) == start


@pytest.mark.parametrize("recreated", [False, True])
def test_a_deleted_topic_fails_the_query(broker: Broker, admin: AdminClient, recreated: bool) -> None:
    topic = broker.filled(3)
    with stream(broker, topic) as reader:
        start = reader.initialOffset()
        for future in admin.delete_topics([topic]).values():
            future.result()
        if recreated:
            broker.process.topic(topic)
        reader.latestOffset(start, ALL)
        end = reader.latestOffset(start, ALL)
        with pytest.raises(DataLoss, match="now ends at 0" if recreated else "have been deleted"):
            reader.partitions(start, end)


def test_a_deleted_topic_is_noted_and_read_again_when_it_is_back_if_that_is_wanted(
    broker: Broker, admin: AdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    topic, other = broker.filled(3), broker.topic()
    with stream(broker, f"{topic},{other}", startingOffsets="earliest", failOnDataLoss="false") as reader:
        start = reader.latestOffset(reader.initialOffset(), ALL)
        for future in admin.delete_topics([topic]).values():
            future.result()
        broker.send(other, [b"other"])
        end = reader.latestOffset(start, ALL)
        with caplog.at_level(logging.WARNING, "ottla.spark"):
            assert between(reader, start, end) == [b"other"]
        assert f"{topic}-0 have been deleted" in caplog.text
        broker.process.topic(topic)
        broker.forget()
        broker.send(topic, [b"back"])
        assert between(reader, end, reader.latestOffset(end, ALL)) == [b"back"]


def test_records_that_expired_before_they_were_read_are_a_loss(broker: Broker, admin: AdminClient) -> None:
    from tests.spark.test_read_offsets import delete_records

    topic = broker.filled(6)
    delete_records(broker, topic, 4)
    start, end = {topic: {"0": 1}}, {topic: {"0": 6}}
    with stream(broker, topic) as reader, pytest.raises(DataLoss, match="from offset 1 up to 6"):
        between(reader, start, end)
    with stream(broker, topic, failOnDataLoss="false") as reader:
        assert between(reader, start, end) == [b"0-4", b"0-5"]


# --- progress in a consumer group ----------------------------------------------------------


def committed(broker: Broker, group: str) -> dict[str, int]:
    with closing(BlockingCluster(broker.bootstrap)) as cluster:
        return {str(partition): found.offset for partition, found in cluster.committed(group).items()}


def test_what_was_processed_is_committed_to_the_group(broker: Broker) -> None:
    topic, group = broker.filled(4), broker.process.unique("group")
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 3, "kafka.group.id": group}
    with stream(broker, topic, commitOffsets="true", **options) as reader:
        first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        assert committed(broker, group) == {f"{topic}-0": 0}
        second = reader.latestOffset(first, reader.getDefaultReadLimit())
        assert committed(broker, group) == {f"{topic}-0": 3}
        reader.latestOffset(second, reader.getDefaultReadLimit())
        assert committed(broker, group) == {f"{topic}-0": 4}


def test_nothing_is_committed_unless_that_is_wanted(broker: Broker) -> None:
    topic, group = broker.filled(4), broker.process.unique("group")
    with stream(broker, topic, startingOffsets="earliest", **{"kafka.group.id": group}) as reader:
        reader.latestOffset({topic: {"0": 3}}, ALL)
    assert committed(broker, group) == {}


def test_a_commit_that_fails_does_not_fail_the_query(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = broker.filled(4), broker.process.unique("group")
    consumer = broker.process.consumer(topic, group=group, client="confluent")
    broker.process.wait_for_assignment(consumer)
    with stream(broker, topic, commitOffsets="true", **{"kafka.group.id": group}) as reader:
        assert reader.latestOffset({topic: {"0": 3}}, ALL) == {topic: {"0": 4}}
    assert f"could not be committed to group {group}" in caplog.text
