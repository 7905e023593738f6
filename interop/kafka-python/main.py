"""kafka-python. See ../README.md for what each feature asks."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)

BOOTSTRAP, FEATURE, NAME = sys.argv[1:4]
PARTITIONS = range(4)
PATIENCE = 60.0
FIRST_TIME = 1_600_000_000_000


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def record(message: Any) -> dict[str, Any]:
    return {
        "p": message.partition,
        "o": message.offset,
        "k": text(message.key),
        "v": text(message.value),
        "h": [[name, text(value)] for name, value in message.headers or ()],
        "t": message.timestamp,
    }


def send(producer: KafkaProducer, records: Iterable[dict[str, Any]], topic: str = NAME) -> None:
    futures = [producer.send(topic, **fields) for fields in records]
    producer.flush(PATIENCE)
    for future in futures:
        future.get(PATIENCE)


def numbered(suffix: str = "") -> list[dict[str, Any]]:
    return [
        {"key": b"key-%d" % n, "value": f"value-{n}{suffix}".encode(), "partition": n % 4} for n in range(100)
    ]


def producer(**settings: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=BOOTSTRAP, **({"linger_ms": 5} | settings))


def consumer(**settings: Any) -> KafkaConsumer:
    defaults = {"group_id": NAME, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return KafkaConsumer(bootstrap_servers=BOOTSTRAP, **(defaults | settings))


def poll(reader: KafkaConsumer, milliseconds: int = 100) -> list[dict[str, Any]]:
    found = reader.poll(timeout_ms=milliseconds)
    return [record(message) for messages in found.values() for message in messages]


def read(count: int, topic: str = NAME, **settings: Any) -> list[dict[str, Any]]:
    reader = consumer(group_id=None, **settings)
    reader.assign([TopicPartition(topic, partition) for partition in PARTITIONS])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        found += poll(reader)
    found += poll(reader, 500)
    reader.close()
    return found


def produce(**settings: Any) -> dict[str, Any]:
    send(producer(**settings), numbered())
    return {"records": read(100)}


def codec() -> dict[str, Any]:
    send(producer(compression_type=FEATURE), numbered(" compressible" * 20))
    return {"records": read(100)}


def headers() -> dict[str, Any]:
    given = [("a", b"1"), ("a", b"2"), ("empty", b""), ("näme", "wért".encode())]
    send(
        producer(), [{"value": b"with", "partition": 0, "headers": given}, {"value": b"out", "partition": 0}]
    )
    return {"records": read(2), "without": ["null header values"]}


def keys() -> dict[str, Any]:
    records = [{"key": b"key-%d" % n, "value": b"value-%d" % n} for n in range(49)] + [{"key": b"key-49"}]
    send(producer(), records)
    return {"records": read(50)}


def timestamps() -> dict[str, Any]:
    records = [
        {"value": str(n).encode(), "partition": 0, "timestamp_ms": FIRST_TIME + 1000 * n} for n in range(10)
    ]
    send(producer(), records)
    send(producer(), records, f"{NAME}-append")
    at = TopicPartition(NAME, 0)
    found = consumer().offsets_for_times({at: FIRST_TIME + 4500})
    return {"records": read(10), "appended": read(10, f"{NAME}-append"), "offset": found[at].offset}


def transactions() -> dict[str, Any]:
    writer = producer(transactional_id=NAME)
    writer.init_transactions()
    reader = consumer()
    for word in ("first", "second", "third"):
        writer.begin_transaction()
        send(writer, [{"value": f"{word}-{n}".encode(), "partition": n} for n in PARTITIONS])
        if word == "third":
            offsets = {TopicPartition(NAME, 0): OffsetAndMetadata(7, "", -1)}
            writer.send_offsets_to_transaction(offsets, reader.group_metadata())
        if word == "second":
            writer.abort_transaction()
        else:
            writer.commit_transaction()
    committed = reader.committed(TopicPartition(NAME, 0))
    reader.close()
    return read_committed(12) | {"committed": committed}


def read_committed(everything: int = 16) -> dict[str, Any]:
    return {
        "records": read(8, isolation_level="read_committed"),
        "all": read(everything, isolation_level="read_uncommitted"),
    }


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    """A consumer that polls in a thread of its own, since joining a group blocks."""

    def __init__(self, **settings: Any) -> None:
        self.found: list[dict[str, Any]] = []
        self.partitions: list[int] = []
        self.changes = 0
        self.stopping = threading.Event()
        self.consumer = consumer(**settings)
        self.consumer.subscribe([NAME], listener=self)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.changes += 1
        self.partitions = []

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.changes += 1
        self.partitions = [at.partition for at in assigned]

    def run(self) -> None:
        while not self.stopping.is_set():
            self.found += poll(self.consumer)

    def pause(self) -> None:
        self.stopping.set()
        self.thread.join(PATIENCE)

    def commit(self) -> None:
        ends = {r["p"]: r["o"] + 1 for r in self.found if r["p"] in self.partitions}
        offsets = {TopicPartition(NAME, p): OffsetAndMetadata(end, "", -1) for p, end in ends.items()}
        self.consumer.commit(offsets)


def until(question: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not question() and time.monotonic() < deadline:
        time.sleep(0.05)
    return question()


def group() -> dict[str, Any]:
    members = [Member() for _ in range(2)]
    everything = set(range(100))

    def done() -> bool:
        read = {
            r["p"] + 4 * r["o"] for member in members for r in member.found if r["p"] in member.partitions
        }
        return read == everything and all(len(member.partitions) == 2 for member in members)

    until(done)
    assigned = [list(member.partitions) for member in members]
    for member in members:
        member.pause()
        member.commit()
    for member in members:
        member.consumer.close()
    found = [r for member in members for r in member.found]
    return {"assigned": assigned, "records": found, "committed": committed_offsets()}


def committed_offsets() -> dict[int, int]:
    reader = consumer()
    found = {partition: reader.committed(TopicPartition(NAME, partition)) for partition in PARTITIONS}
    reader.close()
    return found


def static() -> dict[str, Any]:
    first, other = (
        Member(group_instance_id=f"{NAME}-{suffix}", session_timeout_ms=30_000) for suffix in ("a", "b")
    )
    until(lambda: len(first.partitions) == len(other.partitions) == 2)
    before, kept = first.partitions, other.partitions
    first.pause()
    first.consumer.close()
    other.changes = 0
    first = Member(group_instance_id=f"{NAME}-a", session_timeout_ms=30_000)
    until(lambda: len(first.partitions) == 2)
    time.sleep(0.5)
    report = {"before": before, "other": kept, "after": first.partitions, "rebalances": other.changes}
    for member in (first, other):
        member.pause()
        member.consumer.close()
    return report


def admin() -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def described(client: KafkaAdminClient, name: str, setting: str) -> str:
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    found = client.describe_configs([resource], config_filter="all")
    return str(found["topic"][name][setting]["value"])


def topics() -> dict[str, Any]:
    name, client = f"{NAME}-new", admin()
    client.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": "100000"})])
    listed = until(lambda: name in client.list_topics(), 10)
    partitions = len(client.describe_topics([name])[0]["partitions"])
    retention = described(client, name, "retention.ms")
    client.delete_topics([name])
    gone = until(lambda: name not in client.list_topics(), 10)
    return {"partitions": partitions, "retention": retention, "listed": listed, "gone": gone}


def configs() -> dict[str, Any]:
    client, setting = admin(), "max.message.bytes"
    before = described(client, NAME, setting)
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, NAME, configs={setting: "77777"})])
    until(lambda: described(client, NAME, setting) == "77777", 10)
    changed = described(client, NAME, setting)
    client.reset_configs([ConfigResource(ConfigResourceType.TOPIC, NAME, configs=[setting])])
    until(lambda: described(client, NAME, setting) != "77777", 10)
    return {"before": before, "set": changed, "after": described(client, NAME, setting)}


def partitions() -> dict[str, Any]:
    client = admin()
    client.create_partitions({NAME: 6})

    def count() -> int:
        return len(client.describe_topics([NAME])[0]["partitions"])

    until(lambda: count() == 6, 10)
    return {"partitions": count()}


def groups() -> dict[str, Any]:
    client = admin()

    def listed() -> bool:
        return NAME in [group["group_id"] for group in client.list_groups()]

    there = listed()
    state = client.describe_groups([NAME])[NAME]["group_state"]
    client.delete_groups([NAME])
    return {"listed": there, "state": state, "gone": until(lambda: not listed(), 10)}


def offsets() -> dict[str, Any]:
    client, at = admin(), TopicPartition(NAME, 0)

    def committed() -> int | None:
        found = client.list_group_offsets({NAME: [at]})[NAME].get(at)
        return None if found is None or found.offset < 0 else int(found.offset)

    earliest = client.list_partition_offsets({at: OffsetSpec.EARLIEST})[at].offset
    latest = client.list_partition_offsets({at: OffsetSpec.LATEST})[at].offset
    before = committed()
    client.alter_group_offsets(NAME, {at: OffsetAndMetadata(10, "", -1)})
    altered = committed()
    client.delete_group_offsets(NAME, [at])
    return {
        "earliest": earliest,
        "latest": latest,
        "committed": before,
        "altered": altered,
        "deleted": committed() is None,
    }


def records() -> dict[str, Any]:
    client, at = admin(), TopicPartition(NAME, 0)
    client.delete_records({at: 10})
    return {"earliest": client.list_partition_offsets({at: OffsetSpec.EARLIEST})[at].offset}


def acls() -> dict[str, Any]:
    client, topic, user = admin(), f"{NAME}-new", f"User:{NAME}"
    kind, by, may, rule = ResourceType, ACLResourcePatternType, ACLOperation, ACLPermissionType

    def shown(found: Iterable[ACL]) -> list[Any]:
        return [
            [
                one.resource_pattern.resource_type,
                one.resource_pattern.resource_name,
                one.resource_pattern.pattern_type,
                one.principal,
                one.host,
                one.operation,
                one.permission_type,
            ]
            for one in found
        ]

    def described(wanted: ACLFilter) -> list[Any]:
        return shown(client.describe_acls(wanted)[0])

    on_topic = ResourcePattern(kind.TOPIC, topic)
    prefixed = ResourcePattern(kind.TOPIC, NAME, by.PREFIXED)
    new = [
        ACL(user, "*", may.READ, rule.ALLOW, on_topic),
        ACL(user, "10.1.2.3", may.WRITE, rule.DENY, on_topic),
        ACL(user, "*", may.DESCRIBE, rule.ALLOW, prefixed),
        ACL(user, "*", may.READ, rule.ALLOW, ResourcePattern(kind.GROUP, NAME)),
        ACL(user, "10.1.2.3", may.ALL, rule.ALLOW, ResourcePattern(kind.TRANSACTIONAL_ID, NAME)),
    ]
    client.create_acls(new)
    of_user = ACLFilter(user, None, may.ANY, rule.ANY, ResourcePatternFilter(kind.ANY, None, by.ANY))
    until(lambda: len(described(of_user)) == 5, 10)
    listed = described(of_user)
    for_topic = ResourcePatternFilter(kind.TOPIC, topic, by.MATCH)
    matching = described(ACLFilter(None, None, may.ANY, rule.ANY, for_topic))
    for_group = ResourcePatternFilter(kind.GROUP, NAME, by.LITERAL)
    gone = [
        ACLFilter(None, None, may.ANY, rule.DENY, for_topic),
        ACLFilter(None, None, may.ANY, rule.ANY, for_group),
    ]
    deleted = [one for _, found, _ in client.delete_acls(gone) for one in shown(found)]
    until(lambda: len(described(of_user)) == 3, 10)
    return {"listed": listed, "matching": matching, "deleted": deleted, "left": described(of_user)}


def old() -> dict[str, Any]:
    send(producer(), numbered())
    member = consumer()
    member.subscribe([NAME])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < 100 and time.monotonic() < deadline:
        found += poll(member)
    member.commit()
    member.close()
    return {"records": found, "committed": committed_offsets()[0]}


FEATURES: dict[str, Callable[[], dict[str, Any]]] = {
    "produce": produce,
    **dict.fromkeys(("gzip", "snappy", "lz4", "zstd"), codec),
    "headers": headers,
    "keys": keys,
    "timestamps": timestamps,
    "idempotence": lambda: produce(enable_idempotence=True),
    "transactions": transactions,
    "read-committed": read_committed,
    "group-classic": group,
    "static": static,
    "admin-topics": topics,
    "admin-configs": configs,
    "admin-partitions": partitions,
    "admin-groups": groups,
    "admin-offsets": offsets,
    "admin-records": records,
    "admin-acls": acls,
    "old-versions": old,
}

print(json.dumps(FEATURES[FEATURE]()))
