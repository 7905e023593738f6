"""What DescribeConfigs answers. The expected rows are those of a real Apache Kafka 4.3.0."""

from __future__ import annotations

import pytest

from ottla.config.describe import (
    ConfigEntry,
    ConfigSource,
    Layers,
    Synonym,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from ottla.config.settings import Kind

DEFAULT, STATIC = ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER
CLUSTER, BROKER = ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.DYNAMIC_BROKER

STATIC_FILE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
ELR = {"min.insync.replicas": "1"}
LAYERS = Layers(STATIC_FILE, ELR, {})


def row(entry: ConfigEntry) -> tuple[Kind, str | None, ConfigSource, bool, tuple[Synonym, ...]]:
    return entry.config_type, entry.value, entry.source, entry.read_only, entry.synonyms


def one(entries: list[ConfigEntry]) -> ConfigEntry:
    (entry,) = entries
    return entry


BROKER_ROWS = {
    "node.id": (Kind.INT, "1", STATIC, True, [("node.id", "1", STATIC)]),
    "broker.id": (Kind.INT, "1", STATIC, True, [("broker.id", "1", STATIC), ("broker.id", "-1", DEFAULT)]),
    "process.roles": (
        Kind.LIST,
        "broker,controller",
        STATIC,
        True,
        [("process.roles", "broker,controller", STATIC)],
    ),
    "num.partitions": (
        Kind.INT,
        "1",
        STATIC,
        True,
        [("num.partitions", "1", STATIC), ("num.partitions", "1", DEFAULT)],
    ),
    "offsets.topic.replication.factor": (
        Kind.SHORT,
        "1",
        STATIC,
        True,
        [
            ("offsets.topic.replication.factor", "1", STATIC),
            ("offsets.topic.replication.factor", "3", DEFAULT),
        ],
    ),
    "min.insync.replicas": (
        Kind.INT,
        "1",
        CLUSTER,
        False,
        [("min.insync.replicas", "1", CLUSTER), ("min.insync.replicas", "1", DEFAULT)],
    ),
    "log.retention.ms": (Kind.LONG, None, DEFAULT, False, []),
    "log.retention.hours": (Kind.INT, "168", DEFAULT, True, [("log.retention.hours", "168", DEFAULT)]),
    "log.flush.interval.ms": (Kind.LONG, None, DEFAULT, False, []),
    "log.cleaner.io.max.bytes.per.second": (
        Kind.DOUBLE,
        "1.7976931348623157E308",
        DEFAULT,
        False,
        [("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", DEFAULT)],
    ),
    "log.cleanup.policy": (Kind.LIST, "delete", DEFAULT, False, [("log.cleanup.policy", "delete", DEFAULT)]),
    "ssl.cipher.suites": (Kind.LIST, "", DEFAULT, False, [("ssl.cipher.suites", "", DEFAULT)]),
    "ssl.engine.factory.class": (Kind.CLASS, None, DEFAULT, False, []),
    "ssl.keystore.password": (Kind.PASSWORD, None, DEFAULT, False, []),
    "auto.create.topics.enable": (
        Kind.BOOLEAN,
        "true",
        DEFAULT,
        True,
        [("auto.create.topics.enable", "true", DEFAULT)],
    ),
}

TOPIC_ROWS = {
    "cleanup.policy": (Kind.LIST, "delete", DEFAULT, [("log.cleanup.policy", "delete", DEFAULT)]),
    "flush.ms": (Kind.LONG, "9223372036854775807", DEFAULT, []),
    "follower.replication.throttled.replicas": (Kind.LIST, "", DEFAULT, []),
    "max.message.bytes": (Kind.INT, "1048588", DEFAULT, [("message.max.bytes", "1048588", DEFAULT)]),
    "min.cleanable.dirty.ratio": (
        Kind.DOUBLE,
        "0.5",
        DEFAULT,
        [("log.cleaner.min.cleanable.ratio", "0.5", DEFAULT)],
    ),
    "min.insync.replicas": (
        Kind.INT,
        "1",
        CLUSTER,
        [("min.insync.replicas", "1", CLUSTER), ("min.insync.replicas", "1", DEFAULT)],
    ),
    "remote.storage.enable": (Kind.BOOLEAN, "false", DEFAULT, []),
    "retention.ms": (Kind.LONG, "604800000", DEFAULT, []),
}


@pytest.mark.parametrize("name", BROKER_ROWS)
def test_a_broker_property_is_described_as_kafka_describes_it(name: str) -> None:
    kind, value, source, read_only, synonyms = BROKER_ROWS[name]

    entry = one(describe_broker(LAYERS, [name]))

    assert row(entry) == (kind, value, source, read_only, tuple(Synonym(*each) for each in synonyms))


@pytest.mark.parametrize("name", TOPIC_ROWS)
def test_a_topic_property_is_described_as_kafka_describes_it(name: str) -> None:
    kind, value, source, synonyms = TOPIC_ROWS[name]

    entry = one(describe_topic({}, LAYERS, [name]))

    assert row(entry) == (kind, value, source, False, tuple(Synonym(*each) for each in synonyms))


def test_a_broker_has_340_properties_and_our_own() -> None:
    names = [entry.name for entry in describe_broker(LAYERS)]

    assert len([name for name in names if not name.startswith("ottla.")]) == 340
    assert "ottla.durability" in names
    assert "producer.id.expiration.check.interval.ms" not in names, "internal properties are not described"


def test_an_internal_property_is_described_where_it_was_set() -> None:
    layers = Layers(STATIC_FILE, {"leader.replication.throttled.rate": "5"}, {})

    entry = one(describe_broker(layers, ["leader.replication.throttled.rate"]))

    assert (entry.value, entry.source, entry.config_type) == ("5", CLUSTER, Kind.LONG)


def test_every_layer_with_a_value_is_a_synonym_the_most_specific_first() -> None:
    layers = Layers({"num.io.threads": "9"}, {"num.io.threads": "10"}, {"num.io.threads": "11"})

    entry = one(describe_broker(layers, ["num.io.threads"]))

    assert (entry.value, entry.source) == ("11", BROKER)
    assert [(each.value, each.source) for each in entry.synonyms] == [
        ("11", BROKER),
        ("10", CLUSTER),
        ("9", STATIC),
        ("8", DEFAULT),
    ]


def test_a_secret_is_never_shown() -> None:
    layers = Layers(
        {"delegation.token.secret.key": "hunter2"}, {}, {"listener.name.x.ssl.key.password": "hunter2"}
    )

    for entry in describe_broker(layers, ["delegation.token.secret.key", "listener.name.x.ssl.key.password"]):
        assert entry.is_sensitive
        assert "hunter2" not in repr(entry)


def test_what_nobody_declared_is_taken_for_a_secret() -> None:
    entry = one(describe_broker(Layers({}, {}, {"my.plug.in": "value"}), ["my.plug.in"]))

    assert (entry.value, entry.is_sensitive, entry.config_type, entry.read_only) == (
        None,
        True,
        Kind.UNKNOWN,
        True,
    )
    assert entry.source is BROKER


def test_an_override_for_one_listener_has_the_type_of_its_property() -> None:
    layers = Layers({}, {}, {"listener.name.x.max.connections": "5"})

    entry = one(describe_broker(layers, ["listener.name.x.max.connections"]))

    assert (entry.value, entry.config_type) == ("5", Kind.INT)


def test_the_cluster_default_has_only_what_was_altered() -> None:
    entries = describe_broker_default(
        Layers(STATIC_FILE, {**ELR, "num.io.threads": "9"}, {"num.io.threads": "7"})
    )

    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("min.insync.replicas", "1", CLUSTER),
        ("num.io.threads", "9", CLUSTER),
    ]
    assert all([each.source for each in entry.synonyms] == [CLUSTER] for entry in entries)


def test_an_override_of_a_topic_goes_before_its_brokers_value() -> None:
    layers = Layers({"log.segment.bytes": "2097152"}, {}, {})

    entry = one(describe_topic({"segment.bytes": " 3145728"}, layers, ["segment.bytes"]))

    assert (entry.value, entry.source) == ("3145728", ConfigSource.TOPIC)
    assert entry.synonyms == (
        Synonym("segment.bytes", "3145728", ConfigSource.TOPIC),
        Synonym("log.segment.bytes", "2097152", STATIC),
        Synonym("log.segment.bytes", "1073741824", DEFAULT),
    )


def test_a_topic_shows_its_brokers_value_in_its_own_unit() -> None:
    entry = one(describe_topic({}, Layers({"log.retention.hours": "1"}, {}, {}), ["retention.ms"]))

    # As in Kafka, hours in the file are in force but not named as the source.
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", DEFAULT, ())


def test_a_list_keeps_its_order() -> None:
    entry = one(describe_topic({"cleanup.policy": "delete, compact"}, LAYERS, ["cleanup.policy"]))

    assert entry.value == "delete,compact"


def test_a_topic_has_33_properties() -> None:
    assert len(describe_topic({}, LAYERS)) == 33


def test_a_group_property_names_the_brokers() -> None:
    broker = Layers({"group.consumer.session.timeout.ms": "50000"}, {}, {})

    entry = one(
        describe_group({"consumer.session.timeout.ms": "46000"}, broker, ["consumer.session.timeout.ms"])
    )

    assert (entry.value, entry.source) == ("46000", ConfigSource.GROUP)
    assert entry.synonyms == (
        Synonym("consumer.session.timeout.ms", "46000", ConfigSource.GROUP),
        Synonym("group.consumer.session.timeout.ms", "50000", STATIC),
        Synonym("group.consumer.session.timeout.ms", "45000", DEFAULT),
    )


def test_a_group_property_the_broker_does_not_have_is_its_own_synonym() -> None:
    entry = one(describe_group({}, LAYERS, ["share.auto.offset.reset"]))

    assert entry.synonyms == (Synonym("share.auto.offset.reset", "latest", DEFAULT),)
    assert len(describe_group({}, LAYERS)) == 17


def test_a_subscription_shows_what_was_set() -> None:
    entries = {entry.name: entry for entry in describe_client_metrics({"interval.ms": "1000"})}

    assert entries["interval.ms"].source is ConfigSource.CLIENT_METRICS
    assert (entries["match"].value, entries["match"].source) == ("", DEFAULT)


def test_every_entry_is_documented() -> None:
    for entry in describe_broker(LAYERS) + describe_topic({}, LAYERS) + describe_group({}, LAYERS):
        assert entry.documentation, entry.name
