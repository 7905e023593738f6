"""The two brokers that every cell runs against: Ottla, and Apache Kafka as referee."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tools.broker_process import BrokerProcess
from tools.kafka.distribution import KafkaUnavailable
from tools.kafka.node import KafkaNode

# Few partitions of internal topics, since each is a directory to make; and rebalances within a second.
PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
}


class Brokers(NamedTuple):
    ottla: str
    kafka: str | None
    why_not: str = ""


@contextmanager
def brokers(referee: bool) -> Iterator[Brokers]:
    with ExitStack() as stack:
        settings = [f"{name}={value}" for name, value in PROPERTIES.items()]
        ottla = stack.enter_context(BrokerProcess(settings=settings))
        if not referee:
            yield Brokers(ottla.bootstrap, None, "it was not asked for")
            return
        try:
            kafka = stack.enter_context(KafkaNode(properties=PROPERTIES))
        except KafkaUnavailable as error:
            yield Brokers(ottla.bootstrap, None, str(error))
        else:
            yield Brokers(ottla.bootstrap, kafka.bootstrap)
