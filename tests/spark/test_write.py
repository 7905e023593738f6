"""Writing a DataFrame to a topic: what becomes of columns, options and errors."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.types import StructType

from ottla.client.partitioner import partition_of_key
from ottla.protocol.errors import InvalidTopic, MessageTooLarge, UnknownTopicOrPartition
from ottla.spark.sink import TransactionLost
from ottla.spark.writer import OttlaWriter, batch_writer
from tests.spark.committed import records, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.conftest import Broker


def save(frame: DataFrame, broker: Broker, topic: str | None, **options: object) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap, **{k: str(v) for k, v in options.items()}}
    if topic is not None:
        given["topic"] = topic
    frame.write.format("ottla").options(**given).mode("append").save()


class Job:
    """A write as Spark's processes do it, but in this one."""

    def __init__(self, broker: Broker, topic: str | None = None, **options: object) -> None:
        given = {"kafka.bootstrap.servers": broker.bootstrap, **{k: str(v) for k, v in options.items()}}
        if topic is not None:
            given["topic"] = topic
        schema = StructType().add("topic", "string").add("value", "binary")
        self.writer: OttlaWriter = pickle.loads(pickle.dumps(batch_writer(given, schema, False)))
        self.messages: list[Any] = []

    def write(self, *batches: pa.RecordBatch) -> None:
        done = self.writer.write_task(len(self.messages), iter(batches))
        self.messages.append(pickle.loads(pickle.dumps(done)))

    def commit(self) -> None:
        self.writer.commit(self.messages)

    def abort(self) -> None:
        self.writer.abort(self.messages)


def rows(*values: bytes, **columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.binary()), **columns})


# --- columns -------------------------------------------------------------------------------------


def test_every_column_that_the_connector_knows_is_written(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(partitions=3)
    frame = spark.sql("""
        SELECT * FROM VALUES
            ('k1', 'v1', 2, array(struct('a' AS key, X'01' AS value), struct('a' AS key, NULL AS value)), 1),
            (NULL, 'v2', 0, array(), 2),
            ('k3', NULL, 1, NULL, 3)
        AS data(key, value, partition, headers, passed_over)
    """)
    save(frame, broker, topic)
    found = records(broker.bootstrap, topic)
    assert [(each.partition(), each.key(), each.value(), each.headers()) for each in found] == [
        (0, None, b"v2", None),
        (1, b"k3", None, None),
        (2, b"k1", b"v1", [("a", b"\x01"), ("a", None)]),
    ]


def test_keys_and_values_may_be_binary_and_a_topic_may_be_a_column(
    spark: SparkSession, broker: Broker
) -> None:
    first, second = broker.topic(), broker.topic()
    frame = spark.sql(f"""
        SELECT * FROM VALUES ('{first}', X'00FF', X'01'), ('{second}', NULL, X'02'), ('{first}', X'', X'03')
        AS data(topic, key, value)
    """)
    save(frame.coalesce(1), broker, None)  # one task, since the order of several is nobody's
    assert [(each.key(), each.value()) for each in records(broker.bootstrap, first)] == [
        (b"\x00\xff", b"\x01"),
        (b"", b"\x03"),
    ]
    assert [(each.key(), each.value()) for each in records(broker.bootstrap, second)] == [(None, b"\x02")]
    only = broker.topic()
    save(frame, broker, only)  # the option wins
    assert len(records(broker.bootstrap, only)) == 3


def test_records_are_as_old_as_their_writing_unless_the_timestamps_are_asked_for(
    spark: SparkSession, broker: Broker
) -> None:
    frame = spark.sql("SELECT 'v' AS value, TIMESTAMP '2001-02-03 04:05:06.789123 UTC' AS timestamp")
    now, then = broker.topic(), broker.topic()
    save(frame, broker, now)
    save(frame, broker, then, includeTimestamp=True)
    (written,) = records(broker.bootstrap, now)
    assert written.timestamp()[1] > datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1000
    (written,) = records(broker.bootstrap, then)
    assert written.timestamp()[1] == int(datetime(2001, 2, 3, 4, 5, 6, 789000, UTC).timestamp() * 1000)


def test_keys_go_where_other_producers_send_them(broker: Broker) -> None:
    ours, theirs = broker.topic(partitions=7), broker.topic(partitions=7)
    keys = [b"", *(b"key-%d" % number for number in range(200))]
    job = Job(broker, ours)
    job.write(rows(*keys, key=pa.array(keys, pa.binary())))
    job.commit()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, key, key)
    assert producer.flush(30) == 0

    def places(topic: str) -> dict[bytes, int]:
        return {each.key(): each.partition() for each in records(broker.bootstrap, topic)}

    assert places(ours) == places(theirs)


def test_rows_without_a_key_go_to_all_partitions_in_turn(broker: Broker) -> None:
    topic = broker.topic(partitions=3)
    job = Job(broker, topic)
    job.write(*(rows(b"%d" % number, b"again") for number in range(6)))
    job.commit()
    found = [each.partition() for each in records(broker.bootstrap, topic)]
    assert sorted(found) == [0] * 4 + [1] * 4 + [2] * 4


def test_a_partition_of_a_row_wins_over_its_key(broker: Broker) -> None:
    topic = broker.topic(partitions=4)
    job = Job(broker, topic)
    job.write(rows(b"a", b"b", b"c", key=pa.array([b"k"] * 3), partition=pa.array([3, None, 0], pa.int32())))
    job.commit()
    found = {each.value(): each.partition() for each in records(broker.bootstrap, topic)}
    assert (found[b"a"], found[b"c"]) == (3, 0)
    assert found[b"b"] == partition_of_key(b"k", 4)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_understood_by_other_clients(broker: Broker, codec: str) -> None:
    topic = broker.topic()
    wanted = [b"value-%d" % number * 10 for number in range(2000)]
    job = Job(broker, topic, **{"kafka.compression.type": codec})
    job.write(rows(*wanted))
    job.commit()
    assert [each.value() for each in records(broker.bootstrap, topic)] == wanted
    size = sum(path.stat().st_size for path in broker.process.data_dir.glob(f"{topic}-0/*.log"))
    assert size < sum(map(len, wanted)) / 3


# --- jobs ----------------------------------------------------------------------------------------


def test_a_job_is_committed_as_a_whole(broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    job = Job(broker, topic)
    job.write(rows(b"a"), rows(), rows(b"b"))
    job.write()
    job.write(rows(b"c"))
    assert values(broker.bootstrap, topic) == []
    job.commit()
    assert sorted(values(broker.bootstrap, topic)) == ["a", "b", "c"]


def test_a_job_that_fails_leaves_nothing_behind(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    frame = spark.range(0, 40_000, 1, 4).selectExpr(
        "cast(if(id = 39999, raise_error('the last row'), id) as string) AS value"
    )
    with pytest.raises(PySparkException, match="the last row"):
        save(frame, broker, topic)
    assert values(broker.bootstrap, topic) == []
    save(spark.range(3).selectExpr("cast(id as string) AS value"), broker, topic)
    assert sorted(values(broker.bootstrap, topic)) == ["0", "1", "2"]


def test_a_job_whose_transaction_is_lost_commits_none_of_them(broker: Broker) -> None:
    topic = broker.topic()
    job = Job(broker, topic)
    job.write(rows(b"a"))
    job.write(rows(b"b"))
    job.writer.write_task(1, iter([rows(b"again")]))  # another attempt, of which the driver has not heard
    with pytest.raises(TransactionLost, match="is no longer open"):
        job.commit()
    job.abort()
    assert values(broker.bootstrap, topic) == []


def test_at_least_once_needs_no_commit(broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    job = Job(broker, topic, semantic="at_least_once")
    job.write(rows(b"a"), rows(b"b"))
    assert sorted(values(broker.bootstrap, topic)) == ["a", "b"]
    job.commit()
    job.abort()
    assert sorted(values(broker.bootstrap, topic)) == ["a", "b"]


def test_many_rows_from_several_tasks_are_all_there(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(partitions=3)
    frame = spark.range(0, 100_000, 1, 3).selectExpr(
        "cast(id as string) AS key", "cast(id as string) AS value"
    )
    save(frame, broker, topic, **{"kafka.compression.type": "lz4"})
    assert sorted(map(int, values(broker.bootstrap, topic))) == list(range(100_000))


def test_a_frame_without_rows_writes_nothing(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    save(spark.sql("SELECT 'v' AS value WHERE false"), broker, topic)
    assert values(broker.bootstrap, topic) == []


def test_batches_are_as_small_as_their_topic_wants_them(broker: Broker) -> None:
    topic = broker.topic(max_message_bytes=2000)
    wanted = [b"%05d" % number + b"x" * 500 for number in range(50)]
    job = Job(broker, topic)
    job.write(rows(*wanted))
    job.commit()
    assert [each.value() for each in records(broker.bootstrap, topic)] == wanted


# --- errors --------------------------------------------------------------------------------------


def test_a_record_that_the_broker_refuses_fails_the_job_with_its_words(
    spark: SparkSession, broker: Broker
) -> None:
    topic = broker.topic(max_message_bytes=1000)
    with pytest.raises(PySparkException, match=rf"MessageTooLarge: partition {topic}-0: "):
        save(spark.sql("SELECT repeat('x', 2000) AS value"), broker, topic)
    assert values(broker.bootstrap, topic) == []


@pytest.mark.parametrize(
    ("batch", "options", "error", "words"),
    [
        (rows(b"x" * 2000), {"kafka.max.request.size": 1000}, MessageTooLarge, "max.request.size"),
        (rows(b"x", partition=pa.array([5], pa.int32())), {}, UnknownTopicOrPartition, "partitions 0 to 1"),
        (rows(b"x", partition=pa.array([-1], pa.int32())), {}, UnknownTopicOrPartition, "partition -1"),
        (rows(b"x", topic=pa.array(["a/b"])), {"topic": ""}, InvalidTopic, "a/b"),
        (rows(b"x", topic=pa.array([None], pa.string())), {"topic": ""}, InvalidTopic, "null topic present"),
    ],
)
def test_what_cannot_be_delivered_says_why(
    broker: Broker, batch: pa.RecordBatch, options: dict[str, object], error: type[Exception], words: str
) -> None:
    topic = broker.topic(partitions=2)
    job = Job(broker, **{"topic": topic, **options})  # type: ignore[arg-type]
    with pytest.raises(error, match=words):
        job.write(rows(b"before") if "topic" not in options else batch, batch)
    assert values(broker.bootstrap, topic) == []


def test_a_topic_that_does_not_exist_is_an_error_where_topics_are_not_made_on_demand(broker: Broker) -> None:
    with broker.process.fail("Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", topic="nowhere", times=None):
        job = Job(broker, "nowhere", **{"kafka.delivery.timeout.ms": 500})
        with pytest.raises(UnknownTopicOrPartition, match="topic nowhere: "):
            job.write(rows(b"x"))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string", "Required attribute 'value' not found"),
        ("value string, key string, key binary", "several columns 'key'"),
        ("value int", r"value attribute unsupported type int. value must be a\(n\) string or binary"),
        ("key long, value string", r"key attribute unsupported type bigint. key must be a\(n\) string or"),
        ("value string, partition long", r"unsupported type bigint. partition must be a\(n\) int"),
        (
            "value string, headers array<struct<key:string,value:string>>",
            r"headers must be a\(n\) array<struct<key:string,value:binary>>",
        ),
    ],
)
@pytest.mark.usefixtures("spark")  # only a session can read DDL
def test_columns_of_other_types_are_refused_in_the_words_of_the_connector(
    broker: Broker, schema: str, words: str
) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "t"}
    with pytest.raises(ValueError, match=words):
        batch_writer(options, StructType.fromDDL(schema), False)


@pytest.mark.usefixtures("spark")
def test_there_has_to_be_a_topic(broker: Broker) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap}
    with pytest.raises(ValueError, match="topic option required when no 'topic' attribute is present"):
        batch_writer(options, StructType.fromDDL("value string"), False)
    with pytest.raises(
        ValueError, match=r"topic attribute unsupported type int. topic must be a\(n\) string"
    ):
        batch_writer(options, StructType.fromDDL("topic int, value string"), False)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    yield spark.sql("SELECT 'v' AS value")


def test_a_topic_is_only_appended_to(frame: DataFrame, broker: Broker) -> None:
    write = (
        frame.write.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", "t")
    )
    with pytest.raises(PySparkException, match="Save mode Overwrite not allowed for Kafka"):
        write.mode("overwrite").save()
    with pytest.raises(AnalysisException, match='cannot be written in the "Ignore" mode'):
        write.mode("ignore").save()


def test_an_option_that_nobody_knows_is_refused_before_anything_runs(
    frame: DataFrame, broker: Broker
) -> None:
    with pytest.raises(PySparkException, match="unknown option 'topik': did you mean 'topic'"):
        save(frame, broker, "t", topik="t")
