"""confluent-kafka, and with it librdkafka. See ../README.md for what each feature asks."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    AcknowledgeType,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

BOOTSTRAP, FEATURE, NAME = sys.argv[1:4]
PARTITIONS = range(4)
PATIENCE = 60.0
FIRST_TIME = 1_600_000_000_000


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def record(message: Message) -> dict[str, Any]:
    return {
        "p": message.partition(),
        "o": message.offset(),
        "k": text(message.key()),
        "v": text(message.value()),
        "h": [[name, text(value)] for name, value in message.headers() or ()],
        "t": message.timestamp()[1],
    }


def send(producer: Producer, records: Iterable[dict[str, Any]], topic: str = NAME) -> None:
    failed: list[Any] = []
    for fields in records:
        producer.produce(
            topic, on_delivery=lambda error, _: failed.append(error) if error else None, **fields
        )
    if producer.flush(PATIENCE) or failed:
        raise KafkaException(failed[0] if failed else "not flushed")


def numbered(suffix: str = "") -> list[dict[str, Any]]:
    return [{"key": f"key-{n}", "value": f"value-{n}{suffix}", "partition": n % 4} for n in range(100)]


def producer(**settings: Any) -> Producer:
    words = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 5} | words)


def consumer(**settings: Any) -> Consumer:
    words = {name.replace("_", "."): value for name, value in settings.items()}
    defaults = {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": NAME,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
    }
    return Consumer(defaults | words)


def poll(reader: Consumer, seconds: float = 0.1) -> list[Message]:
    messages = reader.consume(1000, timeout=seconds)
    for message in messages:
        if message.error():
            raise KafkaException(message.error())
    return list(messages)


def read(count: int, topic: str = NAME, **settings: Any) -> list[dict[str, Any]]:
    reader = consumer(isolation_level="read_uncommitted") if not settings else consumer(**settings)
    reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in PARTITIONS])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        found += map(record, poll(reader))
    found += map(record, poll(reader, 0.5))
    reader.close()
    return found


def produce(**settings: Any) -> dict[str, Any]:
    send(producer(**settings), numbered())
    return {"records": read(100)}


def codec() -> dict[str, Any]:
    send(producer(compression_type=FEATURE), numbered(" compressible" * 20))
    return {"records": read(100)}


def headers() -> dict[str, Any]:
    given = [("a", "1"), ("a", "2"), ("empty", ""), ("näme", "wért".encode()), ("null", None)]
    send(producer(), [{"value": "with", "partition": 0, "headers": given}, {"value": "out", "partition": 0}])
    return {"records": read(2)}


def keys() -> dict[str, Any]:
    records = [{"key": f"key-{n}", "value": f"value-{n}"} for n in range(49)] + [{"key": "key-49"}]
    send(producer(partitioner="murmur2_random"), records)
    return {"records": read(50)}


def timestamps() -> dict[str, Any]:
    records = [{"value": str(n), "partition": 0, "timestamp": FIRST_TIME + 1000 * n} for n in range(10)]
    send(producer(), records)
    send(producer(), records, f"{NAME}-append")
    reader = consumer()
    at = reader.offsets_for_times([TopicPartition(NAME, 0, FIRST_TIME + 4500)], timeout=30)
    reader.close()
    return {"records": read(10), "appended": read(10, f"{NAME}-append"), "offset": at[0].offset}


def transactions() -> dict[str, Any]:
    writer = producer(transactional_id=NAME)
    writer.init_transactions(PATIENCE)
    reader = consumer()
    for word in ("first", "second", "third"):
        writer.begin_transaction()
        send(writer, [{"value": f"{word}-{n}", "partition": n} for n in PARTITIONS])
        if word == "third":
            at = TopicPartition(NAME, 0, 7)
            writer.send_offsets_to_transaction([at], reader.consumer_group_metadata(), PATIENCE)
        if word == "second":
            writer.abort_transaction(PATIENCE)
        else:
            writer.commit_transaction(PATIENCE)
    committed = reader.committed([TopicPartition(NAME, 0)], timeout=PATIENCE)[0].offset
    reader.close()
    return read_committed(12) | {"committed": committed}


def read_committed(everything: int = 16) -> dict[str, Any]:
    return {
        "records": read(8, isolation_level="read_committed"),
        "all": read(everything, isolation_level="read_uncommitted"),
    }


def group(protocol: str) -> dict[str, Any]:
    members = [consumer(group_protocol=protocol) for _ in range(2)]
    for member in members:
        member.subscribe([NAME])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for member in members:
            found += map(record, poll(member))
        if len({r["v"] for r in found}) == 100 and all(len(m.assignment()) == 2 for m in members):
            break
    assigned = [[at.partition for at in member.assignment()] for member in members]
    for member, own in zip(members, assigned, strict=True):
        ends = {r["p"]: r["o"] + 1 for r in found if r["p"] in own}
        member.commit(offsets=[TopicPartition(NAME, p, end) for p, end in ends.items()], asynchronous=False)
        member.close()
    return {"assigned": assigned, "records": found, "committed": committed_offsets()}


def committed_offsets() -> dict[int, int]:
    reader = consumer()
    found = reader.committed([TopicPartition(NAME, partition) for partition in PARTITIONS], timeout=30)
    reader.close()
    return {at.partition: at.offset for at in found}


def share() -> dict[str, Any]:
    settings = {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": NAME,
        "share.acknowledgement.mode": "explicit",
    }
    members = [ShareConsumer(settings) for _ in range(2)]
    for member in members:
        member.subscribe([NAME])
    accepted: list[dict[str, Any]] = []
    released, deliveries = None, 0
    deadline = time.monotonic() + PATIENCE
    while len(accepted) < 100 and time.monotonic() < deadline:
        for member in members:
            for message in member.poll(0.2):
                if message.error():
                    raise KafkaException(message.error())
                place = (message.partition(), message.offset())
                released = released or place
                deliveries += place == released
                if place == released and deliveries == 1:
                    member.acknowledge(message, AcknowledgeType.RELEASE)
                else:
                    member.acknowledge(message, AcknowledgeType.ACCEPT)
                    accepted.append(record(message))
            member.commit_sync(10.0)
    for member in members:
        member.close()
    return {"records": accepted, "deliveries": deliveries}


def static() -> dict[str, Any]:
    changes: list[str] = []

    def join(suffix: str) -> Consumer:
        member = consumer(group_instance_id=f"{NAME}-{suffix}", session_timeout_ms=30_000)
        note = (lambda *_: changes.append(suffix)) if suffix == "b" else (lambda *_: None)
        member.subscribe([NAME], on_assign=note, on_revoke=note)
        return member

    def settle(*members: Consumer) -> list[list[int]]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not all(len(m.assignment()) == 2 for m in members):
            for member in members:
                poll(member)
        return [[at.partition for at in member.assignment()] for member in members]

    first, other = join("a"), join("b")
    before, kept = settle(first, other)
    first.close()
    changes.clear()
    first = join("a")
    after = settle(first)[0]
    settle(first, other)
    poll(other, 0.5)
    report = {"before": before, "other": kept, "after": after, "rebalances": len(changes)}
    first.close()
    other.close()
    return report


def admin() -> AdminClient:
    return AdminClient({"bootstrap.servers": BOOTSTRAP})


def described(name: str, setting: str) -> str:
    client, resource = admin(), ConfigResource(ResourceType.TOPIC, name)
    return str(client.describe_configs([resource])[resource].result(PATIENCE)[setting].value)


def until(question: Callable[[], bool]) -> bool:
    """What an administrator changed may take a moment to be seen."""
    deadline = time.monotonic() + 10
    while not question() and time.monotonic() < deadline:
        time.sleep(0.05)
    return question()


def topics() -> dict[str, Any]:
    name, client = f"{NAME}-new", admin()
    new = NewTopic(name, num_partitions=3, replication_factor=1, config={"retention.ms": "100000"})
    client.create_topics([new])[name].result(PATIENCE)
    listed = until(lambda: name in client.list_topics(timeout=30).topics)
    partitions = len(client.list_topics(name, timeout=30).topics[name].partitions)
    retention = described(name, "retention.ms")
    client.delete_topics([name])[name].result(PATIENCE)
    gone = until(lambda: name not in client.list_topics(timeout=30).topics)
    return {"partitions": partitions, "retention": retention, "listed": listed, "gone": gone}


def configs() -> dict[str, Any]:
    client = admin()

    def alter(operation: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry("max.message.bytes", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, NAME, incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(PATIENCE)

    before = described(NAME, "max.message.bytes")
    alter(AlterConfigOpType.SET, "77777")
    until(lambda: described(NAME, "max.message.bytes") == "77777")
    changed = described(NAME, "max.message.bytes")
    alter(AlterConfigOpType.DELETE, None)
    until(lambda: described(NAME, "max.message.bytes") != "77777")
    return {"before": before, "set": changed, "after": described(NAME, "max.message.bytes")}


def partitions() -> dict[str, Any]:
    client = admin()
    client.create_partitions([NewPartitions(NAME, 6)])[NAME].result(PATIENCE)

    def count() -> int:
        return len(client.list_topics(NAME, timeout=30).topics[NAME].partitions)

    until(lambda: count() == 6)
    return {"partitions": count()}


def groups() -> dict[str, Any]:
    client = admin()

    def listed() -> bool:
        return NAME in [group.group_id for group in client.list_consumer_groups().result(PATIENCE).valid]

    there = listed()
    state = client.describe_consumer_groups([NAME])[NAME].result(PATIENCE).state.name
    client.delete_consumer_groups([NAME])[NAME].result(PATIENCE)
    return {"listed": there, "state": state, "gone": until(lambda: not listed())}


def offsets() -> dict[str, Any]:
    client, at = admin(), TopicPartition(NAME, 0)

    def bound(which: Any) -> int:
        return int(client.list_offsets({at: which})[at].result(PATIENCE).offset)

    earliest, latest, before = (
        bound(OffsetSpec.earliest()),
        bound(OffsetSpec.latest()),
        committed_offsets()[0],
    )
    wanted = ConsumerGroupTopicPartitions(NAME, [TopicPartition(NAME, 0, 10)])
    client.alter_consumer_group_offsets([wanted])[NAME].result(PATIENCE)
    return {
        "earliest": earliest,
        "latest": latest,
        "committed": before,
        "altered": committed_offsets()[0],
        "without": ["deleting offsets"],
    }


def records() -> dict[str, Any]:
    client, at = admin(), TopicPartition(NAME, 0, 10)
    client.delete_records([at])[at].result(PATIENCE)
    spec = {TopicPartition(NAME, 0): OffsetSpec.earliest()}
    return {"earliest": next(iter(client.list_offsets(spec).values())).result(PATIENCE).offset}


def acls() -> dict[str, Any]:
    client, topic, user = admin(), f"{NAME}-new", f"User:{NAME}"
    kind, by, may, rule = ResourceType, ResourcePatternType, AclOperation, AclPermissionType

    def shown(found: Iterable[AclBinding]) -> list[Any]:
        return [
            [
                one.restype.value,
                one.name,
                one.resource_pattern_type.value,
                one.principal,
                one.host,
                one.operation.value,
                one.permission_type.value,
            ]
            for one in found
        ]

    def described(wanted: AclBindingFilter) -> list[Any]:
        return shown(client.describe_acls(wanted).result(PATIENCE))

    new = [
        AclBinding(kind.TOPIC, topic, by.LITERAL, user, "*", may.READ, rule.ALLOW),
        AclBinding(kind.TOPIC, topic, by.LITERAL, user, "10.1.2.3", may.WRITE, rule.DENY),
        AclBinding(kind.TOPIC, NAME, by.PREFIXED, user, "*", may.DESCRIBE, rule.ALLOW),
        AclBinding(kind.GROUP, NAME, by.LITERAL, user, "*", may.READ, rule.ALLOW),
        AclBinding(kind.TRANSACTIONAL_ID, NAME, by.LITERAL, user, "10.1.2.3", may.ALL, rule.ALLOW),
    ]
    for created in client.create_acls(new).values():
        created.result(PATIENCE)
    of_user = AclBindingFilter(kind.ANY, None, by.ANY, user, None, may.ANY, rule.ANY)
    until(lambda: len(described(of_user)) == 5)
    listed = described(of_user)
    matching = described(AclBindingFilter(kind.TOPIC, topic, by.MATCH, None, None, may.ANY, rule.ANY))
    gone = [
        AclBindingFilter(kind.TOPIC, topic, by.MATCH, None, None, may.ANY, rule.DENY),
        AclBindingFilter(kind.GROUP, NAME, by.LITERAL, None, None, may.ANY, rule.ANY),
    ]
    deleted = [one for done in client.delete_acls(gone).values() for one in shown(done.result(PATIENCE))]
    until(lambda: len(described(of_user)) == 3)
    return {"listed": listed, "matching": matching, "deleted": deleted, "left": described(of_user)}


def old() -> dict[str, Any]:
    send(producer(), numbered())
    member = consumer()
    member.subscribe([NAME])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < 100 and time.monotonic() < deadline:
        found += map(record, poll(member))
    member.commit(asynchronous=False)
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
    "group-classic": lambda: group("classic"),
    "group-consumer": lambda: group("consumer"),
    "group-share": share,
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
