"""`python -m bench.read_topic`: a topic of 100-byte values as Arrow batches, from a broker on loopback and
from its files, beside confluent-kafka's `consume` in the same run.

Two figures, each the best of a few runs: million rows a second by the clock, and by the processor time of the
reading process alone, which is steadier on a busy machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as Assigned
from rich.console import Console
from rich.table import Table

import ottla
from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.producer import IdempotentProducer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.compression import LZ4, NONE, ZSTD
from tools.broker_process import BrokerProcess

RUNS = 5
PER_BATCH = 150  # 16 KiB, where Kafka's own producer closes a batch
PARTITIONS = 2


def fill(cluster: BlockingCluster, topic: str, rows: int, codec: int) -> int:
    """Writes about so many rows, and answers how many."""
    cluster.create_topic(topic, partitions=PARTITIONS)
    now_ms = time.time_ns() // 1_000_000
    value = (b"%d," * 40 % tuple(range(40)))[:100]
    batch = write_batch([Record(0, now_ms + i, None, value) for i in range(PER_BATCH)], codec=codec)
    producer = IdempotentProducer.start(cluster)
    for _ in range(rows // PER_BATCH // PARTITIONS):
        producer.produce({TopicPartition(topic, number): batch[:] for number in range(PARTITIONS)})
    producer.flush()
    producer.close()
    return sum(producer.end_offsets.values())


def confluent(bootstrap: str, topic: str, rows: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([Assigned(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    found = 0
    while found < rows:
        found += sum(message.value() is not None for message in consumer.consume(10_000, 1.0))
    consumer.close()
    return found


def ways(broker: BrokerProcess, rows: int) -> Iterator[tuple[str, int, Callable[[], int]]]:
    def count(topic: str, **options: object) -> int:
        return sum(batch.num_rows for batch in ottla.read_batches(topic, **options))  # type: ignore[arg-type]

    with BlockingCluster(broker.bootstrap) as cluster:
        for name, codec in (("plain", NONE), ("lz4", LZ4), ("zstd", ZSTD)):
            written = fill(cluster, name, rows, codec)
            over = {"bootstrap": broker.bootstrap}
            yield f"broker, {name}", written, lambda: count(name, **over)  # noqa: B023
            if codec == NONE:
                yield "broker, value only", written, lambda: count("plain", **over, columns=["value"])  # noqa: B023
                yield "files", written, lambda: count("plain", directory=broker.data_dir)
                yield "confluent-kafka", written, lambda: confluent(broker.bootstrap, "plain", written)  # noqa: B023


def measured(rows: int, read: Callable[[], int]) -> tuple[float, float]:
    clock = processor = float("inf")
    for _ in range(RUNS):
        at, used = time.perf_counter(), time.process_time()
        assert read() == rows
        clock = min(clock, time.perf_counter() - at)
        processor = min(processor, time.process_time() - used)
    return rows / clock / 1e6, rows / processor / 1e6


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench.read_topic", description=__doc__)
    options.add_argument("--rows", type=int, default=2_000_000)
    given = options.parse_args()
    table = Table("", "by the clock", "by processor time", title="read_topic, million rows/s")
    with BrokerProcess(settings=["ottla.durability=kafka"]) as broker:
        for name, rows, read in ways(broker, given.rows):
            table.add_row(name, *(f"{figure:.2f}" for figure in measured(rows, read)))
    Console().print(table)


if __name__ == "__main__":
    main()
