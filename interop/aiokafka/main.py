"""aiokafka. See ../README.md for what each feature asks."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

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


async def send_to(producer: AIOKafkaProducer, records: Iterable[dict[str, Any]], topic: str = NAME) -> None:
    sent = [await producer.send(topic, **fields) for fields in records]
    for future in sent:
        await asyncio.wait_for(future, PATIENCE)


async def send(records: Iterable[dict[str, Any]], topic: str = NAME, **settings: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, linger_ms=5, **settings) as producer:
        await send_to(producer, records, topic)


def numbered(suffix: str = "") -> list[dict[str, Any]]:
    return [
        {"key": b"key-%d" % n, "value": f"value-{n}{suffix}".encode(), "partition": n % 4} for n in range(100)
    ]


def consumer(**settings: Any) -> AIOKafkaConsumer:
    defaults = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, **(defaults | settings))


async def poll(reader: AIOKafkaConsumer, milliseconds: int = 100) -> list[dict[str, Any]]:
    found = await reader.getmany(timeout_ms=milliseconds)
    return [record(message) for messages in found.values() for message in messages]


async def read(count: int, topic: str = NAME, **settings: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with consumer(**settings) as reader:
        reader.assign([TopicPartition(topic, partition) for partition in PARTITIONS])
        deadline = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found += await poll(reader)
        found += await poll(reader, 500)
    return found


async def produce(**settings: Any) -> dict[str, Any]:
    await send(numbered(), **settings)
    return {"records": await read(100)}


async def codec() -> dict[str, Any]:
    await send(numbered(" compressible" * 20), compression_type=FEATURE)
    return {"records": await read(100)}


async def headers() -> dict[str, Any]:
    given = [("a", b"1"), ("a", b"2"), ("empty", b""), ("näme", "wért".encode()), ("null", None)]
    await send([{"value": b"with", "partition": 0, "headers": given}, {"value": b"out", "partition": 0}])
    return {"records": await read(2)}


async def keys() -> dict[str, Any]:
    records = [{"key": b"key-%d" % n, "value": b"value-%d" % n} for n in range(49)] + [{"key": b"key-49"}]
    await send(records)
    return {"records": await read(50)}


async def timestamps() -> dict[str, Any]:
    records = [
        {"value": str(n).encode(), "partition": 0, "timestamp_ms": FIRST_TIME + 1000 * n} for n in range(10)
    ]
    await send(records)
    await send(records, f"{NAME}-append")
    at = TopicPartition(NAME, 0)
    async with consumer() as reader:
        found = await reader.offsets_for_times({at: FIRST_TIME + 4500})
    appended = await read(10, f"{NAME}-append")
    return {"records": await read(10), "appended": appended, "offset": found[at].offset}


async def transactions() -> dict[str, Any]:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=NAME) as writer:
        for word in ("first", "second", "third"):
            await writer.begin_transaction()
            await send_to(writer, [{"value": f"{word}-{n}".encode(), "partition": n} for n in PARTITIONS])
            if word == "third":
                await writer.send_offsets_to_transaction({TopicPartition(NAME, 0): 7}, NAME)
            if word == "second":
                await writer.abort_transaction()
            else:
                await writer.commit_transaction()
    return await read_committed(12) | {"committed": (await committed_offsets())[0]}


async def read_committed(everything: int = 16) -> dict[str, Any]:
    return {
        "records": await read(8, isolation_level="read_committed"),
        "all": await read(everything, isolation_level="read_uncommitted"),
    }


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self.partitions: list[int] = []
        self.changes = 0

    async def join(self, **settings: Any) -> Member:
        self.consumer = consumer(group_id=NAME, **settings)
        self.consumer.subscribe([NAME], listener=self)
        await self.consumer.start()
        self.task = asyncio.create_task(self.run())
        return self

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.changes += 1
        self.partitions = []

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.changes += 1
        self.partitions = [at.partition for at in assigned]

    async def run(self) -> None:
        while True:
            self.found += await poll(self.consumer)

    async def commit(self) -> None:
        ends = {r["p"]: r["o"] + 1 for r in self.found if r["p"] in self.partitions}
        await self.consumer.commit({TopicPartition(NAME, p): end for p, end in ends.items()})

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.consumer.stop()


async def until(question: Callable[[], Awaitable[bool]], seconds: float = PATIENCE) -> bool:
    for _ in range(int(seconds / 0.05)):
        if await question():
            return True
        await asyncio.sleep(0.05)
    return await question()


async def group() -> dict[str, Any]:
    members = list(await asyncio.gather(Member().join(), Member().join()))

    async def done() -> bool:
        read = {
            r["p"] + 4 * r["o"] for member in members for r in member.found if r["p"] in member.partitions
        }
        return len(read) == 100 and all(len(member.partitions) == 2 for member in members)

    await until(done)
    assigned = [list(member.partitions) for member in members]
    for member in members:
        await member.commit()
    for member in members:
        await member.close()
    found = [r for member in members for r in member.found]
    return {"assigned": assigned, "records": found, "committed": await committed_offsets()}


async def committed_offsets() -> dict[int, int | None]:
    async with consumer(group_id=NAME) as reader:
        return {
            partition: await reader.committed(TopicPartition(NAME, partition)) for partition in PARTITIONS
        }


async def static() -> dict[str, Any]:
    def join(suffix: str) -> Awaitable[Member]:
        return Member().join(group_instance_id=f"{NAME}-{suffix}", session_timeout_ms=30_000)

    async def settled() -> bool:
        return len(first.partitions) == len(other.partitions) == 2

    first, other = await asyncio.gather(join("a"), join("b"))
    await until(settled)
    before, kept = first.partitions, other.partitions
    await first.close()
    other.changes = 0
    first = await join("a")
    await until(settled)
    await asyncio.sleep(0.5)
    report = {"before": before, "other": kept, "after": first.partitions, "rebalances": other.changes}
    await first.close()
    await other.close()
    return report


async def old() -> dict[str, Any]:
    await send(numbered())
    member = await Member().join()

    async def done() -> bool:
        return len(member.found) >= 100

    await until(done)
    await member.commit()
    await member.close()
    return {"records": member.found, "committed": (await committed_offsets())[0]}


async def described(client: AIOKafkaAdminClient, name: str, setting: str) -> str:
    [response] = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    entries = response.resources[0][4]
    return next(str(entry[1]) for entry in entries if entry[0] == setting)


async def topics(client: AIOKafkaAdminClient) -> dict[str, Any]:
    name = f"{NAME}-new"

    async def there() -> bool:
        return name in await client.list_topics()

    async def gone() -> bool:
        return not await there()

    await client.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": "100000"})])
    listed = await until(there, 10)
    partitions = len((await client.describe_topics([name]))[0]["partitions"])
    retention = await described(client, name, "retention.ms")
    await client.delete_topics([name])
    return {
        "partitions": partitions,
        "retention": retention,
        "listed": listed,
        "gone": await until(gone, 10),
    }


async def configs(client: AIOKafkaAdminClient) -> dict[str, Any]:
    """Its alter_configs is Kafka's old request, which states the whole configuration: nothing is a reset."""
    setting = "max.message.bytes"

    async def changed() -> bool:
        return await described(client, NAME, setting) == "77777"

    async def reset() -> bool:
        return not await changed()

    before = await described(client, NAME, setting)
    await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, NAME, configs={setting: "77777"})])
    await until(changed, 10)
    value = await described(client, NAME, setting)
    await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, NAME, configs={})])
    await until(reset, 10)
    return {"before": before, "set": value, "after": await described(client, NAME, setting)}


async def partitions(client: AIOKafkaAdminClient) -> dict[str, Any]:
    await client.create_partitions({NAME: NewPartitions(6)})

    async def count() -> int:
        return len((await client.describe_topics([NAME]))[0]["partitions"])

    async def done() -> bool:
        return await count() == 6

    await until(done, 10)
    return {"partitions": await count()}


async def groups(client: AIOKafkaAdminClient) -> dict[str, Any]:
    listed = NAME in [group[0] for group in await client.list_consumer_groups()]
    [response] = await client.describe_consumer_groups([NAME])
    state = response.groups[0][2]
    return {"listed": listed, "state": state, "without": ["deleting groups"]}


async def offsets(client: AIOKafkaAdminClient) -> dict[str, Any]:
    at = TopicPartition(NAME, 0)
    async with consumer() as reader:
        earliest = (await reader.beginning_offsets([at]))[at]
        latest = (await reader.end_offsets([at]))[at]
    found = await client.list_consumer_group_offsets(NAME, partitions=[at])
    return {
        "earliest": earliest,
        "latest": latest,
        "committed": found[at].offset,
        "without": ["altering offsets", "deleting offsets"],
    }


async def records(client: AIOKafkaAdminClient) -> dict[str, Any]:
    at = TopicPartition(NAME, 0)
    await client.delete_records({at: RecordsToDelete(10)})
    async with consumer() as reader:
        return {"earliest": (await reader.beginning_offsets([at]))[at]}


def administer(feature: Callable[[AIOKafkaAdminClient], Awaitable[dict[str, Any]]]) -> Any:
    async def run() -> dict[str, Any]:
        client = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        await client.start()
        try:
            return await feature(client)
        finally:
            await client.close()

    return run


FEATURES: dict[str, Callable[[], Any]] = {
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
    "old-versions": old,
    "admin-topics": administer(topics),
    "admin-configs": administer(configs),
    "admin-partitions": administer(partitions),
    "admin-groups": administer(groups),
    "admin-offsets": administer(offsets),
    "admin-records": administer(records),
}

print(json.dumps(asyncio.run(FEATURES[FEATURE]())))
