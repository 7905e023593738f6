"""What every command that writes configs shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.config.alter import differences
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataRecord
from ottla.metadata.state import ControllerState
from ottla.protocol.errors import (
    BrokerIdNotRegistered,
    UnknownTopicOrPartition,
)
from ottla.protocol.stored.metadata import ClearElrRecord, ConfigRecord

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


def config_records(
    resource_type: int,
    resource_name: str,
    current: Mapping[str, str],
    after: Mapping[str, str],
    named: Iterable[str],
) -> list[MetadataRecord]:
    """The records that lead from one set of overrides to another.

    What was `named` for a broker is written even if it does not change, because that makes it read its key
    stores again (KAFKA-14136).
    """
    changes = differences(current, after)
    if resource_type == BROKER_RESOURCE:
        changes |= {name: after.get(name) for name in named}
    return [
        ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
        for name, value in changes.items()
    ]


def clear_elr_records(state: ControllerState, configs: list[MetadataRecord]) -> list[MetadataRecord]:
    """Who is eligible to lead was worked out with the old min.insync.replicas, so a new one clears it."""
    if not state.image.elr_enabled:
        return []
    return [
        ClearElrRecord(topic_name=record.resource_name if record.resource_type == TOPIC_RESOURCE else "")
        for record in configs
        if record.name == MIN_INSYNC_REPLICAS
    ]


def check_exists(state: ControllerState, resource_type: int, resource_name: str) -> None:
    """Raise what Kafka answers when there is no such resource to configure."""
    if resource_type == TOPIC_RESOURCE:
        if resource_name not in state.image.topics:
            raise UnknownTopicOrPartition(f"The topic '{resource_name}' does not exist.")
    elif resource_type == BROKER_RESOURCE and resource_name:
        broker = int(resource_name)
        if broker not in state.image.brokers and broker not in state.settings.quorum_nodes:
            raise BrokerIdNotRegistered(f"No broker with id {broker} found.")
