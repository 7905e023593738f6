"""Flows on real Spark and a real broker: what they read, where bad records go, how they fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.pipelines import PipelineError
from ottla.pipelines.reports import JsonReport
from ottla.pipelines.run import FlowFailed, dry_run
from ottla.pipelines.status import status_of
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Broker


@pytest.fixture
def pipeline(spark: SparkSession, broker: Broker, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path / "project", broker.bootstrap)


@pytest.fixture
def records(broker: Broker) -> Callable[[str], list[dict[str, Any]]]:
    """All records of a topic that are committed."""

    def read(topic: str) -> list[dict[str, Any]]:
        table = ottla.read_topic(
            topic, bootstrap=broker.bootstrap, headers=True, isolation_level="read_committed"
        )
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    return read


def test_good_records_go_to_the_sink_and_bad_ones_to_the_dead_letter_topic_each_once(
    pipeline: Pipeline, broker: Broker, records: Callable[[str], list[dict[str, Any]]]
) -> None:
    orders, dead = broker.topic(), broker.topic()
    broker.send(orders, [b'{"id": 1, "name": "a"}', b"nope", None], key=b"k", headers=[("trace", b"t1")])
    pipeline.write(
        f"""
        @flow(sink=sinks.parquet("out", partition_by=["name"]), dead_letter="{dead}")
        def orders(spark):
            return read.topic("{orders}", decode=read.json("id long, name string"), keep={{"offset": "at"}})
        """
    )
    told = pipeline.run()
    assert pipeline.rows("out") == [{"id": 1, "at": 0, "name": "a"}]
    (letter,) = records(dead)
    assert (letter["key"], letter["value"]) == (b"k", b"nope")
    headers = {each["key"]: each["value"] for each in letter["headers"]}
    assert headers.pop("ottla.timestamp").startswith(b"20")
    assert headers == {
        "trace": b"t1",
        "ottla.flow": b"orders",
        "ottla.topic": orders.encode(),
        "ottla.partition": b"0",
        "ottla.offset": b"1",
        "ottla.error": b"the value is not JSON of the expected schema: nope",
    }
    sums = {each.flow: (each.state, each.rows_in, each.rows_out) for each in told.flows}
    assert sums == {"orders": ("done", 3, 1), "orders-dead-letter": ("done", 3, 1)}
    assert all(batch.lag == {orders: 0} for batch in told.batches if batch.flow == "orders")

    broker.send(orders, [b'{"id": 3, "name": "b"}'] * 2)
    status = {each.flow: each for each in status_of(pipeline.project).flows}
    assert status["orders"].offsets == {orders: {0: 3}}
    assert status["orders"].lag == {orders: 2}
    assert status["orders-dead-letter"].batch == 0
    assert status["orders"].unfinished is None

    # Starting over removes what there is and reads everything again.
    told = pipeline.run(full_refresh=True)
    removed = [note for note in told.notes if note.startswith("full refresh: removed")]
    assert [note.split("removed ")[1].split(" /")[0] for note in removed] == [
        "the files below",
        "the checkpoint",
        "the checkpoint",
    ]
    assert [row["id"] for row in pipeline.rows("out")] == [1, 3, 3]


def test_without_a_dead_letter_topic_a_bad_record_fails_the_flow_by_name_batch_and_offset(
    pipeline: Pipeline, broker: Broker
) -> None:
    orders = broker.topic()
    broker.send(orders, [b'{"id": 1}'])
    pipeline.write(
        f"""
        @flow(sink=sinks.parquet("out"))
        def strict(spark):
            return read.topic("{orders}", decode=read.json("id long"))
        """
    )
    pipeline.run()
    broker.send(orders, [b'{"id": 2}', b"nope"])
    with pytest.raises(FlowFailed) as failed:
        pipeline.run()
    failure = failed.value.failure
    assert (failure.flow, failure.batch, failure.offsets) == ("strict", 1, f"{orders}-0 1 to 3")
    assert f"{orders}-0 at offset 2: the value is not JSON of the expected schema: nope" in failure.reason
    assert [each.unfinished for each in status_of(pipeline.project).flows] == [1]

    skipping = (pipeline.root / "pipeline.py").read_text().replace('long")', 'long"), bad_records="skip"')
    (pipeline.root / "pipeline.py").write_text(skipping)
    pipeline.run()
    assert [row["id"] for row in pipeline.rows("out")] == [1, 2]


def test_windows_duplicates_keys_and_topics(
    pipeline: Pipeline, broker: Broker, records: Callable[[str], list[dict[str, Any]]]
) -> None:
    orders, totals = broker.topic(partitions=2), broker.topic()
    at = "2026-01-01T00:0{}:00Z"
    for partition in (0, 1):
        values = [
            f'{{"id": {number}, "at": "{at.format(number)}", "amount": 1.5}}'.encode() for number in range(5)
        ]
        broker.send(orders, values, key=b"ada", partition=partition)
    pipeline.write(
        f"""
        @flow(sink=sinks.topic("{totals}", key="customer"))
        def totals(spark):
            rows = read.topic(
                "{orders}", decode=read.json("id long, at timestamp, amount double"), key=read.string()
            ).withColumnRenamed("key", "customer")
            once = events.deduplicated(rows, ["id"], time="at", within="1 minute")
            minutes = events.windowed(once, time="at", every="1 minute", by=["customer"])
            sums = minutes.agg(F.sum("amount").alias("amount"), F.count("*").alias("orders"))
            return events.flat_window(sums)
        """
    )
    told = pipeline.run()
    found = sorted((record["key"], record["value"]) for record in records(totals))
    # The watermark is a minute behind 00:04, so the windows up to 00:03 are over. Each order came twice.
    assert len(found) == 3
    assert all(key == b"ada" and b'"amount":1.5,"orders":1}' in value for key, value in found)
    assert found[0][1].startswith(b'{"window_start":"2026-01-01T00:00:00.000Z"')
    assert told.batches[-1].state_rows > 0


def test_a_flow_may_be_plain_structured_streaming_and_may_print(pipeline: Pipeline, broker: Broker) -> None:
    orders = broker.filled(2)
    pipeline.write(
        f"""
        def shout(text):
            return text.upper()

        @flow(sink=sinks.console(rows=1))
        def shown(spark):
            louder = F.udf(shout)  # a function of this file, which executors cannot import
            return read.topic("{orders}", decode=read.string()).select(louder("value").alias("v"))

        @flow
        def plain(spark):
            return read.topic("{orders}").select("value").writeStream.format("noop")
        """
    )
    told = pipeline.run()
    assert told.shown == [("shown", 0, ["v"], [["0-0"]])]
    assert {each.flow: (each.sink, each.rows_in) for each in told.flows} == {
        "shown": ("console", 2),
        "plain": ("its own sink", 2),
    }


def test_a_plain_program_is_run_as_it_is_and_its_queries_are_watched(
    pipeline: Pipeline, broker: Broker, tmp_path: Path
) -> None:
    orders = broker.filled(3)
    pipeline.write("")
    program = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("ottla").option("kafka.bootstrap.servers", "{broker.bootstrap}")
rows = rows.option("subscribe", "{orders}").option("startingOffsets", "earliest").load()
writer = rows.writeStream.queryName("by_hand").option("checkpointLocation", "{tmp_path / "checkpoint"}")
writer.format("noop").trigger(availableNow=True).start().awaitTermination()
"""
    (pipeline.root / "pipeline.py").write_text(program)
    with pytest.raises(PipelineError, match="--available-now needs flows"):
        pipeline.run()
    told = pipeline.run(available_now=False)
    assert [(each.flow, each.state, each.rows_in) for each in told.flows] == [("by_hand", "done", 3)]
    (pipeline.root / "pipeline.py").write_text("raise ValueError('boom')")
    with pytest.raises(PipelineError, match=r"pipeline\.py: ValueError: boom"):
        pipeline.run(available_now=False)


def test_a_dry_run_checks_names_and_types_and_starts_nothing(
    pipeline: Pipeline, broker: Broker, spark: SparkSession
) -> None:
    orders = broker.topic()
    good = f"""
        @flow(sink=sinks.topic("out", key="id"), dead_letter="dead")
        def orders(spark):
            return read.topic("{orders}", decode=read.json("id long"), keep=["timestamp"])
        """
    found = dry_run(pipeline.write(good).project, spark, JsonReport())
    assert [(each.flow, each.sink, each.topics, each.columns) for each in found] == [
        ("orders", "topic out", (orders,), ("id", "timestamp")),
        ("orders-dead-letter", "topic dead", (orders,), ("key", "value", "headers")),
    ]
    assert not (pipeline.root / ".ottla").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("return read.topic('t', decode=read.json('id long')).select('di')", "`di` cannot be resolved"),
        ("return spark.range(3)", "returns a batch DataFrame"),
        ("return None", "returns NoneType instead of a DataFrame"),
        ("return read.topic('t', keep=['key'])", "keep= and tombstones= go with decode="),
        ("return read.topic('t', decode=read.string(), keep=['size'])", "is no column of a record"),
        ("return read.topic('t', options={'subscribePatern': 'x'})", "did you mean 'subscribePattern'"),
        ("return read.topic([])", "wants the name of a topic"),
        (
            "x = dict(time='timestamp'); r = events.deduplicated(read.topic('t'), ['key'], within='1 second'"
            ", **x); return events.windowed(r, every='1 second', late='1 second', **x).count()",
            "timestamp has a watermark of 1 seconds already",
        ),
        ("raise KeyError('customer')", "KeyError: 'customer'"),
    ],
)
def test_what_is_wrong_with_a_flow_is_said_before_anything_starts(
    pipeline: Pipeline, spark: SparkSession, text: str, reason: str
) -> None:
    pipeline.write(
        f"""
        @flow(sink=sinks.console())
        def wrong(spark):
            {text}
        """
    )
    with pytest.raises(PipelineError, match=reason):
        dry_run(pipeline.project, spark, JsonReport())


def test_a_dead_letter_topic_without_a_decoder_and_a_mode_that_a_sink_has_not_are_refused(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    raw = """
        @flow(sink=sinks.console(), dead_letter="dead")
        def raw(spark):
            return read.topic("t")
        """
    with pytest.raises(PipelineError, match="flow raw has a dead-letter topic but decodes no topic"):
        dry_run(pipeline.write(raw).project, spark, JsonReport())
    update = """
        @flow(sink=sinks.topic("out"), mode="update")
        def update(spark):
            return read.topic("t")
        """
    with pytest.raises(PipelineError, match="flow update: topic out takes mode append, not update"):
        dry_run(pipeline.write(update).project, spark, JsonReport())
    with pytest.raises(PipelineError, match=r"line 3: '\(' was never closed"):
        dry_run(pipeline.write("x = (").project, spark, JsonReport())
