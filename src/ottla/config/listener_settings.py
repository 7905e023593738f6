"""The settings of one listener: those of the node, and what `listener.name.<listener>.` says otherwise.

Mechanisms of SASL have a level of their own below that, `listener.name.<listener>.<mechanism>.`, for the few
properties that differ between them.

Departing from Apache Kafka: `sasl.jaas.config` without listener and mechanism is taken as well, for each
mechanism whose login module it names; Kafka passes it over and looks for a file instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ottla.config.broker import BrokerSettings
from ottla.config.settings import ConfigError, declared, replace, unknown

PREFIX: Final = "listener.name."
PER_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def listener_settings(settings: BrokerSettings, properties: Mapping[str, str], name: str) -> BrokerSettings:
    """What holds on a listener. Raises ConfigError for an override that makes no sense."""
    known = declared(BrokerSettings)
    changes: dict[str, Any] = {}
    for base, full in overrides(properties, name):
        if base in known:
            changes[known[base].attribute] = _parsed(base, full, properties)
        elif _without_mechanism(base) is None:
            raise ConfigError(str(unknown(base, known)) + f" (in {full})")
    return replace(settings, **changes) if changes else settings


def mechanism_settings(
    settings: BrokerSettings, properties: Mapping[str, str], name: str, mechanism: str
) -> BrokerSettings:
    """What holds for one mechanism of SASL, given the settings of its listener."""
    known = declared(BrokerSettings)
    changes: dict[str, Any] = {}
    for base, full in overrides(properties, name):
        if base not in known and base.partition(".")[0] == mechanism.lower():
            plain = base.partition(".")[2]
            changes[known[plain].attribute] = _parsed(plain, full, properties)
    return replace(settings, **changes) if changes else settings


def overrides(properties: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
    """The properties of one listener: without their prefix, and in full."""
    prefix = f"{PREFIX}{name.lower()}."
    for full in properties:
        if full.startswith(prefix):
            yield full.removeprefix(prefix), full


def _without_mechanism(base: str) -> str | None:
    """The property in `<mechanism>.<property>`; None for what no mechanism has."""
    plain = base.partition(".")[2]
    return plain if plain in PER_MECHANISM else None


def _parsed(base: str, full: str, properties: Mapping[str, str]) -> Any:
    try:
        return declared(BrokerSettings)[base].parse(properties[full])
    except ConfigError as error:
        raise ConfigError(f"{error} (in {full})") from None
