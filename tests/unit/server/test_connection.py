"""One connection on a real broker: frames of every shape, order of replies, limits, and mistakes."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ottla import Broker
from ottla.protocol import apis, codec, headers
from ottla.protocol.batch import Record, read_records, write_batch
from ottla.protocol.errors import KafkaStorageError
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.server.connection import SPARE_FRAME_MAX, SPARE_FRAMES, UNANSWERED_MAX, WRITE_BUFFER_MAX
from ottla.storage.files import OsFiles
from ottla.testing.disk import FaultyFiles

TOPIC = "orders"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties={"ottla.durability": "kafka"}) as broker:
        with Client(broker) as client:
            topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        yield broker


def frame(request: Any, version: int, correlation_id: int = 1) -> bytes:
    head = headers.request_head(request.api_key, version, correlation_id, "test")
    body = head + codec.encode(request, version)
    return struct.pack(">i", len(body)) + body


class Client:
    def __init__(self, broker: Broker, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect(broker.addresses[0])

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return bytes(data)

    def reply(self) -> bytes:
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def correlation_id(self) -> int:
        return int.from_bytes(self.reply()[:4], "big")

    def ask(self, request: Any, version: int) -> Any:
        self.send(frame(request, version))
        reply = self.reply()
        start = 4 + (headers.response_header_version(request.api_key, version) >= 1)
        return codec.decode(apis.api(request.api_key).response, version, reply, start)

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def produce(value: bytes, acks: int = 1, topic: str = TOPIC) -> ProduceRequest:
    records = write_batch([Record(offset=0, timestamp=1_700_000_000_000, key=None, value=value, headers=[])])
    return ProduceRequest(
        acks=acks,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        ],
    )


def fetch(offset: int, max_wait_ms: int, min_bytes: int = 1) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=TOPIC,
                partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 << 20)],
            )
        ],
    )


@pytest.fixture
def still_serving(broker: Broker) -> Iterator[None]:
    """What one connection did wrong is no concern of another that was there all the time."""
    with Client(broker) as other:
        other.ask(MetadataRequest(topics=[]), 12)
        yield
        assert other.ask(MetadataRequest(topics=[]), 12).brokers


# --- frames ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("still_serving")
@pytest.mark.parametrize("size", [-1, 0, 7, 104_857_601, 2**31 - 1])
def test_an_impossible_frame_size_closes_the_connection(broker: Broker, size: int) -> None:
    with Client(broker) as client:
        client.send(struct.pack(">i", size))
        assert client.is_closed()


@pytest.mark.usefixtures("still_serving")
def test_a_client_that_speaks_tls_is_told_from_a_frame_that_is_too_large(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    hello = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    with caplog.at_level(logging.INFO, "ottla.connection"), Client(broker) as client:
        client.send(hello.read())
        assert client.is_closed()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "ottla.connection"]
    assert "the client speaks TLS" in line and "this listener is plain" in line


@pytest.mark.usefixtures("still_serving")
@pytest.mark.parametrize(("key", "version"), [(93, 0), (-1, 0), (9999, 0), (3, 14), (0, -1), (52, 0)])
def test_an_api_or_version_that_is_not_served_closes_the_connection(
    broker: Broker, key: int, version: int
) -> None:
    with Client(broker) as client:
        body = struct.pack(">hhih", key, version, 1, -1) + bytes(20)
        client.send(struct.pack(">i", len(body)) + body)
        assert client.is_closed()


@pytest.mark.usefixtures("still_serving")
def test_a_malformed_body_closes_the_connection_after_earlier_replies(broker: Broker) -> None:
    with Client(broker) as client:
        bad = struct.pack(">hhih", 3, 1, 2, -1) + struct.pack(">i", 1_000_000)
        client.send(frame(ApiVersionsRequest(), 0, 1) + struct.pack(">i", len(bad)) + bad)
        assert client.correlation_id() == 1
        assert client.is_closed()


@pytest.mark.usefixtures("still_serving")
@pytest.mark.parametrize("client_id", [struct.pack(">h", 500), struct.pack(">h", 2) + b"\xff\xfe"])
def test_a_bad_client_id_closes_the_connection(broker: Broker, client_id: bytes) -> None:
    with Client(broker) as client:
        body = struct.pack(">hhi", 18, 0, 1) + client_id
        client.send(struct.pack(">i", len(body)) + body)
        assert client.is_closed()


def test_an_api_versions_request_from_the_future_is_answered_in_version_0(broker: Broker) -> None:
    with Client(broker) as client:
        body = struct.pack(">hhih", 18, 99, 7, -1) + b"\0whatever"
        client.send(struct.pack(">i", len(body)) + body)
        assert client.reply() == bytes.fromhex("00000007 0023 00000001 0012 0000 0004")


def test_tags_in_a_request_header_are_skipped(broker: Broker) -> None:
    with Client(broker) as client:
        body = (
            struct.pack(">hhih", 3, 12, 5, 0)
            + b"\x01\x09\x02ab"
            + codec.encode(MetadataRequest(topics=[]), 12)
        )
        client.send(struct.pack(">i", len(body)) + body)
        assert client.correlation_id() == 5


def test_bytes_behind_a_body_are_ignored(broker: Broker) -> None:
    with Client(broker) as client:
        body = frame(MetadataRequest(topics=[]), 12, 5)[4:] + b"surplus"
        client.send(struct.pack(">i", len(body)) + body)
        assert client.correlation_id() == 5
        assert client.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_request_may_arrive_byte_by_byte(broker: Broker) -> None:
    with Client(broker) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in frame(MetadataRequest(topics=[]), 12, 9):
            client.send(bytes([byte]))
        assert client.correlation_id() == 9


@pytest.mark.parametrize("piece", [1_000, 40_000, 200_000, 2_000_000])
def test_a_large_frame_may_arrive_in_pieces(broker: Broker, piece: int) -> None:
    value = bytes(range(256)) * 3_500
    with Client(broker) as client:
        data = frame(produce(value), 9, 3)
        for start in range(0, len(data), piece):
            client.send(data[start : start + piece])
        reply = client.reply()
        assert int.from_bytes(reply[:4], "big") == 3
        answer = codec.decode(apis.api(0).response, 9, reply, 5).responses[0].partition_responses[0]
        assert answer.error_code == 0
        got = client.ask(fetch(answer.base_offset, 0), 11).responses[0].partitions[0]
        assert value in bytes(got.records)


def test_large_frames_that_use_a_buffer_again_keep_what_is_theirs(broker: Broker) -> None:
    sizes = [300_000, 200_000, 900_000, 150_000, 899_999, 300_001, 700_000, 600_000, 1_000_000, 160_000]
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(broker)) for _ in range(6)]
        produced = []
        # All have sent half of a frame before any sends the rest, so that each needs a buffer.
        for turn in range(0, len(sizes), 2):
            values = [bytes([97 + turn + n]) * sizes[(turn + n) % len(sizes)] for n in range(len(clients))]
            frames = [frame(produce(value), 9, n) for n, value in enumerate(values)]
            for client, sent in zip(clients, frames, strict=True):
                client.send(sent[:100_000])
            for client, sent, value in zip(clients, frames, values, strict=True):
                client.send(sent[100_000:])
                answer = codec.decode(apis.api(0).response, 9, client.reply(), 5)
                produced.append((answer.responses[0].partition_responses[0].base_offset, value))
        for offset, value in produced:
            reading = fetch(offset, 0)
            reading.topics[0].partitions[0].partition_max_bytes = 1
            records = clients[0].ask(reading, 11).responses[0].partitions[0].records
            assert next(iter(read_records(records))).value == value
    spares = broker._listeners[0].scratch._spares
    assert 0 < len(spares) <= SPARE_FRAMES
    assert max(map(len, spares)) <= SPARE_FRAME_MAX


def test_small_frames_and_the_start_of_a_large_one_may_share_a_packet(broker: Broker) -> None:
    with Client(broker) as client:
        large = frame(produce(b"x" * 900_000), 9, 3)
        client.send(frame(ApiVersionsRequest(), 0, 1) + frame(ApiVersionsRequest(), 0, 2) + large)
        client.send(frame(ApiVersionsRequest(), 0, 4))
        assert [client.correlation_id() for _ in range(4)] == [1, 2, 3, 4]


# --- order -----------------------------------------------------------------------------------


def test_replies_leave_in_the_order_of_requests_even_when_one_waits(broker: Broker) -> None:
    with Client(broker) as client, Client(broker) as other:
        end = other.ask(produce(b"before"), 9).responses[0].partition_responses[0].base_offset + 1
        client.send(frame(fetch(end, 20_000), 11, 1))
        client.send(b"".join(frame(ApiVersionsRequest(), 0, n) for n in range(2, 40)))
        other.ask(produce(b"after"), 9)
        assert [client.correlation_id() for _ in range(39)] == list(range(1, 40))


def test_pipelined_produce_requests_keep_their_order(broker: Broker) -> None:
    with Client(broker) as client:
        count = 3 * UNANSWERED_MAX
        client.send(b"".join(frame(produce(str(n).encode(), acks=-1), 9, n) for n in range(count)))
        offsets = []
        for n in range(count):
            reply = client.reply()
            assert int.from_bytes(reply[:4], "big") == n
            offsets.append(
                codec.decode(apis.api(0).response, 9, reply, 5)
                .responses[0]
                .partition_responses[0]
                .base_offset
            )
        assert offsets == list(range(offsets[0], offsets[0] + count))


def test_pipelined_fetches_of_every_size_keep_their_order(broker: Broker) -> None:
    """Small answers leave together, large ones by themselves, and other requests come in between."""
    values = [
        bytes([65 + n]) * size for n, size in enumerate((1, 50_000, 100, 70_000, 30_000, 40_000, 200_000, 5))
    ]
    with Client(broker) as client:
        starts = [
            client.ask(produce(value), 9).responses[0].partition_responses[0].base_offset for value in values
        ]
        wanted = [n * 5 % len(values) for n in range(200)]
        asked = []
        for number, place in enumerate(wanted):
            reading = fetch(starts[place], 0)
            reading.topics[0].partitions[0].partition_max_bytes = 1
            asked += [frame(reading, 11, number), frame(ApiVersionsRequest(), 0, 1_000 + number)]
        client.send(b"".join(asked))
        for number, place in enumerate(wanted):
            reply = client.reply()
            assert int.from_bytes(reply[:4], "big") == number
            found = codec.decode(apis.api(1).response, 11, reply, 4).responses[0].partitions[0].records
            assert [record.value for record in read_records(found)] == [values[place]]
            assert client.correlation_id() == 1_000 + number


def test_acks_0_gets_no_reply_and_an_error_closes(broker: Broker) -> None:
    with Client(broker) as client:
        client.send(frame(produce(b"quiet", acks=0), 9, 1) + frame(ApiVersionsRequest(), 0, 2))
        assert client.correlation_id() == 2
        client.send(frame(produce(b"lost", acks=0, topic="no-such-topic"), 9, 3))
        assert client.is_closed()


# --- memory ----------------------------------------------------------------------------------


def test_a_client_that_does_not_read_stops_being_served(broker: Broker) -> None:
    with Client(broker) as client:
        start = client.ask(produce(b"x" * 900_000), 9).responses[0].partition_responses[0].base_offset
    with Client(broker, receive_buffer=64_000) as client:
        request = frame(fetch(start, 0), 11)
        client.socket.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):  # at some point the broker takes no more requests
            while sent < 200 << 20:
                sent += client.socket.send(request * 1000)
        held = unsent_bytes(broker)
        assert held < WRITE_BUFFER_MAX + (2 << 20)
        client.socket.settimeout(20)
        assert len(client.reply()) > 900_000  # and goes on when the client does


def unsent_bytes(broker: Broker) -> int:
    return max(
        connection._transport.get_write_buffer_size()
        for listener in broker._listeners
        for connection in list(listener._connections)
    )


# --- failures and limits ---------------------------------------------------------------------


def replace_handler(
    broker: Broker, key: int, version: int, handler: Callable[..., Any]
) -> Callable[[], None]:
    route = broker._listeners[0].routes.find(key, version)
    assert route is not None
    kept, route.handle = route.handle, handler
    return lambda: setattr(route, "handle", kept)


@pytest.mark.parametrize("waits", [False, True])
def test_a_handler_that_fails_answers_unknown_server_error_where_it_can(broker: Broker, waits: bool) -> None:
    async def broken(request: Any, ctx: Any) -> Any:
        if waits:
            await asyncio.sleep(0.001)
        raise ZeroDivisionError

    restore = replace_handler(broker, 18, 0, broken)
    try:
        with Client(broker) as client:
            assert client.ask(ApiVersionsRequest(), 0).error_code == -1
    finally:
        restore()


def test_a_handler_that_fails_without_a_place_to_say_so_closes_that_connection(broker: Broker) -> None:
    async def broken(request: Any, ctx: Any) -> Any:
        raise ZeroDivisionError

    restore = replace_handler(broker, 0, 9, broken)
    try:
        with Client(broker) as client, Client(broker) as other:
            client.send(frame(produce(b""), 9))
            assert client.is_closed()
            assert other.ask(MetadataRequest(topics=[]), 12).brokers
    finally:
        restore()


def test_a_handler_whose_wait_is_given_up_closes_the_connection(broker: Broker) -> None:
    async def given_up(request: Any, ctx: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.cancel)
        await future

    restore = replace_handler(broker, 18, 0, given_up)
    try:
        with Client(broker) as client:
            client.send(frame(ApiVersionsRequest(), 0))
            assert client.is_closed()
    finally:
        restore()


@pytest.mark.usefixtures("still_serving")
@pytest.mark.parametrize("waits", [False, True])
def test_an_answer_that_cannot_be_encoded_closes_the_connection(broker: Broker, waits: bool) -> None:
    async def wrong(request: Any, ctx: Any) -> Any:
        if waits:
            await asyncio.sleep(0)
        return object()

    restore = replace_handler(broker, 18, 0, wrong)
    try:
        with Client(broker) as client:
            client.send(frame(ApiVersionsRequest(), 0))
            assert client.is_closed()
    finally:
        restore()


@pytest.mark.usefixtures("still_serving")
def test_a_mistake_in_the_middle_of_a_turn_leaves_the_appends_before_it_whole(broker: Broker) -> None:
    def broken(buffer: Any, position: int, end: int) -> Any:
        raise ZeroDivisionError

    route = broker._listeners[0].routes.find(18, 0)
    assert route is not None
    log = broker.node.replicas.get(TOPIC, 0).log
    start = log.end_offset
    kept, route.read = route.read, broken
    try:
        with Client(broker) as client:
            client.send(frame(produce(b"whole" * 20), 9) + frame(ApiVersionsRequest(), 0))
            assert client.is_closed()
    finally:
        route.read = kept
    with Client(broker) as other:
        other.ask(MetadataRequest(topics=[MetadataRequestTopic(name="z" * 200)] * 40), 9)
        records = other.ask(fetch(start, 0), 11).responses[0].partitions[0].records
    assert [record.value for record in read_records(records)] == [b"whole" * 20]


def test_a_disk_that_fails_within_a_turn_harms_no_other_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fetch meets the write error first; what was appended to another disk lies in the same buffer."""
    files = FaultyFiles(OsFiles())
    monkeypatch.setattr("ottla.runtime.node.OsFiles", lambda: files)
    directories = f"{tmp_path}/one,{tmp_path}/two"
    with Broker(properties={"ottla.durability": "kafka", "log.dirs": directories}) as broker:
        with Client(broker) as client:
            for name in ("a", "b"):
                topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
            homes = {broker.node.replicas.get(name, 0).directory.path: name for name in ("a", "b")}
            good, bad = (homes[f"{tmp_path}/{name}"] for name in ("one", "two"))
            files.fail("write", f"*/{bad}-0/*.log")
            failing = fetch(0, 0)
            failing.topics[0].topic = bad
            client.send(
                frame(produce(b"good" * 100, topic=good), 9, 1)
                + frame(produce(b"bad", topic=bad), 9, 2)
                + frame(failing, 11, 3)
            )
            errors = []
            for cls, version in ((ProduceResponse, 9), (ProduceResponse, 9), (FetchResponse, 11)):
                answer = codec.decode(cls, version, client.reply(), 4 + (version == 9))
                [topic_answer] = answer.responses
                [partition] = getattr(topic_answer, "partition_responses", None) or topic_answer.partitions
                errors.append(partition.error_code)
            assert errors == [0, KafkaStorageError.code, KafkaStorageError.code]
        with Client(broker) as other:
            other.ask(MetadataRequest(topics=[MetadataRequestTopic(name="z" * 200)] * 40), 9)
            reading = fetch(0, 0)
            reading.topics[0].topic = good
            records = other.ask(reading, 11).responses[0].partitions[0].records
        assert [record.value for record in read_records(records)] == [b"good" * 100]


def test_a_fetch_that_has_nothing_to_wait_for_is_answered_at_once(broker: Broker) -> None:
    """With a wait of weeks each of these would run into the time-out of the socket."""
    weeks = 2**31 - 1
    with Client(broker) as client:
        start = client.ask(produce(b"x" * 100), 9).responses[0].partition_responses[0].base_offset
        nothing = fetch(start, weeks)
        nothing.topics = []
        assert client.ask(nothing, 12).responses == []
        more_than_fits = fetch(start, weeks, min_bytes=1 << 30)
        more_than_fits.max_bytes = 50
        assert len(client.ask(more_than_fits, 12).responses[0].partitions[0].records) > 100
        log = broker.node.replicas.get(TOPIC, 0).log
        client.ask(ApiVersionsRequest(), 0)
        log.roll(0)
        client.ask(produce(b"y"), 9)
        rest_of_the_segment = client.ask(fetch(start, weeks, min_bytes=1 << 20), 12)
        assert len(rest_of_the_segment.responses[0].partitions[0].records) > 100


def test_a_client_that_goes_away_takes_its_waiting_fetch_along(broker: Broker) -> None:
    with Client(broker) as client:
        end = client.ask(produce(b"x"), 9).responses[0].partition_responses[0].base_offset + 1
        with Client(broker) as waiting:
            waiting.send(frame(fetch(end, 2**31 - 1), 11))
        # A later request on another connection is answered after the broker has seen the first one go.
        partition = broker.node.replicas.get(TOPIC, 0)
        for _ in range(1000):
            client.ask(MetadataRequest(topics=[]), 12)
            if not partition._waiters:
                break
        assert not partition._waiters


def test_connections_leave_the_logs_the_files_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (150, 150))
    with Broker() as broker, ExitStack() as clients:
        for _ in range(16):
            clients.enter_context(Client(broker)).ask(ApiVersionsRequest(), 0)
        with Client(broker) as one_too_many:
            assert one_too_many.is_closed()


def test_an_idle_client_that_does_not_read_its_answers_is_cut_off() -> None:
    def ask_and_never_read(deaf: Client) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        deaf.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        for _ in range(10):
            deaf.ask(produce(b"x" * 900_000), 9)
        deaf.send(frame(fetch(0, 0), 11))

    async def story() -> None:
        properties = {"ottla.durability": "kafka", "connections.max.idle.ms": "500"}
        async with Broker(properties=properties) as broker:
            with Client(broker, receive_buffer=4096) as deaf:
                await asyncio.to_thread(ask_and_never_read, deaf)
                [connection] = broker._listeners[0]._connections
                gone = asyncio.get_running_loop().create_future()
                connection.endings[gone] = lambda: gone.set_result(None)
                async with asyncio.timeout(30):
                    await gone

    asyncio.run(story())


def test_no_more_connections_are_admitted_than_the_limits_say() -> None:
    with (
        Broker(properties={"max.connections.per.ip": "2"}) as broker,
        Client(broker) as one,
        Client(broker) as two,
    ):
        one.ask(ApiVersionsRequest(), 0)
        two.ask(ApiVersionsRequest(), 0)
        with Client(broker) as three:
            assert three.is_closed()
        one.ask(ApiVersionsRequest(), 0)


def test_an_idle_connection_is_closed() -> None:
    with Broker(properties={"connections.max.idle.ms": "200"}) as broker, Client(broker) as client:
        client.ask(ApiVersionsRequest(), 0)
        assert client.is_closed()
