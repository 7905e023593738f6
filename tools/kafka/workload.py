"""Topics and records that use as much of the file formats as one node can, and reading them all back."""

from __future__ import annotations

import time
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60.0


class Stored(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: tuple[tuple[str, bytes | None], ...]


Contents = dict[str, dict[int, list[Stored]]]

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "small-segments": {"segment.bytes": "1048576", "index.interval.bytes": "512"},
    "log-append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
    "recompressed": {"compression.type": "zstd"},
    "short-lived": {"segment.bytes": "1048576", "retention.bytes": "2097152"},
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def write_workload(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, num_partitions=2, config=config) for name, config in TOPICS.items()]
    wanted += [NewTopic(f"codec-{codec}", num_partitions=1) for codec in CODECS]
    wanted += [NewTopic("empty", num_partitions=3), NewTopic("deleted", num_partitions=1)]
    wanted += [NewTopic("trimmed", num_partitions=1, config={"segment.bytes": "1048576"})]
    for future in admin.create_topics(wanted).values():
        future.result(SECONDS)
    for codec in CODECS:
        fill(bootstrap, f"codec-{codec}", 2000, compression=codec, idempotent=codec != "none")
    for name in TOPICS:
        fill(bootstrap, name, 8000, size=500)
    fill(bootstrap, "trimmed", 6000, size=500)
    fill(bootstrap, "deleted", 10)
    trimmed = TopicPartition("trimmed", 0, 3000)
    admin.delete_records([trimmed])[trimmed].result(SECONDS)
    admin.delete_topics(["deleted"])["deleted"].result(SECONDS)


def fill(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    size: int = 100,
    compression: str = "none",
    idempotent: bool = True,
) -> None:
    # Small batches, so that the indexes have something to say.
    settings: dict[str, object] = {
        "linger.ms": 5,
        "batch.num.messages": 20,
        "sticky.partitioning.linger.ms": 0,
    }
    settings |= {"compression.type": compression, "enable.idempotence": idempotent}
    producer = Producer({"bootstrap.servers": bootstrap} | settings)
    base = round(time.time() * 1000) - 10 * count
    for number in range(count):
        producer.produce(
            topic,
            key=b"key-%d" % (number % 97),
            value=(b"%d " % number) * (size // 8) if number % 31 else None,
            headers=[("number", b"%d" % number)] if number % 5 == 0 else None,
            timestamp=base + 10 * number - (number % 7) * 25,
        )
        producer.poll(0)
    if left := producer.flush(SECONDS):
        raise RuntimeError(f"{left} records for {topic} were not taken")


def append_everywhere(bootstrap: str, value: bytes) -> None:
    """One more record in every partition."""
    failures: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for topic, partitions in partitions_of(bootstrap).items():
        for partition in partitions:
            producer.produce(
                topic,
                key=b"last",
                value=value,
                partition=partition,
                on_delivery=lambda error, message: (
                    failures.append(f"{message.topic()}: {error}") if error else None
                ),
            )
    if producer.flush(SECONDS) or failures:
        raise RuntimeError(f"not every partition takes records: {failures[:5]}")


def partitions_of(bootstrap: str) -> dict[str, list[int]]:
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=SECONDS).topics
    return {
        name: sorted(topic.partitions) for name, topic in sorted(topics.items()) if not name.startswith("__")
    }


def read_everything(bootstrap: str) -> Contents:
    """Every record that a consumer sees, of every topic that is not internal."""
    contents: Contents = {}
    settings = {
        "group.id": "not-used",
        "enable.auto.commit": False,
        "check.crcs": True,
        "enable.partition.eof": True,
    }
    consumer = Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "error"} | settings)
    try:
        for topic, partitions in partitions_of(bootstrap).items():
            contents[topic] = {partition: read(consumer, topic, partition) for partition in partitions}
    finally:
        consumer.close()
    return contents


def read(consumer: Consumer, topic: str, partition: int) -> list[Stored]:
    """Up to the end of the partition, whether or not the last offsets hold records."""
    found: list[Stored] = []
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for message in consumer.consume(10_000, timeout=0.5):
            if message.error() is None:
                headers = tuple((name, value) for name, value in message.headers() or ())
                found.append(
                    Stored(message.offset(), message.key(), message.value(), message.timestamp(), headers)
                )
            elif message.error().code() == KafkaError._PARTITION_EOF:
                consumer.unassign()
                return found
            else:
                raise KafkaException(message.error())
    raise RuntimeError(f"{topic}-{partition}: {len(found)} records, but not the end")


def differences(expected: Contents, found: Contents) -> list[str]:
    problems = [f"{name} is missing" for name in expected.keys() - found.keys()]
    problems += [f"{name} should not be there" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        if expected[name].keys() != found[name].keys():
            problems.append(f"{name} has partitions {sorted(found[name])}, not {sorted(expected[name])}")
            continue
        for partition, records in expected[name].items():
            other = found[name][partition]
            if records != other:
                at = next(
                    (i for i, pair in enumerate(zip(records, other, strict=False)) if pair[0] != pair[1]), -1
                )
                problems.append(
                    f"{name}-{partition}: {len(other)} records, not {len(records)}; differ at {at}"
                )
    return problems
