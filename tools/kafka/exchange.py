"""One data directory under Ottla and Apache Kafka in turn, with clients that live through it.

Each broker has to find what the one before it knew when it was stopped (or killed): records, topics,
configurations, group offsets, transactions, producer state. Then it writes more, for the next one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from kafka.errors import KafkaError
from tools.broker_process import BrokerProcess, free_port
from tools.kafka.carried import Carried
from tools.kafka.dump import dump_directory
from tools.kafka.node import KafkaNode, complaints
from tools.kafka.run import run_tool
from tools.kafka.state import KINDS, Known, about, observe, settled
from tools.kafka.workload import (
    Contents,
    append_everywhere,
    differences,
    fill,
    partitions_of,
    read_everything,
)

SECONDS = 60.0
OTTLA, KAFKA = "Ottla", "Apache Kafka"
PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}

Report = Callable[[str, list[str]], None]


class Directory:
    """A data directory, and the port on which whoever serves it listens."""

    def __init__(self, home: Path) -> None:
        self.path = home / "data"
        self.port, self.controller_port = free_port(), free_port()
        # Ottla lists one port for everything; Apache Kafka has a second one for its controller.
        self.node_id = 1

    def broker(self, name: str) -> BrokerProcess | KafkaNode:
        if name == OTTLA:
            settings = [f"{key}={value}" for key, value in PROPERTIES.items()]
            return BrokerProcess(self.path, port=self.port, settings=settings)
        node = KafkaNode(
            self.path,
            node_id=self.node_id,
            port=self.port,
            controller_port=self.controller_port,
            properties=PROPERTIES,
        )
        node.fresh = not (self.path / "meta.properties").exists()
        return node


class Exchange:
    """What the broker before knew, and the clients that are carried on."""

    def __init__(self, home: Path) -> None:
        self.directory = Directory(home)
        self.known: Known | None = None
        self.contents: Contents = {}
        self.carried: Carried | None = None
        self.kafka_was_here = False

    def turn(self, name: str, word: str, *, kill: bool) -> list[str]:
        """One broker finds what there is, and writes more."""
        broker = self.directory.broker(name)
        try:
            broker.start()
            problems: list[str] = []
            if self.known is not None:
                problems += settled(broker.bootstrap, self.known)
                problems += differences(self.contents, read_everything(broker.bootstrap))
            if self.carried is None:
                self.carried = Carried(broker.bootstrap)
            problems += self.carried.go_on(word)
            problems += write_more(broker.bootstrap, word)
            if name == KAFKA:
                problems += only_kafka(broker.bootstrap, first=not self.kafka_was_here)
                problems += complaints(broker.log())
                self.kafka_was_here = True
            self.known, self.contents = observe(broker.bootstrap), read_everything(broker.bootstrap)
            # Two brokers that both say nothing would agree on it.
            problems += [f"nothing is known of {kind}" for kind in KINDS if not about(self.known, kind)]
            if not kill:
                broker.stop()
            return problems
        finally:
            broker.kill()
            broker.remove()

    def close(self) -> None:
        if self.carried is not None:
            with suppress(Exception):
                self.carried.close()


def exchange(turns: Sequence[str], report: Report, *, kill: bool = False) -> None:
    """Reports one line for every broker in turn, and ends early if one does not come up."""
    home = Path(tempfile.mkdtemp(prefix="ottla-exchange-"))
    chain = Exchange(home)
    try:
        for number, name in enumerate(turns):
            before = f" after {turns[number - 1]}{' was killed' if kill else ''}" if number else " on nothing"
            try:
                report(name + before, chain.turn(name, f"turn-{number}", kill=kill))
            except (RuntimeError, TimeoutError, KafkaException, KafkaError) as error:
                report(name + before, str(error).splitlines()[-20:] or [repr(error)])
                return
            if not kill:
                found = dump_directory(chain.directory.path)
                report(f"DumpLogSegments, all files and decoders, after {name}", found)
    finally:
        chain.close()
        shutil.rmtree(home, ignore_errors=True)


def every_exchange(report: Report) -> None:
    """Both directions with brokers that are stopped, then both with brokers that are killed."""

    def told(title: str, problems: list[str]) -> None:
        print(f"{'FAILED' if problems else 'ok':>6}  {title}", flush=True)
        for line in problems[:40]:
            print(f"        {line}")
        report(title, problems)

    exchange((OTTLA, KAFKA, OTTLA), told)
    exchange((KAFKA, OTTLA, KAFKA), told)
    exchange((OTTLA, KAFKA, OTTLA, KAFKA), told, kill=True)


def write_more(bootstrap: str, word: str) -> list[str]:
    """Topics made, grown, configured, trimmed and deleted; a broker setting; records everywhere."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [f"{word}-plain", f"{word}-configured", f"{word}-deleted"]
    settings = {"retention.ms": "123456789", "segment.bytes": "1048576", "cleanup.policy": "compact,delete"}
    wanted = [
        NewTopic(names[0], num_partitions=1),
        NewTopic(names[1], num_partitions=2, config=settings),
        NewTopic(names[2], num_partitions=1),
    ]
    for future in admin.create_topics(wanted).values():
        future.result(SECONDS)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        fill(bootstrap, names[0], 200, compression=codec)
    fill(bootstrap, names[1], 3000, size=500)
    admin.create_partitions([NewPartitions(names[0], 3)])[names[0]].result(SECONDS)
    admin.delete_topics([names[2]])[names[2]].result(SECONDS)
    alter(admin, ResourceType.TOPIC, names[1], "max.message.bytes", "777777")
    alter(admin, ResourceType.TOPIC, names[1], "retention.ms", None)
    node = str(next(iter(admin.list_topics(timeout=SECONDS).brokers)))
    alter(admin, ResourceType.BROKER, node, "log.cleaner.backoff.ms", str(15_000 + len(word)))
    append_everywhere(bootstrap, word.encode())
    return [f"{names[2]} is still there"] if names[2] in partitions_of(bootstrap) else []


def alter(admin: AdminClient, kind: ResourceType, name: str, setting: str, value: str | None) -> None:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(setting, value, incremental_operation=operation)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def only_kafka(bootstrap: str, *, first: bool) -> list[str]:
    """What Ottla has no request for has to be there when Apache Kafka comes back."""
    server = ("--bootstrap-server", bootstrap)
    client = ("--entity-type", "clients", "--entity-name", "somebody")
    user = ("--entity-type", "users", "--entity-name", "somebody")
    if first:
        run_tool("configs", *server, "--alter", "--add-config", "producer_byte_rate=12345678", *client)
        scram = "SCRAM-SHA-256=[iterations=4096,password=secret]"
        run_tool("configs", *server, "--alter", "--add-config", scram, *user)
    problems = []
    if "producer_byte_rate=1.2345678E7" not in run_tool("configs", *server, "--describe", *client):
        problems.append("the client quota is gone")
    if "iterations=4096" not in run_tool("configs", *server, "--describe", *user):
        problems.append("the SCRAM credential is gone")
    return problems
