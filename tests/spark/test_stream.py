"""Streaming queries of a real Spark: checkpoints, restarts, triggers, progress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.errors import StreamingQueryException

from ottla.client.blocking.cluster import BlockingCluster
from tests.spark.conftest import Broker, Streams


def offsets_of(checkpoint: Path, batch: int) -> str:
    """The offset of the only source, as Spark has stored it."""
    return (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2]


def test_a_restarted_query_goes_on_where_it_was(broker: Broker, streams: Streams) -> None:
    topic, group = broker.filled(4, partitions=2), broker.process.unique("group")
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 6}
    options |= {"commitOffsets": "true", "kafka.group.id": group}
    query, rows = streams.start(streams.reader(topic, **options).load())
    assert query.awaitTermination(90)
    assert sorted(row.value for row in rows) == [b"%d-%d" % (p, n) for p in range(2) for n in range(4)]
    assert json.loads(offsets_of(streams.checkpoint("query"), 1)) == {topic: {"0": 4, "1": 4}}
    with BlockingCluster(broker.bootstrap) as cluster:
        committed = cluster.committed(group)
    assert {position.offset for position in committed.values()} == {4}, "the last batch too"
    (source,) = query.recentProgress[0]["sources"]
    assert json.loads(source["endOffset"]) == {topic: {"0": 3, "1": 3}}
    assert json.loads(source["latestOffset"]) == {topic: {"0": 4, "1": 4}}, "so the lag is 2"
    broker.send(topic, [b"later"])
    assert [row.value for row in streams.run(streams.reader(topic, **options).load())] == [b"later"]


def test_a_checkpoint_of_the_kafka_connector_is_gone_on_from(broker: Broker, streams: Streams) -> None:
    topic = broker.filled(5, partitions=2)
    checkpoint = streams.checkpoint("theirs")
    streams.run(streams.reader(topic, startingOffsets="earliest").load(), "theirs")
    # What the connector leaves behind differs in two places: its JSON has no spaces, and it keeps the offsets
    # that the query started with.
    stored = checkpoint / "offsets" / "0"
    head = stored.read_text().splitlines()[:2]
    stored.write_text("\n".join([*head, f'{{"{topic}":{{"1":3,"0":4}}}}']))
    (checkpoint / "offsets" / ".0.crc").unlink()
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_text(f'0v1\n{{"{topic}":{{"1":0,"0":0}}}}')
    rows = streams.run(streams.reader(topic).load(), "theirs")
    assert sorted(row.value for row in rows) == [b"0-4", b"1-3", b"1-4"]


def test_records_and_partitions_that_arrive_while_a_query_runs_are_read(
    broker: Broker, streams: Streams
) -> None:
    topic = broker.filled(3)
    query, rows = streams.start(streams.reader(topic).load(), processingTime="0 seconds")
    query.processAllAvailable()
    assert rows == [], "it starts at the latest offsets"
    broker.send(topic, [b"new"])
    query.processAllAvailable()
    assert [row.value for row in rows] == [b"new"]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    broker.forget()
    broker.send(topic, [b"in a new partition"], partition=1)
    query.processAllAvailable()
    assert [row.value for row in rows] == [b"new", b"in a new partition"]


def test_lost_data_fails_a_query_with_words_to_act_on(broker: Broker, streams: Streams) -> None:
    topic = broker.filled(2)
    frame = streams.reader(topic, startingOffsets=json.dumps({topic: {"0": 7}})).load()
    with pytest.raises(StreamingQueryException, match="set the option failOnDataLoss to false"):
        streams.run(frame)
