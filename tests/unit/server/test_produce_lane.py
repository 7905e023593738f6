"""The short way answers what the long way answers, byte for byte, and appends the same records."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from typing import Any, cast

import pytest

from ottla import Broker
from ottla.protocol import apis, codec, headers
from ottla.protocol.batch import Record, read_records, write_batch
from ottla.protocol.errors import KafkaError, KafkaStorageError
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.server.context import Context
from ottla.server.produce_lane import ProduceLane, ProduceLanes

PARTITIONS = 3


@pytest.fixture(scope="module", params=["kafka", "durable"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(properties={"ottla.durability": request.param}) as broker:
        yield broker


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request that had a lane went through it."""
    outcomes: list[bool] = []
    original = ProduceLane.append

    def watched(self: ProduceLane, *args: Any) -> Any:
        answer = original(self, *args)
        outcomes.append(answer is not None)
        return answer

    monkeypatch.setattr(ProduceLane, "append", watched)
    return outcomes


class Client:
    def __init__(self, broker: Broker) -> None:
        self.socket = socket.create_connection(broker.addresses[0], timeout=20)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, request: Any, version: int, correlation_id: int = 7) -> bytes:
        body = headers.request_head(request.api_key, version, correlation_id, "lane") + codec.encode(
            request, version
        )
        self.socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))
        return self.socket.recv(size, socket.MSG_WAITALL)

    def ask(self, request: Any, version: int) -> Any:
        start = 4 + headers.response_header_version(request.api_key, version)
        return codec.decode(apis.api(request.api_key).response, version, self.send(request, version), start)


def new_topic(broker: Broker, name: str, **configs: str) -> str:
    with Client(broker) as client:
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert answer.topics[0].error_code == 0
    return name


def produce(
    broker: Broker, topic: str, partition: int, value: bytes, acks: int = 1, **batch: Any
) -> ProduceRequest:
    records = write_batch(
        [Record(offset=0, timestamp=1_700_000_000_000, key=b"k", value=value, headers=[])], **batch
    )
    return ProduceRequest(
        acks=acks,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=broker.node.image.topics[topic].id,
                partition_data=[PartitionProduceData(index=partition, records=records)],
            )
        ],
    )


def values(broker: Broker, topic: str, partition: int) -> list[bytes | None]:
    log = broker.node.replicas.get(topic, partition).log
    found = log.read(0, 1 << 20, log.end_offset)
    records = []
    position = 0
    while position < len(found):
        size = 12 + struct.unpack_from(">i", found, position + 8)[0]
        records += read_records(found[position : position + size])
        position += size
    return [record.value for record in records]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_answers_are_the_same_bytes_either_way(
    broker: Broker, taken: list[bool], version: int, acks: int
) -> None:
    long_way = new_topic(broker, f"long-{version}-{acks}")
    short_way = new_topic(broker, f"shrt-{version}-{acks}")
    sizes = [1, 10, 60, 100, 127, 128, 16_000, 20_000, 300_000]
    for number, size in enumerate(sizes):
        with Client(broker) as client:  # a new connection knows no lanes
            slow = client.send(produce(broker, long_way, 1, b"v" * size, acks), version, number)
        if number == 0:
            learned = Client(broker)
        fast = learned.send(produce(broker, short_way, 1, b"v" * size, acks), version, number)
        slow_id, fast_id = (broker.node.image.topics[name].id for name in (long_way, short_way))
        assert fast == slow.replace(long_way.encode(), short_way.encode()).replace(slow_id, fast_id)
    learned.socket.close()
    assert values(broker, short_way, 1) == [b"v" * size for size in sizes]
    assert taken == ([True] * (len(sizes) - 1) if version >= 7 else [])


@pytest.mark.parametrize("version", [8, 9, 13])
@pytest.mark.parametrize("error", [KafkaStorageError("the disk is gone"), None])
def test_a_sync_that_fails_or_takes_too_long_is_told_the_same_either_way(
    broker: Broker,
    taken: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    error: KafkaError | None,
) -> None:
    def unsynced(*_: object) -> asyncio.Future[None]:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if error is not None:
            never.set_exception(error)
        return never

    topic = new_topic(broker, f"unsynced-{version}-{error is None}")
    with Client(broker) as client:
        monkeypatch.setattr(broker.node, "synced", unsynced)
        asked = produce(broker, topic, 0, b"v", -1)
        asked.timeout_ms = 10
        answers = [client.send(asked, version) for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        answer = client.ask(asked, version).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (7 if error is None else error.code, -1)
    assert taken == [True] * 3


def test_a_producer_has_a_lane_for_each_partition(broker: Broker, taken: list[bool]) -> None:
    topic, other = new_topic(broker, "many"), new_topic(broker, "many-others")
    with Client(broker) as client:
        for turn in range(3):
            for name in (topic, other):
                for partition in range(PARTITIONS):
                    client.send(produce(broker, name, partition, b"%d" % turn), 9)
    assert len(taken) == 2 * 2 * PARTITIONS and all(taken)
    assert values(broker, other, 2) == [b"0", b"1", b"2"]


def test_what_cannot_be_appended_is_answered_the_long_way(broker: Broker, taken: list[bool]) -> None:
    topic = new_topic(broker, "refused")
    with Client(broker) as client:
        client.send(produce(broker, topic, 0, b"fine"), 9)
        bad = produce(broker, topic, 0, b"bad crc")
        records = bytearray(bad.topic_data[0].partition_data[0].records or b"")
        records[-1] ^= 1
        bad.topic_data[0].partition_data[0].records = records
        assert client.ask(bad, 9).responses[0].partition_responses[0].error_code == 2
        assert (
            client.ask(produce(broker, topic, 0, b"fine"), 9).responses[0].partition_responses[0].base_offset
            == 1
        )
    assert taken == [False, True]


def test_transactional_batches_and_odd_requests_take_the_long_way(broker: Broker, taken: list[bool]) -> None:
    topic = new_topic(broker, "odd")
    with Client(broker) as client:
        client.send(produce(broker, topic, 0, b"fine"), 9)
        transactional = produce(
            broker, topic, 0, b"t", producer_id=1, producer_epoch=0, base_sequence=0, attributes=0x10
        )
        answer = client.ask(transactional, 9).responses[0].partition_responses[0]
        assert answer.error_code == 53  # without a transactional id
        two = produce(broker, topic, 0, b"two")
        two.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=None))
        codes = [p.error_code for p in client.ask(two, 9).responses[0].partition_responses]
        assert codes == [0, 87]
        empty = produce(broker, topic, 0, b"")
        empty.topic_data[0].partition_data[0].records = None
        assert client.ask(empty, 9).responses[0].partition_responses[0].error_code == 87
    assert taken.count(True) == 0


def test_acks_that_do_not_exist_are_refused_every_time(broker: Broker) -> None:
    topic = new_topic(broker, "acks")
    with Client(broker) as client:
        for _ in range(3):
            answer = (
                client.ask(produce(broker, topic, 0, b"x", acks=2), 9).responses[0].partition_responses[0]
            )
            assert answer.error_code == 21
    assert values(broker, topic, 0) == []


@pytest.mark.parametrize("version", [7, 9])
def test_a_frame_that_ends_where_its_length_should_be_goes_the_long_way(broker: Broker, version: int) -> None:
    topic = new_topic(broker, f"short-{version}")
    route = broker._listeners[0].routes.find(0, version)
    assert route is not None
    request = produce(broker, topic, 0, b"x")
    head = headers.request_head(0, version, 1, "lane")
    frame = bytearray(head + codec.encode(request, version))
    lanes = ProduceLanes()
    ctx = Context(version, "lane", cast(Any, None), broker.node)
    lanes.learn(ctx, route, codec.decode(ProduceRequest, version, frame, len(head)), frame, 0, len(frame))
    lane = lanes.find(frame, 0, version)
    assert lane is not None
    whole = frame[: 8 + len(lane.prefix)]
    endless = whole + b"\xff" * 1000
    for short in (whole, whole + b"\xff", endless, endless + b"\x01"):
        assert lane.append(short, 0, len(short), 1) is None
    # The bytes of the next frame do not complete this one.
    assert lane.append(frame, 0, len(whole) - 1, 1) is None
    assert values(broker, topic, 0) == []


def test_a_topic_that_is_deleted_and_made_again_is_not_written_through_an_old_lane(broker: Broker) -> None:
    topic = new_topic(broker, "reborn")
    with Client(broker) as client:
        for _ in range(3):
            client.send(produce(broker, topic, 0, b"old"), 9)
        gone = produce(broker, topic, 0, b"new")
        client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000), 6)
        assert client.ask(gone, 9).responses[0].partition_responses[0].error_code == 3
        new_topic(broker, topic)
        for offset in range(3):
            answer = client.ask(produce(broker, topic, 0, b"new"), 9).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, offset)
    assert values(broker, topic, 0) == [b"new"] * 3


def test_lanes_are_bounded(broker: Broker) -> None:
    topic = new_topic(broker, "bounded")
    route = broker._listeners[0].routes.find(0, 9)
    assert route is not None
    lanes = ProduceLanes()
    for number in range(2 * ProduceLanes.LANES_MAX):
        request = produce(broker, topic, 0, b"x")
        request.timeout_ms = number
        frame = bytearray(headers.request_head(0, 9, 1, "lane") + codec.encode(request, 9))
        decoded = codec.decode(ProduceRequest, 9, frame, len(headers.request_head(0, 9, 1, "lane")))
        lanes.learn(Context(9, "lane", cast(Any, None), broker.node), route, decoded, frame, 0, len(frame))
    assert len(lanes._lanes) == ProduceLanes.LANES_MAX


def test_requests_for_several_partitions_do_not_keep_a_producer_off_its_lanes(
    broker: Broker, taken: list[bool]
) -> None:
    topic = new_topic(broker, "mixed")
    several = produce(broker, topic, 0, b"first")
    several.topic_data[0].partition_data += produce(broker, topic, 1, b"x").topic_data[0].partition_data
    with Client(broker) as client:
        for _ in range(100):
            client.send(several, 9)
        for _ in range(2):
            client.send(produce(broker, topic, 0, b"last"), 9)
    assert taken == [True]
    assert values(broker, topic, 0) == [b"first"] * 100 + [b"last"] * 2
