"""A broker process that a test owns: Ottla, or Apache Kafka when it is the referee."""

from __future__ import annotations

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


def new_node(referee: bool) -> Node:
    return KafkaNode() if referee else BrokerProcess()
