"""What one door writes every other door reads; and the examples of other brokers, as they are written."""

from __future__ import annotations

import json
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import pytest
from confluent_kafka import Producer
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.interop.clients import ConfluentProducer, confluent_consumer, read_with_confluent
from tests.interop.nodes import Node
from tests.interop.topics import Names, create_topic

SECONDS = 30.0


@pytest.fixture(autouse=True)
def only_ottla(referee: bool) -> None:
    if referee:
        pytest.skip("Apache Kafka has one door")


def nc(bootstrap: str, *lines: str) -> list[str]:
    """What `nc` prints for these lines, typed into it."""
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
        connection.sendall("".join(f"{line}\n" for line in lines).encode())
        connection.shutdown(socket.SHUT_WR)
        data = b""
        while part := connection.recv(65536):
            data += part
    return data.decode().splitlines()


class Grpc:
    """Calls by name and JSON-like fields, with nothing but reflection to know them by."""

    def __init__(self, bootstrap: str) -> None:
        self.channel = grpc.insecure_channel(bootstrap)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        self._service = descriptor_pool.DescriptorPool(database).FindServiceByName("broker.Broker")

    def call(self, name: str, **fields: Any) -> Any:
        kind = self._service.methods_by_name[name].input_type
        return self._send(name, message_factory.GetMessageClass(kind)(**fields))

    def call_with_json(self, name: str, text: str) -> Any:
        """As grpcurl does it: from JSON to the message that reflection describes, and back."""
        kind = self._service.methods_by_name[name].input_type
        answer = self._send(name, json_format.Parse(text, message_factory.GetMessageClass(kind)()))
        return json.loads(json_format.MessageToJson(answer))

    def _send(self, name: str, request: Any) -> Any:
        method = self._service.methods_by_name[name]
        stub = self.channel.unary_unary(
            f"/broker.Broker/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        return stub(request, timeout=SECONDS)


@pytest.fixture
def rpc(bootstrap: str) -> Iterator[Grpc]:
    client = Grpc(bootstrap)
    yield client
    client.channel.close()


# --- the examples, as written ----------------------------------------------------------------


@pytest.mark.parametrize("quote", ["", '"'])
def test_the_text_examples_as_written(node: Node, quote: str) -> None:
    produced = nc(node.bootstrap, f"{quote}PRODUCE Payments key1 HelloWorld{quote}")
    assert produced == ["OK Payments 0 0"]
    consumed = nc(node.bootstrap, f"{quote}CONSUME Payments 0 0{quote} ")
    assert consumed == ["0 0 key1 HelloWorld", "END 1"]


def grpcurl(bootstrap: str, line: str) -> Any:
    """What a line of grpcurl's prints, by its own means: reflection, and protobuf's JSON."""
    _, plaintext, d, data, address, method = shlex.split(line)
    assert (plaintext, d, address) == ("-plaintext", "-d", "localhost:9092")
    service, name = method.split("/")
    assert service == "broker.Broker"
    rpc = Grpc(bootstrap)
    try:
        return rpc.call_with_json(name, data)
    finally:
        rpc.channel.close()


CREATE = """grpcurl -plaintext -d '{"topic":"test-topic","partitions":3}' localhost:9092 broker.Broker/CreateTopic"""  # noqa: E501
PRODUCE = """grpcurl -plaintext -d '{"topic":"test-topic","partition":0,"payload":"SGVsbG8gV29ybGQ="}' localhost:9092 broker.Broker/Produce"""  # noqa: E501
CONSUME = """grpcurl -plaintext -d '{"topic":"test-topic","partition":0,"offset":0}' localhost:9092 broker.Broker/Consume"""  # noqa: E501


def test_the_grpc_examples_as_written(node: Node) -> None:
    assert grpcurl(node.bootstrap, CREATE) == {"topic": "test-topic", "partitions": 3}
    produced = grpcurl(node.bootstrap, PRODUCE)
    # A 0 is shown, though protobuf's JSON leaves out what is at its default.
    assert produced == {
        "topic": "test-topic",
        "partition": 0,
        "offset": "0",
        "timestamp": produced["timestamp"],
    }
    read = grpcurl(node.bootstrap, CONSUME)
    assert read == {
        "messages": [
            {
                "partition": 0,
                "offset": "0",
                "timestamp": produced["timestamp"],
                "payload": "SGVsbG8gV29ybGQ=",
            }
        ],
        "nextOffset": "1",
        "endOffset": "1",
    }


# --- from door to door -----------------------------------------------------------------------


def write_with_kafka(bootstrap: str, topic: str, key: str, value: str) -> None:
    producer = ConfluentProducer(bootstrap, compression_type="lz4", partitioner="murmur2_random")
    producer.send(topic, value.encode(), key=key.encode())
    producer.flush()


def write_with_text(bootstrap: str, topic: str, key: str, value: str) -> None:
    (answer,) = nc(bootstrap, f"PRODUCE {topic} {key} {value}")
    assert answer.startswith(f"OK {topic} ")


def write_with_grpc(bootstrap: str, topic: str, key: str, value: str) -> None:
    rpc = Grpc(bootstrap)
    rpc.call("Produce", topic=topic, key=key.encode(), payload=value.encode())
    rpc.channel.close()


def read_with_kafka(bootstrap: str, topic: str, partition: int, count: int) -> list[tuple[str, str]]:
    messages = read_with_confluent(bootstrap, topic, count, partitions=[partition])
    return [((message.key() or b"").decode(), (message.value() or b"").decode()) for message in messages]


def read_with_text(bootstrap: str, topic: str, partition: int, count: int) -> list[tuple[str, str]]:
    *lines, _ = nc(bootstrap, f"CONSUME {topic} {partition} 0")
    return [(line.split()[2], line.split(maxsplit=3)[3]) for line in lines]


def read_with_grpc(bootstrap: str, topic: str, partition: int, count: int) -> list[tuple[str, str]]:
    rpc = Grpc(bootstrap)
    read = rpc.call("Consume", topic=topic, partition=partition, offset=0)
    rpc.channel.close()
    return [(message.key.decode(), message.payload.decode()) for message in read.messages]


Write = Callable[[str, str, str, str], None]
Read = Callable[[str, str, int, int], list[tuple[str, str]]]
WRITERS: dict[str, Write] = {"kafka": write_with_kafka, "text": write_with_text, "grpc": write_with_grpc}
READERS: dict[str, Read] = {"kafka": read_with_kafka, "text": read_with_text, "grpc": read_with_grpc}


@pytest.mark.parametrize("reader", READERS)
def test_what_every_door_has_written_each_door_reads(bootstrap: str, unique: Names, reader: str) -> None:
    topic = unique("doors")
    create_topic(bootstrap, topic, 1, {})
    expected = []
    for turn in range(2):
        for name, write in WRITERS.items():
            write(bootstrap, topic, f"{name}-{turn}", f"from {name}")
            expected.append((f"{name}-{turn}", f"from {name}"))
    assert READERS[reader](bootstrap, topic, 0, len(expected)) == expected


def test_every_door_puts_a_key_into_the_same_partition(bootstrap: str, unique: Names) -> None:
    topic = unique("keys")
    create_topic(bootstrap, topic, 7, {})
    keys = [f"key{number}" for number in range(10)]
    for key in keys:
        for name, write in WRITERS.items():
            write(bootstrap, topic, key, name)
    found: dict[str, list[int]] = {}
    for partition in range(7):
        for key, _ in read_with_text(bootstrap, topic, partition, 0):
            found.setdefault(key, []).append(partition)
    assert sorted(found) == sorted(keys)
    assert all(len(partitions) == 3 and len(set(partitions)) == 1 for partitions in found.values())


def test_a_follower_at_the_text_door_sees_what_a_kafka_producer_sends(bootstrap: str, topic: str) -> None:
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
        lines = connection.makefile("r")
        connection.sendall(f"FOLLOW {topic}\n".encode())
        assert lines.readline() == f"OK following {topic}\n"
        write_with_kafka(bootstrap, topic, "k", "live")
        assert lines.readline() == "0 0 k live\n"


def test_the_offsets_of_a_kafka_group_are_seen_at_every_door(
    bootstrap: str, topic: str, unique: Names, rpc: Grpc
) -> None:
    group = unique("group")
    for number in range(5):
        write_with_kafka(bootstrap, topic, "k", str(number))
    with confluent_consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        messages: list[Any] = []
        deadline = time.monotonic() + SECONDS
        while len(messages) < 3 and time.monotonic() < deadline:
            messages += [
                message for message in consumer.consume(3 - len(messages), 0.5) if not message.error()
            ]
        consumer.commit(asynchronous=False, message=messages[2])
    assert dict(rpc.call("CommittedOffsets", group=group, topic=topic).offsets) == {0: 3}
    assert nc(bootstrap, f"OFFSETS {topic} {group}") == ["0 0 5 3", "END 1"]
    metrics = httpx.get(f"http://{bootstrap}/metrics").text
    row = f'kafka_consumergroup_lag{{consumergroup="{group}",partition="0",topic="{topic}"}} 2.0'
    assert row in metrics.splitlines()


def test_offsets_set_at_the_grpc_door_are_where_a_kafka_consumer_starts(
    bootstrap: str, topic: str, unique: Names, rpc: Grpc
) -> None:
    group = unique("group")
    for number in range(5):
        write_with_text(bootstrap, topic, "k", str(number))
    rpc.call("CommitOffsets", group=group, topic=topic, offsets={0: 3})
    with confluent_consumer(bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        values: list[bytes | None] = []
        deadline = time.monotonic() + SECONDS
        while len(values) < 2 and time.monotonic() < deadline:
            values += [message.value() for message in consumer.consume(2, 0.5) if not message.error()]
    assert values == [b"3", b"4"]


def test_doors_do_not_show_what_a_transaction_has_aborted(
    bootstrap: str, topic: str, unique: Names, rpc: Grpc
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": unique("transaction")})
    producer.init_transactions(SECONDS)
    for value, commits in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic, value, key=b"k")
        producer.flush(SECONDS)
        if commits:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
    assert [line for line in nc(bootstrap, f"CONSUME {topic} 0 0") if "END" not in line] == [
        "0 2 k committed"
    ]
    read = rpc.call("Consume", topic=topic, partition=0, offset=0)
    assert [message.payload for message in read.messages] == [b"committed"]


# --- one door does not harm another ----------------------------------------------------------


def test_noise_at_the_other_doors_does_not_disturb_a_kafka_client(node: Node) -> None:
    """Bad input of every kind, while a producer counts on every delivery."""
    create_topic(node.bootstrap, "steady", 1, {})
    host, port = node.bootstrap.rsplit(":", 1)
    stop = threading.Event()
    noise = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\xff" * 500,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 5000,
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n",
        b"CONSUME steady 0 0 100000\n" * 50,
        b"FOLLOW steady 0 0\n" * 20,
        b"PRODUCE " + b"x" * 300_000,
        b"\xff\xd8\xff\xe0" * 100,
        b"TOPICS\n" * 2000,
    ]

    def make_noise() -> None:
        while not stop.is_set():
            for data in noise:
                try:
                    with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
                        connection.sendall(data)
                except OSError:
                    continue

    thread = threading.Thread(target=make_noise)
    thread.start()
    try:
        producer = ConfluentProducer(node.bootstrap, acks="all")
        for number in range(300):
            producer.send("steady", str(number).encode())
        assert len(producer.flush()) == 300
    finally:
        stop.set()
        thread.join()
    values = [message.value() for message in read_with_confluent(node.bootstrap, "steady", 300)]
    assert values == [str(number).encode() for number in range(300)]
    assert httpx.get(f"http://{node.bootstrap}/health").status_code == 200


def test_what_the_doors_acknowledged_survives_a_kill(node: Node) -> None:
    rpc = Grpc(node.bootstrap)
    rpc.call("CreateTopic", topic="kept", partitions=1)
    rpc.call("Produce", topic="kept", payload=b"grpc")
    rpc.channel.close()
    assert nc(node.bootstrap, "PRODUCE kept k text") == ["OK kept 0 1"]
    node.kill()
    node.start()
    assert nc(node.bootstrap, "CONSUME kept 0 0") == ["0 0 - grpc", "0 1 k text", "END 2"]
