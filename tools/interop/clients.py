"""The clients: how each is started, and which features it has no call for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import NamedTuple

from tools.interop.features import FEATURES
from tools.interop.toolchains import (
    cargo_program,
    debian_library,
    debian_program,
    go_program,
    java_program,
    node_program,
    python_program,
)
from tools.kafka.distribution import VERSION as KAFKA_VERSION


class Client(NamedTuple):
    name: str
    language: str
    version: str
    command: Callable[[], list[str]]
    cannot: Mapping[str, str]
    """Feature to the reason why this client has no cell for it."""


NO_CONSUMER_PROTOCOL = "no consumer protocol (KIP-848)"
NO_SHARE_GROUPS = "no share groups (KIP-932)"
NO_ACLS = "no administration of access rules"
BEFORE_STATIC_MEMBERS = {
    "group-consumer": NO_CONSUMER_PROTOCOL,
    "group-share": NO_SHARE_GROUPS,
    "static": "no static members before 2.3",
    "admin-configs": "no incremental changes of configurations before 2.3",
    "admin-offsets": "no administration of offsets before 2.5",
}

CLIENTS = {
    client.name: client
    for client in (
        Client(
            "confluent-kafka",
            "Python (librdkafka)",
            version("confluent-kafka"),
            lambda: python_program("confluent-kafka"),
            {},
        ),
        Client(
            "aiokafka",
            "Python",
            version("aiokafka"),
            lambda: python_program("aiokafka"),
            {
                "group-consumer": NO_CONSUMER_PROTOCOL,
                "group-share": NO_SHARE_GROUPS,
                "admin-acls": NO_ACLS,
            },
        ),
        Client(
            "kafka-python",
            "Python",
            version("kafka-python"),
            lambda: python_program("kafka-python", "python-snappy"),
            {"group-consumer": NO_CONSUMER_PROTOCOL, "group-share": NO_SHARE_GROUPS},
        ),
        Client(
            f"kafka-clients {KAFKA_VERSION}",
            "Java",
            KAFKA_VERSION,
            lambda: java_program(KAFKA_VERSION),
            {},
        ),
        Client(
            "kafka-clients 3.9",
            "Java",
            "3.9.1",
            lambda: java_program("3.9.1", leave_out=("Share",)),
            {
                "group-share": NO_SHARE_GROUPS,
            },
        ),
        Client(
            "kafka-clients 2.1",
            "Java",
            "2.1.1",
            lambda: java_program("2.1.1", leave_out=("Share", "LaterAdministration")),
            BEFORE_STATIC_MEMBERS,
        ),
        Client(
            "kafka-clients 2.0",
            "Java",
            "2.0.1",
            lambda: java_program("2.0.1", leave_out=("Share", "LaterAdministration")),
            {"zstd": "no zstd before 2.1"} | BEFORE_STATIC_MEMBERS,
        ),
        Client(
            "kafkajs",
            "JavaScript",
            "2.2.4",
            lambda: node_program("kafkajs"),
            {
                "group-consumer": NO_CONSUMER_PROTOCOL,
                "group-share": NO_SHARE_GROUPS,
                "static": "no static members",
            },
        ),
        Client(
            "@confluentinc/kafka-javascript",
            "JavaScript (librdkafka)",
            "1.10.1",
            # Where there is no finished binary to be had, it is built with the libraries that are installed.
            lambda: node_program(
                "confluent-kafka-javascript",
                {"CKJS_LINKING": "dynamic", **debian_library("zstd.h", "libzstd-dev", "libzstd1")},
            ),
            {
                "group-share": NO_SHARE_GROUPS,
                "admin-configs": "no administration of configurations",
                "admin-partitions": "cannot add partitions by this API",
                "admin-acls": NO_ACLS,
            },
        ),
        Client(
            "@platformatic/kafka",
            "JavaScript",
            "1.35.0",
            lambda: node_program("platformatic-kafka"),
            {
                "group-share": NO_SHARE_GROUPS,
                "old-versions": "knows no ApiVersions request before that of Kafka 2.4",
            },
        ),
        Client("franz-go", "Go", "1.22.2", lambda: go_program("franz-go"), {}),
        Client(
            "sarama",
            "Go",
            "1.61.1",
            lambda: go_program("sarama"),
            {"group-consumer": NO_CONSUMER_PROTOCOL, "group-share": NO_SHARE_GROUPS},
        ),
        Client(
            "rdkafka",
            "Rust (librdkafka)",
            "0.39.0",
            lambda: cargo_program("rdkafka"),
            {"group-share": NO_SHARE_GROUPS, "admin-acls": NO_ACLS},
        ),
        Client(
            "kcat",
            "C (librdkafka)",
            "1.7.1",
            lambda: debian_program("kcat", "kcat"),
            {
                "timestamps": "cannot set timestamps",
                "transactions": "cannot abort a transaction or send offsets in one",
                "group-consumer": NO_CONSUMER_PROTOCOL,
                "group-share": NO_SHARE_GROUPS,
            }
            | dict.fromkeys((name for name in FEATURES if name.startswith("admin-")), "no administration"),
        ),
    )
}


def unknown_features() -> set[str]:
    return {feature for client in CLIENTS.values() for feature in client.cannot} - FEATURES.keys()
