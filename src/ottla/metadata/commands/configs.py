"""What every command that writes configs shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataRecord
from ottla.metadata.state import ControllerState
from ottla.protocol.errors import (
    BrokerIdNotRegistered,
    InvalidConfig,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from ottla.protocol.stored.metadata import ClearElrRecord, ConfigRecord

BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
RESOURCES: Final = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
MAX_VALUE_LENGTH: Final = 2**15 - 1  # a longer one could not be told to an old client


def config_records(
    state: ControllerState,
    resource_type: int,
    resource_name: str,
    changes: Mapping[str, str | None],
    current: Mapping[str, str],
) -> list[MetadataRecord]:
    """The records that set or, with None, delete configs; raises `InvalidConfig` unless all is valid after.

    A broker's configs are written even if they do not change, because that makes it read its key stores
    again (KAFKA-14136).
    """
    after = dict(current)
    for name, value in changes.items():
        _check_min_isr(state, resource_type, resource_name, name, value)
        if value is None:
            after.pop(name, None)
        elif len(value) > MAX_VALUE_LENGTH:
            raise InvalidConfig(
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes."
            )
        else:
            after[name] = value
    state.configs.check(resource_type, resource_name, after)
    return [
        ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
        for name, value in changes.items()
        if current.get(name) != value or resource_type == BROKER_RESOURCE
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
    elif resource_type in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE) and resource_name:
        try:
            broker = int(resource_name)
        except ValueError:
            raise InvalidRequest(f"Invalid broker name {resource_name}") from None
        if broker not in state.image.brokers and broker not in state.settings.quorum_nodes:
            raise BrokerIdNotRegistered(f"No broker with id {broker} found.")


def _check_min_isr(
    state: ControllerState, resource_type: int, resource_name: str, name: str, value: str | None
) -> None:
    """With eligible leader replicas every broker has to agree on min.insync.replicas."""
    if name != MIN_INSYNC_REPLICAS or resource_type != BROKER_RESOURCE or not state.image.elr_enabled:
        return
    if resource_name:
        raise InvalidConfig("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    if value is None:
        raise InvalidConfig("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
