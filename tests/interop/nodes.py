"""A broker process that a test owns: Ottla, or Apache Kafka when it is the referee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tools.broker_process import BrokerProcess
from tools.kafka.node import KafkaNode


class Node(Protocol):
    """What tests do to a broker. The port stays the same over restarts."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> object: ...
    def stop(self) -> object: ...
    def kill(self) -> None: ...
    def remove(self) -> None: ...


# What Kafka waits for by the minute, a test wants to see within seconds. Internal topics are small, since
# every partition is a directory to make and a log to load.
QUICK = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "100",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def new_node(referee: bool, properties: Mapping[str, str] | None = None) -> Node:
    chosen = dict(properties or {})
    if referee:
        return KafkaNode(properties=chosen)
    return BrokerProcess(settings=[f"{name}={value}" for name, value in chosen.items()])
