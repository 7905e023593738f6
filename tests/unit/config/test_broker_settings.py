"""The settings of a broker: Kafka's names and defaults, units, layers, and checks between properties."""

from __future__ import annotations

import pytest

from ottla.config.broker import (
    AREAS,
    BrokerSettings,
    broker_settings,
    connections_per_ip_overrides,
    development_defaults,
    effective,
)
from ottla.config.settings import LONG_MAX, ConfigError, declared
from ottla.config.topic import topic_settings


def test_every_property_of_kafka_is_there() -> None:
    described = [
        name
        for name, each in declared(BrokerSettings).items()
        if not each.internal and not name.startswith("ottla.")
    ]

    assert len(described) == 340


def test_no_property_is_declared_in_two_areas() -> None:
    names = [name for area in AREAS for name in declared(area)]

    assert len(names) == len(set(names)) == len(declared(BrokerSettings))


def test_every_default_passes_its_own_check() -> None:
    for name, each in declared(BrokerSettings).items():
        text = each.default_text
        # Where Kafka has no default, an empty list stands for none given.
        if text is not None and not (text == "" and not each.may_be_empty):
            assert each.parse(text) == each.default, name


def test_every_property_is_described_in_a_sentence() -> None:
    for name, each in declared(BrokerSettings).items():
        assert each.about.endswith("."), name


def test_some_defaults_of_kafka() -> None:
    broker = BrokerSettings()

    assert broker.log_segment_bytes == 1_073_741_824
    assert broker.message_max_bytes == 1_048_588
    assert broker.offsets_topic_replication_factor == 3
    assert broker.log_flush_interval_messages == LONG_MAX
    assert broker.log_dirs is None
    assert broker.data_dirs == ("/tmp/kafka-logs",)
    assert broker.ottla_durability == "durable"


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(given: dict[str, str], retention_ms: int) -> None:
    broker = broker_settings(given)

    assert broker.retention_ms == retention_ms
    assert topic_settings({}, broker).retention_ms == retention_ms


def test_the_finest_unit_of_rolling_wins() -> None:
    hours = broker_settings({"log.roll.hours": "2", "log.roll.jitter.hours": "1"})
    both = broker_settings({"log.roll.hours": "2", "log.roll.ms": "9", "log.roll.jitter.ms": "4"})

    assert (hours.roll_ms, hours.roll_jitter_ms) == (7_200_000, 3_600_000)
    assert (both.roll_ms, both.roll_jitter_ms) == (9, 4)


def test_log_dirs_goes_before_log_dir() -> None:
    broker = broker_settings({"log.dir": "/one", "log.dirs": "/two, /three"})

    assert broker.data_dirs == ("/two", "/three")
    assert broker.metadata_dir == "/two"
    assert broker_settings({"log.dir": "/one", "metadata.log.dir": "/m"}).metadata_dir == "/m"


def test_broker_id_is_node_id() -> None:
    assert broker_settings({"broker.id": "4"}).node_id == 4
    assert broker_settings({"broker.id": "4", "node.id": "4"}).node_id == 4
    with pytest.raises(ConfigError, match="same value"):
        broker_settings({"broker.id": "4", "node.id": "5"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        ({"log.dirs": ""}, "Configuration 'log.dirs' must not be empty. Valid values include"),
        ({"log.cleaner.dedupe.buffer.size": "1000"}, "must be at least 1MB per cleaner thread"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms should always be at least"),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes must be larger or equal"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
        ({"max.connections.per.ip.overrides": "host"}, "host is not in the form host:count"),
        ({"connections.max.idle.ms": "50"}, "connection.failed.authentication.delay.ms=100 should always"),
        ({"group.consumer.session.timeout.ms": "5"}, "must be greater than or equal to group.consumer.min."),
        (
            {"group.share.delivery.count.limit": "10", "group.share.max.delivery.count.limit": "6"},
            "less than",
        ),
        ({"group.streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"group.coordinator.rebalance.protocols": "consumer"}, "Disabling the 'classic' protocol"),
        ({"offsets.topic.compression.codec": "9"}, "Unknown compression type id: 9"),
        ({"process.roles": "gateway"}, "String must be one of: broker, controller"),
        ({"cordoned.log.dirs": "/elsewhere"}, "Missing entries : /elsewhere"),
        ({"controller.quorum.voters": "me"}, "{id}@{host}:{port}"),
        ({"controller.quorum.bootstrap.servers": "localhost"}, "{host}:{port}"),
        ({"compression.gzip.level": "0"}, "Value must be between 1 and 9 or equal to -1"),
        ({"ottla.durability": "maybe"}, "String must be one of: durable, kafka"),
    ],
)
def test_what_no_broker_could_run_with_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        broker_settings(given)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_removed_property_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper.connect no longer exists: there is no ZooKeeper"):
        broker_settings({"zookeeper.connect": "localhost:2181"})
    with pytest.raises(ConfigError, match=r"log.message.format.version no longer exists"):
        broker_settings({"log.message.format.version": "2.8"})


def test_properties_of_plug_ins_and_single_listeners_pass() -> None:
    assert broker_settings({"listener.name.internal.ssl.keystore.location": "/k", "rsm.config.dir": "/r"})


def test_overrides_per_address_are_parsed() -> None:
    broker = broker_settings({"max.connections.per.ip.overrides": "10.0.0.1:5, ::1:7"})

    assert connections_per_ip_overrides(broker) == {"10.0.0.1": 5, "::1": 7}


def test_the_broker_goes_before_the_cluster_and_the_cluster_before_the_file() -> None:
    static = {"num.io.threads": "4", "background.threads": "4", "log.segment.bytes": "2097152"}
    for_cluster = {"num.io.threads": "5", "background.threads": "5"}
    for_broker = {"num.io.threads": "6"}

    broker = effective(static, for_cluster, for_broker)

    assert (broker.num_io_threads, broker.background_threads, broker.log_segment_bytes) == (6, 5, 2_097_152)


def test_an_altered_value_in_milliseconds_beats_hours_in_the_file() -> None:
    assert effective({"log.retention.hours": "1"}, {"log.retention.ms": "7"}, {}).retention_ms == 7


def test_an_altered_value_nobody_can_use_is_left_out() -> None:
    for_cluster = {"num.io.threads": "many", "node.id": "9", "no.such.thing": "1", "background.threads": "5"}

    broker = effective({}, for_cluster, {})

    assert (broker.num_io_threads, broker.node_id, broker.background_threads) == (8, 1, 5)


def test_altered_values_at_odds_with_the_file_do_not_stop_a_start() -> None:
    assert effective({}, {"log.retention.ms": "5"}, {"log.roll.ms": "0"}).retention_ms == 5
    assert effective({}, {"log.roll.ms": "0"}, {}).roll_ms == 604_800_000


def test_a_development_node_is_alone_and_on_this_machine() -> None:
    broker = broker_settings(development_defaults())

    assert broker.listeners == ("PLAINTEXT://127.0.0.1:9092",)
    assert broker.offsets_topic_replication_factor == 1
    assert broker.transaction_state_log_min_isr == 1


def test_a_group_of_a_development_node_waits_a_moment_for_more_members() -> None:
    assert broker_settings(development_defaults()).group_initial_rebalance_delay_ms == 100
    given = {"group.initial.rebalance.delay.ms": "500"}
    assert "group.initial.rebalance.delay.ms" not in development_defaults(given)
    assert broker_settings({}).group_initial_rebalance_delay_ms == 3_000


def test_development_defaults_leave_what_is_given() -> None:
    given = {
        "broker.id": "7",
        "log.dir": "/d",
        "listeners": "PLAINTEXT://:1",
        "process.roles": "controller,broker",
    }

    defaults = development_defaults(given)

    assert not {"node.id", "log.dirs", "listeners", "process.roles"} & defaults.keys()
    assert broker_settings({**defaults, **given}).node_id == 7


@pytest.mark.parametrize(
    "given",
    [
        {"process.roles": "broker"},
        {"controller.quorum.voters": "1@a:1,2@b:1,3@c:1"},
        {"controller.quorum.bootstrap.servers": "127.0.0.1:1,b:1,c:1"},
    ],
)
def test_a_node_of_a_cluster_of_machines_keeps_kafkas_replication_factors(given: dict[str, str]) -> None:
    defaults = development_defaults(given)
    assert "offsets.topic.replication.factor" not in defaults
    assert "group.initial.rebalance.delay.ms" not in defaults
    assert "broker.session.timeout.ms" not in defaults


@pytest.mark.parametrize(("nodes", "replicas", "floor"), [(2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_a_cluster_on_this_machine_has_replicas_and_misses_a_node_soon(
    nodes: int, replicas: int, floor: int
) -> None:
    voters = ",".join(f"{number}@127.0.0.1:{9000 + number}" for number in range(1, nodes + 1))
    broker = broker_settings(development_defaults({"controller.quorum.voters": voters}))

    assert broker.offsets_topic_replication_factor == replicas
    assert broker.default_replication_factor == replicas
    assert broker.transaction_state_log_min_isr == floor
    assert broker.broker_session_timeout_ms <= 1_000
    given = {"controller.quorum.voters": voters, "process.roles": "broker"}
    assert "offsets.topic.replication.factor" not in development_defaults(given)
