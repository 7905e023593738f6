"""The two brokers that every cell runs against: Ottla, and Apache Kafka as referee."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tools.broker_process import BrokerProcess, free_port
from tools.interop.wire import Wire
from tools.kafka.distribution import KafkaUnavailable
from tools.kafka.node import KafkaNode

# Few partitions of internal topics, since each is a directory to make; and rebalances within a second. Access
# rules are kept only where there is an authorizer: clients do not say who they are, and may do everything.
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
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
    """The way to each of them."""

    ottla: Wire
    kafka: Wire | None
    why_not: str = ""


@contextmanager
def brokers(referee: bool) -> Iterator[Brokers]:
    with ExitStack() as stack:
        ottla = stack.enter_context(ottla_behind_a_wire())
        if not referee:
            yield Brokers(ottla, None, "it was not asked for")
            return
        try:
            kafka = stack.enter_context(kafka_behind_a_wire())
        except KafkaUnavailable as error:
            yield Brokers(ottla, None, str(error))
        else:
            yield Brokers(ottla, kafka)


@contextmanager
def ottla_behind_a_wire() -> Iterator[Wire]:
    port = free_port()
    with Wire(port) as wire:
        own = PROPERTIES | {"advertised.listeners": f"PLAINTEXT://{wire.bootstrap}"}
        settings = [f"{name}={value}" for name, value in own.items()]
        with BrokerProcess(port=port, settings=settings):
            yield wire


@contextmanager
def kafka_behind_a_wire() -> Iterator[Wire]:
    port, controller_port = free_port(), free_port()
    with Wire(port) as wire:
        listeners = f"PLAINTEXT://{wire.bootstrap},CONTROLLER://127.0.0.1:{controller_port}"
        own = PROPERTIES | {"advertised.listeners": listeners}
        with KafkaNode(port=port, controller_port=controller_port, properties=own):
            yield wire
