"""Asking handlers in process: the same answers, in order, and with a bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla import Broker
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.server.context import Disconnect
from ottla.server.local import Local
from ottla.server.routes import Handler, Route, Routes


@asynccontextmanager
async def running(
    durability: str = "kafka", intercept: Callable[[Route], Handler] | None = None
) -> AsyncIterator[tuple[Broker, Local]]:
    async with Broker(properties={"ottla.durability": durability}) as broker:
        host, port = broker.addresses[0]
        connection = SimpleNamespace(
            listener_name="PLAINTEXT",
            client_host="/127.0.0.1",
            dialled_host=host,
            dialled_port=port,
            endings={},
        )
        local = Local(broker.node, Routes(intercept), cast(Any, connection), "test")
        yield broker, local


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def produce(value: bytes, acks: int = -1) -> ProduceRequest:
    records = write_batch([Record(timestamp=1_700_000_000_000, value=value)])
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )


def create() -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])


@pytest.mark.parametrize("durability", ["kafka", "durable"])
@pytest.mark.parametrize("acks", [1, -1])
def test_calls_made_one_after_the_other_append_in_that_order(durability: str, acks: int) -> None:
    async def main() -> None:
        async with running(durability) as (broker, local):
            await local.ask(create())
            calls = [asyncio.create_task(local.ask(produce(b"v", acks), 12)) for _ in range(20)]
            answers = [(await call).responses[0].partition_responses[0] for call in calls]
            assert [answer.base_offset for answer in answers] == list(range(20))
            assert not broker.node.replicas.dirty, "what was answered has been written"

    run(main())


def test_a_request_is_answered_in_its_latest_version_unless_it_says_which() -> None:
    async def main() -> None:
        async with running() as (_, local):
            assert (await local.ask(MetadataRequest(topics=None))).brokers
            with pytest.raises(UnsupportedVersion):
                await local.ask(MetadataRequest(topics=None), 99)

    run(main())


def test_a_handler_that_waits_too_long_is_stopped() -> None:
    async def main() -> None:
        async with running() as (_, local):
            await local.ask(create())
            asked = FetchRequest(
                max_wait_ms=60_000,
                min_bytes=1,
                topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])],
            )
            with pytest.raises(RequestTimedOut):
                await local.ask(asked, 12, seconds=0.05)

    run(main())


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (UnknownTopicOrPartition(), UnknownTopicOrPartition),
        (Disconnect("not like this"), InvalidRequest),
        (ZeroDivisionError(), UnknownServerError),
        (KeyError("x"), UnknownServerError),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_what_a_handler_raises_becomes_an_error_of_kafka(
    raised: Exception, expected: type[KafkaError], waits: bool
) -> None:
    async def fail(request: Any, ctx: Any) -> None:
        if waits:
            await asyncio.sleep(0)
        raise raised

    async def main() -> None:
        async with running(intercept=lambda route: fail) as (_, local):
            with pytest.raises(expected):
                await local.ask(MetadataRequest(topics=None))

    run(main())


def test_requests_are_counted_and_those_that_wait_are_timed() -> None:
    async def main() -> None:
        async with running("durable") as (_, local):
            await local.ask(create())
            for _ in range(3):
                await local.ask(produce(b"v"), 12)
            route = next(route for route in local._routes if route.name == "Produce")
            assert route.requests == 3
            assert sum(route.wait_counts) == 3 and route.wait_seconds > 0

    run(main())
