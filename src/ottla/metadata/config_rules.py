"""What configs mean to the controller: it keeps their text, and asks here whether the text makes sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from ottla.config import alter
from ottla.config.alter import Change
from ottla.config.describe import ConfigEntry, Layers, describe_topic
from ottla.config.settings import ConfigError, InvalidChange
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from ottla.metadata.topic_names import check_topic_name
from ottla.protocol.errors import InvalidConfig, InvalidRequest, UnsupportedVersion

BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

Configs = Sequence[tuple[str, str | None]]


class ConfigRules:
    """The rules over a node's own property file. Breaking one raises the error that Kafka answers."""

    def __init__(self, static: Mapping[str, str], node_id: int) -> None:
        self._static = static
        self._node_id = node_id

    def layers(self, image: Image, broker: str = "") -> Layers:
        """The properties of a broker; of this node, where what all brokers share is looked at."""
        name = broker or str(self._node_id)
        return Layers(self._static, image.config(BROKER_RESOURCE, ""), image.config(BROKER_RESOURCE, name))

    def altered(
        self, image: Image, resource_type: int, resource_name: str, changes: Sequence[Change]
    ) -> dict[str, str]:
        """The overrides of a resource after IncrementalAlterConfigs."""
        _check_name(resource_type, resource_name)
        current = image.config(resource_type, resource_name)
        with _as_kafka_error():
            if resource_type == TOPIC_RESOURCE:
                return alter.alter_topic(current, changes, self.layers(image).settings())
            if resource_type == BROKER_RESOURCE:
                return alter.alter_broker(
                    changes,
                    self.layers(image, resource_name),
                    per_broker=bool(resource_name),
                    elr_enabled=image.elr_enabled,
                )
            if resource_type == CLIENT_METRICS_RESOURCE:
                return alter.alter_client_metrics(current, changes)
            return alter.alter_group(current, changes, self.layers(image).settings())

    def replaced(
        self, image: Image, resource_type: int, resource_name: str, configs: Configs
    ) -> dict[str, str]:
        """The overrides of a resource after AlterConfigs, which replaces them all."""
        _check_name(resource_type, resource_name)
        with _as_kafka_error():
            if resource_type == TOPIC_RESOURCE:
                current = image.config(resource_type, resource_name)
                return alter.replace_topic(current, configs, self.layers(image).settings())
            if resource_type == BROKER_RESOURCE:
                return alter.replace_broker(
                    configs,
                    self.layers(image, resource_name),
                    per_broker=bool(resource_name),
                    elr_enabled=image.elr_enabled,
                )
            if resource_type == CLIENT_METRICS_RESOURCE:
                return alter.replace_client_metrics(configs)
            return alter.replace_group(configs, self.layers(image).settings())

    def creation(self, image: Image, configs: Configs) -> dict[str, str]:
        """The overrides of a topic that is about to be created."""
        nulls = [name for name, value in configs if value is None]
        if nulls:
            raise InvalidConfig(f"Null value not supported for topic configs: {','.join(nulls)}")
        with _as_kafka_error():
            return alter.replace_topic({}, configs, self.layers(image).settings())

    def topic_entries(self, image: Image, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """What a topic with these overrides will go by, in the order of the names."""
        return sorted(describe_topic(overrides, self.layers(image)))


def _check_name(resource_type: int, name: str) -> None:
    if resource_type == TOPIC_RESOURCE:
        if not name:
            raise InvalidRequest("Default topic resources are not allowed.")
        check_topic_name(name)
    elif resource_type == BROKER_RESOURCE:
        if name and not name.removeprefix("-").isdecimal():
            raise InvalidRequest("Unable to parse broker name as a base 10 number.")
        if name.startswith("-"):
            raise InvalidRequest("Invalid negative broker ID.")
    elif resource_type == GROUP_RESOURCE:
        if not name:
            raise InvalidRequest("Default group resources are not allowed.")
    elif resource_type == CLIENT_METRICS_RESOURCE:
        if not name:
            raise InvalidRequest("Subscription name can't be empty")
    elif resource_type == BROKER_LOGGER_RESOURCE:
        raise InvalidRequest("Loggers are a broker's own: the controller does not keep their levels.")
    else:
        raise UnsupportedVersion(f"Unknown resource type {resource_type}.")


@contextmanager
def _as_kafka_error() -> Iterator[None]:
    try:
        yield
    except InvalidChange as error:
        raise InvalidRequest(str(error)) from None
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None
