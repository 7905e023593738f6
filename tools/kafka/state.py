"""All that a broker knows of its data directory, asked from outside, so that two brokers can be compared.

Records are in `workload`; this is what lies around them: topics and their ids, configurations, features,
groups and their offsets, share groups, transactions, and what each partition knows of its producers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError
from tools.kafka.run import run_tool
from tools.kafka.workload import partitions_of

SECONDS = 60.0

Known = dict[str, Any]
"""A path such as `configs/topic/plain` to what is known there."""


KINDS = ("topics", "configs", "groups", "offsets", "transactions", "producers", "features")


def about(known: Known, kind: str) -> list[Any]:
    """All that is not empty of one kind."""
    return [found for path, found in known.items() if path.startswith(f"{kind}/") and found]


def observe(bootstrap: str) -> Known:
    """Asks until all coordinators have loaded their logs."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return ask(bootstrap)
        except (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError):
            if time.monotonic() > deadline:
                raise


def settled(bootstrap: str, expected: Known) -> list[str]:
    """What a broker that has just started does not know. It may take a while to load everything."""
    deadline = time.monotonic() + 2 * SECONDS
    while problems := changes(expected, observe(bootstrap)):
        if time.monotonic() > deadline:
            return problems
    return []


def ask(bootstrap: str) -> Known:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    other = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        partitions = partitions_of(bootstrap)
        group_types = {group["group_id"]: group["group_type"] for group in other.list_groups()}
        return {
            **topics(admin, partitions),
            **configs(admin, partitions, group_types),
            **groups(admin, group_types, bootstrap),
            **transactions(other),
            **producers(other, partitions),
            **features(other),
        }
    finally:
        other.close()


def features(admin: KafkaAdminClient) -> Known:
    found = admin.describe_features()
    return {f"features/{name}": at["finalized"] for name, at in found.items() if "finalized" in at}


def topics(admin: AdminClient, partitions: Mapping[str, list[int]]) -> Known:
    found = admin.describe_topics(TopicCollection(list(partitions)))
    described = {name: future.result(SECONDS) for name, future in found.items()}
    return {
        f"topics/{name}": (str(topic.topic_id), [partition.id for partition in topic.partitions])
        for name, topic in described.items()
    }


def configs(admin: AdminClient, names: Iterable[str], group_names: Iterable[str]) -> Known:
    """What somebody has set, not the defaults: two brokers need not agree on those."""
    node = next(iter(admin.list_topics(timeout=SECONDS).brokers))
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    resources += [ConfigResource(ResourceType.BROKER, str(node))]
    resources += [ConfigResource(ResourceType.GROUP, name) for name in group_names]
    set_by_hand = {
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        ConfigSource.DYNAMIC_BROKER_CONFIG.value,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
        ConfigSource.GROUP_CONFIG.value,
    }
    known: Known = {}
    for resource in resources:
        entries = admin.describe_configs([resource])[resource].result(SECONDS).values()
        known[f"configs/{resource.restype.name.lower()}/{resource.name}"] = {
            entry.name: entry.value for entry in entries if entry.source in set_by_hand
        }
    return known


def groups(admin: AdminClient, types: Mapping[str, str], bootstrap: str) -> Known:
    known: Known = {}
    for name, kind in types.items():
        known[f"groups/{name}"] = kind
        if kind == "share":
            known[f"offsets/{name}"] = share_offsets(bootstrap, name)
            continue
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(SECONDS)
        known[f"offsets/{name}"] = sorted(
            (at.topic, at.partition, at.offset, at.metadata or "") for at in asked.topic_partitions
        )
    return known


def share_offsets(bootstrap: str, name: str) -> list[tuple[str, ...]]:
    """Topic, partition and start offset, which only Kafka's own tool asks for."""
    words = ("--bootstrap-server", bootstrap, "--describe", "--group", name, "--offsets")
    rows = [line.split() for line in run_tool("share-groups", *words).splitlines()]
    return sorted(tuple(row[1:4]) for row in rows if row and row[0] == name)


def transactions(admin: KafkaAdminClient) -> Known:
    listed = [listing for found in admin.list_transactions().values() for listing in found]
    names = sorted(listing.transactional_id for listing in listed)
    return {
        f"transactions/{name}": (
            found.state.value,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms,
            sorted(f"{at.topic}-{at.partition}" for at in found.topic_partitions),
        )
        for name, found in (admin.describe_transactions(names) if names else {}).items()
    }


def producers(admin: KafkaAdminClient, partitions: Mapping[str, list[int]]) -> Known:
    every = [TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers]
    return {
        f"producers/{at.topic}-{at.partition}": sorted(
            (
                producer.producer_id,
                producer.producer_epoch,
                producer.last_sequence,
                producer.current_transaction_start_offset,
            )
            for producer in found.active_producers
        )
        for at, found in admin.describe_producers(every).items()
    }


def changes(expected: Known, found: Known) -> list[str]:
    """Where two brokers disagree about one directory."""
    return [
        f"{path}: {str(found.get(path, 'nothing'))[:400]}, not {str(expected.get(path, 'nothing'))[:400]}"
        for path in sorted(expected.keys() | found.keys())
        if expected.get(path) != found.get(path)
    ]
