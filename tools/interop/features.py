"""The features: what is there before the client runs, and what it must have seen when it is done.

A client program is thin: it does what interop/README.md says for the feature and reports what it saw. What
it should have seen is decided in `judges`, once for all clients, by what the broker holds and the wire said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tools.interop.judges.acls import saw_acls
from tools.interop.judges.administration import (
    saw_configs,
    saw_deleted_records,
    saw_groups,
    saw_offsets,
    saw_partitions,
    saw_topics,
)
from tools.interop.judges.evidence import Judge
from tools.interop.judges.groups import group_of, saw_shared, saw_static
from tools.interop.judges.records import (
    compressed_with,
    saw_all,
    saw_committed,
    saw_headers,
    saw_keys,
    saw_old,
    saw_sequences,
    saw_timestamps,
    saw_transactions,
)
from tools.interop.stage import PARTITIONS, Stage

Prepare = Callable[[Stage], None]


class Feature(NamedTuple):
    name: str
    about: str
    prepare: Prepare
    judge: Judge
    aged: bool = False
    """Whether the broker answers ApiVersions as Kafka 2.1 did."""


def nothing(stage: Stage) -> None:
    pass


def a_topic(stage: Stage) -> None:
    stage.create_topic()


def a_full_topic(stage: Stage) -> None:
    stage.create_topic()
    stage.fill()


def a_topic_of_each_time(stage: Stage) -> None:
    # The records are years old, and to be kept all the same.
    stage.create_topic(config={"retention.ms": "-1"})
    stage.create_topic("-append", config={"message.timestamp.type": "LogAppendTime"})


def three_transactions(stage: Stage) -> None:
    stage.create_topic()
    for suffix, end in (("first", "commit"), ("second", "abort"), ("third", "commit"), ("fourth", "open")):
        stage.transaction(suffix, [f"{suffix}-{number}" for number in range(4)], end)


def a_shared_topic(stage: Stage) -> None:
    a_full_topic(stage)
    stage.share_from_the_start()


def an_empty_group(stage: Stage) -> None:
    a_full_topic(stage)
    stage.commit_offsets(dict.fromkeys(range(PARTITIONS), 5))


FEATURES = {
    feature.name: feature
    for feature in (
        Feature("produce", "produce and consume", a_topic, saw_all),
        Feature("gzip", "gzip", a_topic, compressed_with("gzip")),
        Feature("snappy", "snappy", a_topic, compressed_with("snappy")),
        Feature("lz4", "lz4", a_topic, compressed_with("lz4")),
        Feature("zstd", "zstd", a_topic, compressed_with("zstd")),
        Feature("headers", "record headers", a_topic, saw_headers),
        Feature("keys", "keys, tombstones, Java's partitioner", a_topic, saw_keys),
        Feature("timestamps", "timestamps, offsets by time", a_topic_of_each_time, saw_timestamps),
        Feature("idempotence", "idempotent producer", a_topic, saw_sequences),
        Feature("transactions", "transactions, with offsets", a_topic, saw_transactions),
        Feature(
            "read-committed", "read_committed past an open transaction", three_transactions, saw_committed
        ),
        Feature("group-classic", "group of two, classic protocol", a_full_topic, group_of("classic")),
        Feature("group-consumer", "group of two, consumer protocol", a_full_topic, group_of("consumer")),
        Feature("group-share", "share group of two, with a release", a_shared_topic, saw_shared),
        Feature("static", "static members", a_full_topic, saw_static),
        Feature("admin-topics", "create, describe, list and delete topics", nothing, saw_topics),
        Feature("admin-configs", "describe and alter configurations", a_topic, saw_configs),
        Feature("admin-partitions", "add partitions", a_topic, saw_partitions),
        Feature("admin-groups", "list, describe and delete groups", an_empty_group, saw_groups),
        Feature("admin-offsets", "list, alter and delete offsets", an_empty_group, saw_offsets),
        Feature("admin-records", "delete records", a_full_topic, saw_deleted_records),
        Feature("admin-acls", "create, list and delete access rules", nothing, saw_acls),
        Feature("old-versions", "the client held to the protocol of Kafka 2.1", a_topic, saw_old, aged=True),
    )
}
