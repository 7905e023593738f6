"""What DescribeConfigs answers: every property with its value, and where the value comes from.

A value is looked up in layers, the most specific first: the topic or group, what was altered
for this broker, what was altered for the cluster, the property file, the default. The layers
that have a value are the synonyms of the answer, and the first of them is its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ottla.config.broker import BrokerSettings, effective
from ottla.config.client_metrics import ClientMetricsSettings
from ottla.config.group import GroupSettings
from ottla.config.listener_settings import PER_MECHANISM
from ottla.config.settings import ConfigError, Kind, Setting, declared, text_of
from ottla.config.topic import TopicSettings, topic_settings


class ConfigSource(IntEnum):
    """Where a value comes from, with the code on the wire."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """One layer's value of a property, under the name it has there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One property as DescribeConfigs answers it. The value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    is_sensitive: bool
    config_type: Kind
    synonyms: tuple[Synonym, ...]
    documentation: str


class Layers(NamedTuple):
    """The properties of a broker as text, in the layers they were given in."""

    static: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    dynamic_broker: Mapping[str, str]

    def settings(self) -> BrokerSettings:
        """What they amount to."""
        return _settings(*(frozenset(layer.items()) for layer in self))


@lru_cache(maxsize=4)
def _settings(*layers: frozenset[tuple[str, str]]) -> BrokerSettings:
    # Remembered, since a tool that lists topics asks once for every one of them.
    static, dynamic_default, dynamic_broker = map(dict, layers)
    return effective(static, dynamic_default, dynamic_broker)


def describe_broker(layers: Layers, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The properties of a broker; `names` limits the answer, None or empty for all."""
    layers = layers._replace(static=_with_both_ids(layers.static))
    known = declared(BrokerSettings)
    described = {name: None for name, each in known.items() if not each.internal}
    for layer in layers:
        described.update(dict.fromkeys(layer))
    broker = layers.settings()
    entries = []
    for name in _chosen(described, names):
        each = broker_setting(name)
        synonyms = _broker_synonyms(name, each, layers)
        if name in known:
            value = text_of(known[name].kind, getattr(broker, known[name].attribute))
        else:
            value = synonyms[0].value if synonyms else None
        entries.append(_broker_entry(name, value, each, synonyms))
    return entries


def describe_broker_default(layers: Layers, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """What was altered for the whole cluster: the broker resource with the empty name."""
    entries = []
    for name in _chosen(layers.dynamic_default, names):
        each = broker_setting(name)
        only = Layers({}, layers.dynamic_default, {})
        synonyms = tuple(
            synonym
            for synonym in _broker_synonyms(name, each, only)
            if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        )
        entries.append(_broker_entry(name, layers.dynamic_default[name], each, synonyms))
    return entries


def describe_topic(
    overrides: Mapping[str, str], layers: Layers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The properties of a topic with these overrides."""
    known = declared(TopicSettings)
    inherited = topic_settings({}, layers.settings())
    entries = []
    shown = {name: None for name, each in known.items() if not each.internal or name in overrides}
    for name in _chosen(shown, names):
        each = known[name]
        if name in overrides:
            value = _shown(each, overrides[name])
            synonyms = [Synonym(name, value, ConfigSource.TOPIC)]
        else:
            value = text_of(each.kind, getattr(inherited, each.attribute))
            synonyms = []
        for synonym in each.synonyms:
            synonyms += _broker_synonyms(synonym, broker_setting(synonym), layers)
        entries.append(_entry(each, value, tuple(synonyms)))
    return entries


def describe_group(
    overrides: Mapping[str, str], layers: Layers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The properties of a group with these overrides."""
    known = declared(GroupSettings)
    broker = layers.settings()
    entries = []
    for name in _chosen(known, names):
        each = known[name]
        synonyms: list[Synonym] = []
        value = each.default_text
        for synonym in each.synonyms:
            inherited = declared(BrokerSettings)[synonym]
            value = text_of(inherited.kind, getattr(broker, inherited.attribute))
            synonyms += _broker_synonyms(synonym, inherited, layers)
        if not each.synonyms:
            synonyms.append(Synonym(name, value, ConfigSource.DEFAULT))
        if name in overrides:
            value = _shown(each, overrides[name])
            synonyms.insert(0, Synonym(name, value, ConfigSource.GROUP))
        entries.append(_entry(each, value, tuple(synonyms)))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The properties of a client metrics subscription."""
    known = declared(ClientMetricsSettings)
    entries = []
    for name in _chosen(known, names):
        each = known[name]
        synonyms = [Synonym(name, each.default_text, ConfigSource.DEFAULT)]
        if name in overrides:
            synonyms.insert(0, Synonym(name, _shown(each, overrides[name]), ConfigSource.CLIENT_METRICS))
        entries.append(_entry(each, synonyms[0].value, tuple(synonyms)))
    return entries


def broker_setting(name: str) -> Setting | None:
    """The declaration behind a broker property; also for `listener.name.<listener>.<property>`."""
    known = declared(BrokerSettings)
    if name in known:
        return known[name]
    base = listener_property(name)
    return known.get(base) if base else None


def listener_property(name: str) -> str:
    """The property that `listener.name.<listener>.[<mechanism>.]<property>` overrides, or nothing."""
    if not name.startswith("listener.name."):
        return ""
    _, _, base = name.removeprefix("listener.name.").partition(".")
    for per_mechanism in PER_MECHANISM:
        if base.endswith(per_mechanism):
            return per_mechanism
    return base


def _chosen(available: Collection[str], names: Collection[str] | None) -> Iterator[str]:
    return (name for name in available if not names or name in names)


def _shown(each: Setting, text: str) -> str | None:
    try:
        return each.normal(text)
    except ConfigError:
        return text


def _with_both_ids(static: Mapping[str, str]) -> Mapping[str, str]:
    """node.id and broker.id are one property; whoever gives one gives both."""
    both = dict(static)
    for one, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if one in static:
            both.setdefault(other, static[one])
    return both


def _broker_synonyms(name: str, each: Setting | None, layers: Layers) -> tuple[Synonym, ...]:
    names = (each.synonyms or (each.name,)) if each is not None else (name,)
    if name not in names:
        names = (name, *names)
    is_sensitive = each is None or each.sensitive
    found: list[Synonym] = []
    for layer, source in (
        (layers.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (layers.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (layers.static, ConfigSource.STATIC_BROKER),
    ):
        found += [
            Synonym(synonym, None if is_sensitive else layer[synonym], source)
            for synonym in names
            if synonym in layer
        ]
    for synonym in names:
        default = _default(synonym, layers)
        if default is not None:
            found.append(Synonym(synonym, None if is_sensitive else default, ConfigSource.DEFAULT))
    # Apache Kafka starts the list at the first mention of the name that was asked for. So
    # log.retention.ms says nothing of log.retention.hours as long as it has no value itself.
    for position, synonym_found in enumerate(found):
        if synonym_found.name == name:
            return tuple(found[position:])
    return ()


def _default(name: str, layers: Layers) -> str | None:
    each = declared(BrokerSettings).get(name)
    if each is None or (each.required_by_kafka and name in layers.static):
        return None
    return each.default_text


def _broker_entry(
    name: str, value: str | None, each: Setting | None, synonyms: tuple[Synonym, ...]
) -> ConfigEntry:
    # What nobody declared may be anything, so it is taken for a secret, as in Apache Kafka.
    is_sensitive = each is None or each.sensitive
    return ConfigEntry(
        name=name,
        value=None if is_sensitive else value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=each is None or each.name != name or each.live == "no",
        is_sensitive=is_sensitive,
        config_type=Kind.UNKNOWN if each is None else each.kind,
        synonyms=synonyms,
        documentation="" if each is None else each.about,
    )


def _entry(each: Setting, value: str | None, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    return ConfigEntry(
        name=each.name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=False,
        is_sensitive=False,
        config_type=each.kind,
        synonyms=synonyms,
        documentation=each.about,
    )
