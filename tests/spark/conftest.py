"""One Spark session and one broker for all tests of this folder, and a quick way to fill topics.

Starting Spark takes seconds and half a gigabyte, so these tests all run on one worker of pytest-xdist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from ottla.testing.broker import TestBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery

HERE = Path(__file__).parent
# With data this small most of the work is compiling: Java, and the code that Spark writes for each query.
FOR_TESTS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "600m",
    "spark.log.level": "OFF",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.warehouse.dir": "/nowhere",
    "spark.ui.enabled": False,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))
            # On a machine that is busy with other things Spark may need a minute to start.
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from ottla.spark.session import session

    spark = session("tests", master="local[2]", **FOR_TESTS)
    yield spark
    spark.stop()


class Broker:
    """A broker, and what the tests of this folder do to it."""

    def __init__(self, broker: TestBroker) -> None:
        self.process = broker
        self.bootstrap = broker.bootstrap
        self.forget()

    def forget(self) -> None:
        """Look topics up again before the next record: one has more partitions, or is a new one."""
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "log_level": 0})

    def topic(self, *, partitions: int = 1, **config: object) -> str:
        return self.process.topic(partitions=partitions, **config)

    def send(self, topic: str, values: Iterable[bytes | None], *, partition: int = 0, **more: Any) -> None:
        """Append records to one partition; `key`, `timestamp` (ms) and `headers` are the same for all."""
        for value in values:
            self._producer.produce(topic, value, partition=partition, **more)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0

    def filled(self, count: int, *, partitions: int = 1, **config: object) -> str:
        """A new topic with `count` records in each partition; values are b"<partition>-<number>"."""
        topic = self.topic(partitions=partitions, **config)
        for partition in range(partitions):
            self.send(topic, (b"%d-%d" % (partition, number) for number in range(count)), partition=partition)
        return topic

    def options(self, topic: str | None = None, **more: object) -> dict[str, str]:
        """Options of a read: `options("orders", startingOffsets="earliest")`."""
        subscription = {} if topic is None else {"subscribe": topic}
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            **subscription,
            **{name: str(value) for name, value in more.items()},
        }


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with TestBroker() as broker:
        yield Broker(broker)


class Streams:
    """Runs streaming queries of one test, each with a checkpoint of its own unless it names one."""

    def __init__(self, spark: SparkSession, broker: Broker, directory: Path) -> None:
        self._spark, self._broker, self._directory = spark, broker, directory
        self.queries: list[StreamingQuery] = []

    def checkpoint(self, name: str) -> Path:
        return self._directory / "checkpoints" / name

    def reader(self, topic: str | None, **options: object) -> DataStreamReader:
        return self._spark.readStream.format("ottla").options(**self._broker.options(topic, **options))

    def start(
        self, frame: DataFrame, name: str = "query", **trigger: Any
    ) -> tuple[StreamingQuery, list[Any]]:
        """Start a query that collects rows; all that is available, unless a trigger is given."""
        rows: list[Any] = []
        query = (
            frame.writeStream.foreachBatch(lambda batch, number: rows.extend(batch.collect()))
            .option("checkpointLocation", str(self.checkpoint(name)))
            .trigger(**(trigger or {"availableNow": True}))
            .start()
        )
        self.queries.append(query)
        return query, rows

    def run(self, frame: DataFrame, name: str = "query") -> list[Any]:
        """The rows of all that is available now. Raises what ended the query."""
        query, rows = self.start(frame, name)
        assert query.awaitTermination(90)
        return rows


@pytest.fixture
def streams(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Streams]:
    streams = Streams(spark, broker, tmp_path)
    yield streams
    for query in streams.queries:
        query.stop()
