"""One connection: versions, order, time, and brokers that misbehave."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.connection import FRAME_STEP_BYTES, MAX_IN_FLIGHT, SCRATCH_BYTES, Connection
from ottla.client.errors import Disconnected, NoAnswer, NotKafka, Unreachable, UnsupportedRequest
from ottla.protocol.codec import encode
from ottla.protocol.errors import UnsupportedVersion
from ottla.protocol.headers import RequestHeader, response_head
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.scripted import API_VERSIONS, METADATA, answer, listening, scripted_broker, serving

FETCH = 1


def test_requests_go_in_the_newest_version_that_both_know() -> None:
    seen: list[int] = []

    async def script(header: RequestHeader) -> bytes:
        seen.append(header.request_api_version)
        if header.request_api_key == API_VERSIONS:
            return answer(header, serving((API_VERSIONS, 0, 4), (METADATA, 4, 7)))
        return answer(header, MetadataResponse(cluster_id="c"))

    async def client() -> MetadataResponse:
        async with scripted_broker(script) as port:
            connection = await Connection.open("127.0.0.1", port)
            try:
                return await connection.ask(MetadataRequest(), MetadataResponse)
            finally:
                connection.close()

    assert asyncio.run(client()).cluster_id == "c"
    assert seen == [4, 7]


def test_an_older_broker_that_refuses_the_newest_api_versions_is_asked_again() -> None:
    seen: list[int] = []

    async def script(header: RequestHeader) -> bytes:
        seen.append(header.request_api_version)
        served = serving((API_VERSIONS, 0, 2), (METADATA, 0, 5))
        if header.request_api_version > 2:
            served.error_code = UnsupportedVersion.code
            # Brokers answer what they do not know in version 0.
            return response_head(API_VERSIONS, 0, header.correlation_id) + encode(served, 0)
        return answer(header, served)

    async def client() -> int:
        async with scripted_broker(script) as port:
            connection = await Connection.open("127.0.0.1", port)
            connection.close()
            return connection.version_of(MetadataRequest)

    assert asyncio.run(client()) == 5
    assert seen == [4, 2]


def test_a_request_that_the_broker_does_not_know_is_told() -> None:
    async def script(header: RequestHeader) -> bytes:
        return answer(header, serving((API_VERSIONS, 0, 4), (METADATA, 99, 100), (13, 0, 2)))

    async def client() -> None:
        async with scripted_broker(script) as port:
            connection = await Connection.open("127.0.0.1", port)
            try:
                with pytest.raises(UnsupportedRequest, match="has no FindCoordinator request"):
                    connection.version_of(FindCoordinatorRequest)
                with pytest.raises(UnsupportedRequest, match="knows Metadata 99-100"):
                    connection.version_of(MetadataRequest)
                # A version that both know, but that has no field for what is to be said.
                with pytest.raises(UnsupportedRequest, match="too old for this"):
                    request = LeaveGroupRequest(members=[MemberIdentity(member_id="m")])
                    await connection.ask(request, LeaveGroupResponse)
            finally:
                connection.close()

    asyncio.run(client())


def test_a_broker_that_says_nothing_is_given_up() -> None:
    async def script(header: RequestHeader) -> bytes | None:
        if header.request_api_key == API_VERSIONS:
            return answer(header, serving((API_VERSIONS, 0, 4), (METADATA, 0, 13)))
        return None

    async def client() -> None:
        async with scripted_broker(script) as port:
            connection = await Connection.open("127.0.0.1", port)
            with pytest.raises(NoAnswer, match="did not answer Metadata within"):
                await connection.ask(MetadataRequest(), MetadataResponse, within=0.05)
            # Its answer could still come, in front of that to another request: the connection is done with.
            assert not connection.is_open
            with pytest.raises(Disconnected):
                await connection.ask(MetadataRequest(), MetadataResponse)

    asyncio.run(client())


def test_no_more_requests_than_the_bound_are_sent_before_an_answer() -> None:
    received = 0
    enough, go_on = asyncio.Event(), asyncio.Event()

    async def script(header: RequestHeader) -> bytes:
        nonlocal received
        if header.request_api_key == API_VERSIONS:
            return answer(header, serving((API_VERSIONS, 0, 4), (METADATA, 0, 13)))
        received += 1
        enough.set()
        await go_on.wait()
        return answer(header, MetadataResponse())

    async def client() -> None:
        async with scripted_broker(script) as port, asyncio.TaskGroup() as tasks:
            connection = await Connection.open("127.0.0.1", port)
            asked = [
                tasks.create_task(connection.ask(MetadataRequest(), MetadataResponse))
                for _ in range(3 * MAX_IN_FLIGHT)
            ]
            await enough.wait()
            assert len(connection._wire.waiting) == MAX_IN_FLIGHT
            go_on.set()
            for each in asked:
                await each
            connection.close()

    asyncio.run(client())
    assert received == 3 * MAX_IN_FLIGHT


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x06\x7f\x7f\x7f\x7f\x00\x00",
        b"\x00\x00\x00\x05\x00\x00\x00\x01\x00",
        b"\x00\x00\x00\x01\x00",
    ],
    ids=["http", "wrong correlation id", "cut off", "too short"],
)
def test_what_does_not_speak_kafka_is_told(said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(said)
        await reader.read()

    async def client() -> None:
        async with listening(serve) as port:
            with pytest.raises(NotKafka, match="sent something that is not Kafka"):
                await Connection.open("127.0.0.1", port)

    asyncio.run(client())


def test_a_broker_that_hangs_up_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)

    async def client() -> None:
        async with listening(serve) as port:
            with pytest.raises(Unreachable, match="closed the connection, before it was used"):
                await Connection.open("127.0.0.1", port)

    asyncio.run(client())


def test_nobody_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = taken.getsockname()[1]
        with pytest.raises(Unreachable, match=f"cannot connect to 127.0.0.1:{port}: connection refused"):
            asyncio.run(Connection.open("127.0.0.1", port))


@pytest.mark.parametrize("size", [10, SCRATCH_BYTES, SCRATCH_BYTES + 1, FRAME_STEP_BYTES, 9_000_000])
def test_answers_of_any_length_arrive_whole(size: int) -> None:
    async def script(header: RequestHeader) -> bytes:
        if header.request_api_key == API_VERSIONS:
            return answer(header, serving((API_VERSIONS, 0, 4), (METADATA, 4, 7), (FETCH, 4, 12)))
        if header.request_api_key == METADATA:
            return answer(header, MetadataResponse(cluster_id="c" * 5000))
        records = bytes(range(256)) * (size // 256 + 1)
        partition = PartitionData(partition_index=0, high_watermark=1, records=records[:size])
        topic = FetchableTopicResponse(topic="t", partitions=[partition])
        return answer(header, FetchResponse(responses=[topic]))

    async def client() -> None:
        async with scripted_broker(script) as port:
            connection = await Connection.open("127.0.0.1", port)
            # Short answers before and behind the long ones, so that frames begin anywhere in a buffer.
            asked: list[Coroutine[Any, Any, Any]] = []
            for _ in range(4):
                asked.append(connection.ask(MetadataRequest(), MetadataResponse))
                asked.append(
                    connection.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), FetchResponse)
                )
            answers = await asyncio.gather(*asked)
            for short, long in zip(answers[::2], answers[1::2], strict=True):
                assert short.cluster_id == "c" * 5000
                records = long.responses[0].partitions[0].records
                assert len(records) == size
                assert bytes(records[-200:]) == (bytes(range(256)) * (size // 256 + 1))[:size][-200:]
            connection.close()

    asyncio.run(client())


def test_what_announces_a_long_answer_and_is_not_kafka_costs_little() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x03\x00\x02\x02\x46" + bytes(SCRATCH_BYTES))  # how TLS says that it wants TLS
        await writer.drain()

    async def client() -> None:
        async with listening(serve) as port:
            with pytest.raises(Unreachable):
                await Connection.open("127.0.0.1", port)

    tracemalloc.start()
    asyncio.run(client())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


@pytest.mark.parametrize("host", ["a" * 300, "..", "x\0y"])
def test_a_host_that_cannot_be_looked_up_is_just_not_reached(host: str) -> None:
    """It may come from another node, which must not be the end of this one."""
    with pytest.raises(Unreachable, match="cannot connect to"):
        asyncio.run(Connection.open(host, 9092))
