"""Streaming queries that write to a topic, on a real Spark: started again, failing, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from ottla.client.blocking.cluster import BlockingCluster
from ottla.core.types import TopicPartition
from ottla.spark.progress import read_progress
from ottla.testing.broker import TestBroker
from tests.spark.committed import records, values
from tests.spark.conftest import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

PROJECT = Path(__file__).resolve().parents[2]
Start = Callable[..., "StreamingQuery"]


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Iterator[Start]:
    """Starts a query that copies a topic to another one, always with the same checkpoint."""
    queries: list[StreamingQuery] = []

    def start(broker: Broker, source: str, topic: str, **options: Any) -> StreamingQuery:
        of_reads = ("maxOffsetsPerTrigger", "minPartitions")
        reading = {name: options.pop(name) for name in of_reads if name in options}
        mode = options.pop("outputMode", "append")
        read = spark.readStream.format("ottla").options(
            **broker.options(source, startingOffsets="earliest", **reading)
        )
        written = (options.pop("change", None) or (lambda each: each.select("key", "value")))(read.load())
        query = (
            written.writeStream.format("ottla")
            .options(**{**broker.options(None, **options), "topic": topic})
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .outputMode(mode)
            .trigger(availableNow=True)
            .start()
        )
        queries.append(query)
        return query

    yield start
    for query in queries:
        query.stop()


def is_decided(broker: Broker, query_id: str) -> bool:
    """Whether the first batch of a query is committed in part, and only in part."""
    with BlockingCluster(broker.bootstrap) as cluster:
        progress = read_progress(cluster, query_id, 0)
    return progress.is_decided and not progress.is_complete


def finish(query: StreamingQuery) -> StreamingQuery:
    assert query.awaitTermination(100)
    return query


def test_a_query_goes_on_where_it_ended_and_repeats_nothing(
    broker: Broker, start: Start, tmp_path: Path
) -> None:
    source, topic = broker.filled(100, partitions=3), broker.topic(partitions=2)
    query = finish(start(broker, source, topic, maxOffsetsPerTrigger=150))
    wanted = Counter(values(broker.bootstrap, source))
    assert Counter(values(broker.bootstrap, topic)) == wanted
    stored = len(values(broker.bootstrap, topic, committed=False))
    # As if the driver had died between the sink's commit and Spark's note of it.
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    assert len(commits) > 1
    commits[-1].unlink()
    broker.send(source, [b"new"], partition=1)
    again = finish(start(broker, source, topic, maxOffsetsPerTrigger=150))
    assert again.id == query.id
    wanted["new"] = 1
    assert Counter(values(broker.bootstrap, topic)) == wanted
    assert len(values(broker.bootstrap, topic, committed=False)) == stored + 1
    with BlockingCluster(broker.bootstrap) as cluster:
        markers = cluster.committed(f"ottla-sink-{query.id}")
    assert markers[TopicPartition(topic, 0)].offset == again.lastProgress["batchId"] + 1


def test_a_batch_that_fails_is_not_seen_and_is_written_once_when_it_works(
    broker: Broker, start: Start
) -> None:
    source, topic = broker.filled(20, partitions=2), broker.topic()
    broker.send(source, [b"bad"], partition=1)

    def failing(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("if(value = 'bad', raise_error('bad row'), value) AS value")

    query = start(broker, source, topic, change=failing, minPartitions=2)
    with pytest.raises(StreamingQueryException, match="bad row"):
        query.awaitTermination(100)
    assert values(broker.bootstrap, topic) == []
    finish(start(broker, source, topic, minPartitions=2))
    assert Counter(values(broker.bootstrap, topic)) == Counter(values(broker.bootstrap, source))


@pytest.mark.parametrize("tasks", [{"minPartitions": 3}, {}], ids=["the same tasks", "fewer tasks"])
def test_a_commit_that_fails_halfway_is_finished_by_the_next_run(
    broker: Broker, start: Start, tasks: dict[str, int]
) -> None:
    source, topic = broker.filled(20, partitions=3), broker.topic()
    wanted = Counter(values(broker.bootstrap, source))
    with broker.process.fail("EndTxn", error="UNKNOWN_SERVER_ERROR", skip=1, times=None):
        query = start(broker, source, topic, minPartitions=3)
        with pytest.raises(StreamingQueryException, match="UnknownServerError"):
            query.awaitTermination(100)
    assert is_decided(broker, query.id)
    finish(start(broker, source, topic, **tasks))
    assert Counter(values(broker.bootstrap, topic)) == wanted
    assert len(values(broker.bootstrap, topic, committed=False)) == 60


def test_at_least_once_needs_no_transactions(broker: Broker, start: Start) -> None:
    source, topic = broker.filled(20, partitions=2), broker.topic()
    query = finish(start(broker, source, topic, semantic="at_least_once"))
    assert Counter(values(broker.bootstrap, topic)) == Counter(values(broker.bootstrap, source))
    with BlockingCluster(broker.bootstrap) as cluster:
        assert cluster.committed(f"ottla-sink-{query.id}") == {}


def test_a_complete_output_is_written_whole_with_every_batch(broker: Broker, start: Start) -> None:
    source, topic = broker.topic(), broker.topic()

    def counted(frame: DataFrame) -> DataFrame:
        words = frame.groupBy(frame.value.alias("key")).count()
        return words.selectExpr("key", "cast(count as string) AS value")

    broker.send(source, [b"a", b"b", b"a"])
    finish(start(broker, source, topic, change=counted, outputMode="complete"))
    broker.send(source, [b"b"])
    finish(start(broker, source, topic, change=counted, outputMode="complete"))
    found = [(each.key(), each.value()) for each in records(broker.bootstrap, topic)]
    assert sorted(found[:2]) == [(b"a", b"2"), (b"b", b"1")]
    assert sorted(found[2:]) == [(b"a", b"2"), (b"b", b"2")]


def test_a_broker_may_be_killed_while_a_query_writes(start: Start) -> None:
    with TestBroker() as process:
        broker = Broker(process)
        source, topic = broker.filled(300, partitions=2), broker.topic(partitions=2)
        wanted = Counter(values(broker.bootstrap, source))
        # Six batches; the broker goes with the answers of the third one's transactions.
        with process.delay("EndTxn", 60, skip=4, times=None) as fault:
            query = start(broker, source, topic, maxOffsetsPerTrigger=100, minPartitions=2)
            while not fault.hits:
                assert query.isActive, query.exception()
            process.kill()
        process.start()
        finish(query)
        assert Counter(values(broker.bootstrap, topic)) == wanted


@pytest.mark.timeout(600)
def test_a_driver_may_be_killed_while_it_commits_and_tasks_may_fail_before_that(tmp_path: Path) -> None:
    with TestBroker() as process:
        broker = Broker(process)
        source, topic = broker.filled(200, partitions=3), broker.topic(partitions=2)
        job = [sys.executable, "-m", "tests.spark.sink_job", broker.bootstrap, source, topic, str(tmp_path)]
        with process.delay("EndTxn", 600, skip=1, times=None) as fault:
            driver = subprocess.Popen(job, cwd=PROJECT, start_new_session=True)
            try:
                while not fault.hits:
                    with suppress(subprocess.TimeoutExpired):
                        pytest.fail(f"the driver ended with {driver.wait(0.1)}")
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
        query_id = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
        assert is_decided(broker, query_id)
        subprocess.run(job, cwd=PROJECT, check=True, timeout=300)
        assert Counter(values(broker.bootstrap, topic)) == Counter(values(broker.bootstrap, source))
        assert (tmp_path / "retried").exists()
