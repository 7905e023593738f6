"""The gRPC door, through a client that has only reflection to go by."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from ottla import Broker
from ottla.client.partitioner import partition_of_key
from ottla.gateways.grpc import messages
from ottla.gateways.grpc.door import MISSING
from ottla.gateways.grpc.server import MESSAGE_MAX
from ottla.gateways.grpc.status import status_of
from ottla.protocol import errors
from ottla.protocol.errors import KafkaError
from tests.unit.gateways.conftest import QUICK, Caller
from tests.unit.gateways.grpc_client import Reflected
from tools.compile_proto import COMPILED, PROTO, compiled


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[Reflected]:
    with Reflected(broker.bootstrap) as client:
        yield client


def refused(call: Any) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


# --- the seed's calls ------------------------------------------------------------------------


def test_the_three_calls_of_the_seed(client: Reflected) -> None:
    created = client.call("CreateTopic", topic="test-topic", partitions=3)
    assert (created.topic, created.partitions) == ("test-topic", 3)
    written = client.call("Produce", topic="test-topic", partition=0, payload=b"Hello World")
    assert (written.partition, written.offset) == (0, 0)
    read = client.call("Consume", topic="test-topic", partition=0, offset=0)
    assert [message.payload for message in read.messages] == [b"Hello World"]
    assert (read.next_offset, read.end_offset) == (1, 1)


def test_reflection_lists_the_service(client: Reflected) -> None:
    assert "broker.Broker" in client.database.get_services()


def test_the_compiled_descriptors_are_those_of_the_proto() -> None:
    assert COMPILED.read_bytes() == compiled(), "run: make proto"
    assert Path(messages.__file__).parent == PROTO.parent


def test_every_method_of_the_proto_is_served(client: Reflected) -> None:
    for method in messages.service().methods:
        if method.client_streaming:
            assert list(client.converse(method.name, [])) == []
        elif method.server_streaming:
            error = refused(lambda name=method.name: list(client.stream(name)))
            assert error.code() is not grpc.StatusCode.UNIMPLEMENTED
        elif method.name != "ListTopics":
            error = refused(lambda name=method.name: client.call(name))
            assert error.code() is not grpc.StatusCode.UNIMPLEMENTED


# --- producing -------------------------------------------------------------------------------


def test_without_a_partition_the_key_decides_or_they_take_turns(client: Reflected) -> None:
    client.call("CreateTopic", topic="placed", partitions=3)
    for key in (b"a", b"key1", b"\xff"):
        written = client.call("Produce", topic="placed", key=key, payload=b"v")
        assert written.partition == partition_of_key(key, 3)
    turns = [client.call("Produce", topic="placed", payload=b"v").partition for _ in range(6)]
    assert turns == [0, 1, 2, 0, 1, 2]


def test_a_message_keeps_everything_it_was_given(client: Reflected) -> None:
    client.call(
        "Produce",
        topic="complete",
        key=b"k",
        payload=b"v",
        timestamp=1_700_000_000_123,
        headers=[{"key": "trace", "value": b"\x00\x01"}, {"key": "none"}],
    )
    client.call("Produce", topic="complete", key=b"k", tombstone=True)
    client.call("Produce", topic="complete", payload=b"")
    first, second, third = client.call("Consume", topic="complete").messages
    assert (first.key, first.payload, first.timestamp) == (b"k", b"v", 1_700_000_000_123)
    assert [(header.key, header.value) for header in first.headers] == [("trace", b"\x00\x01"), ("none", b"")]
    assert first.headers[0].HasField("value") and not first.headers[1].HasField("value")
    assert second.tombstone and second.HasField("key")
    assert not third.tombstone and not third.HasField("key") and third.payload == b""


def test_a_stream_of_messages_is_appended_in_order(client: Reflected) -> None:
    client.call("CreateTopic", topic="streamed", partitions=1)
    requests = [
        client.request("ProduceStream", topic="streamed", payload=str(number).encode())
        for number in range(500)
    ]
    offsets = [answer.offset for answer in client.converse("ProduceStream", requests)]
    assert offsets == list(range(500))
    read = client.call("Consume", topic="streamed", partition=0, offset=0)
    assert [message.payload for message in read.messages] == [str(number).encode() for number in range(500)]


def test_a_stream_answers_each_message_before_the_next_one_comes(client: Reflected) -> None:
    answered = threading.Semaphore(1)

    def requests() -> Iterator[Any]:
        for _ in range(5):
            assert answered.acquire(timeout=10)
            yield client.request("ProduceStream", topic="ping-pong", payload=b"v")

    count = 0
    for _ in client.converse("ProduceStream", requests()):
        count += 1
        answered.release()
    assert count == 5


def test_the_first_failure_ends_a_stream_of_messages(client: Reflected) -> None:
    requests = [
        client.request("ProduceStream", topic="half-good", payload=b"good"),
        client.request("ProduceStream", topic="half-good", partition=9, payload=b"bad"),
    ]
    answers = client.converse("ProduceStream", requests)
    assert next(answers).offset == 0
    assert refused(lambda: next(answers)).code() is grpc.StatusCode.NOT_FOUND


# --- consuming -------------------------------------------------------------------------------


def test_consuming_takes_as_many_messages_as_were_asked_for(client: Reflected) -> None:
    for number in range(5):
        client.call("Produce", topic="five", payload=str(number).encode())
    read = client.call("Consume", topic="five", partition=0, offset=1, max_messages=2)
    assert [message.offset for message in read.messages] == [1, 2]
    assert (read.next_offset, read.end_offset) == (3, 5)
    at_end = client.call("Consume", topic="five", partition=0, offset=5)
    assert not at_end.messages and at_end.next_offset == 5


def test_consuming_may_wait_for_a_message(broker: Broker, client: Reflected) -> None:
    client.call("CreateTopic", topic="awaited")
    with Caller(broker.addresses[0]) as caller:
        request = client.request("Consume", topic="awaited", wait_ms=15_000)
        stub = client._stub("Consume", "unary_unary")
        waiting = stub.future(request, timeout=20)
        caller.ask("PRODUCE awaited k v")
        assert [message.payload for message in waiting.result().messages] == [b"v"]


def test_a_stream_reads_on_as_messages_come(client: Reflected) -> None:
    client.call("CreateTopic", topic="followed", partitions=2)
    client.call("Produce", topic="followed", partition=0, payload=b"0")
    stream = client.stream("ConsumeStream", topic="followed", earliest=True)
    assert next(stream).payload == b"0"
    client.call("Produce", topic="followed", partition=1, payload=b"1")
    message = next(stream)
    assert (message.partition, message.payload) == (1, b"1")
    client.call("Produce", topic="followed", partition=0, payload=b"2")
    assert next(stream).payload == b"2"
    stream.cancel()


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"offset": 2}, [2, 3]),
        ({"timestamp": 1_700_000_000_001}, [1, 2, 3]),
        ({"earliest": True}, [0, 1, 2, 3]),
    ],
)
def test_a_stream_starts_at_an_offset_or_a_time(
    client: Reflected, start: dict[str, Any], expected: list[int]
) -> None:
    topic = f"starts-{'-'.join(start)}"
    for number in range(4):
        client.call("Produce", topic=topic, payload=b"v", timestamp=1_700_000_000_000 + number)
    stream = client.stream("ConsumeStream", topic=topic, partition=0, max_messages=len(expected), **start)
    assert [message.offset for message in stream] == expected


def test_a_stream_goes_on_with_partitions_that_are_added(
    broker: Broker, client: Reflected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.gateways.grpc.following.LOOK_AGAIN_SECONDS", 0.1)
    client.call("CreateTopic", topic="grows", partitions=1)
    client.call("Produce", topic="grows", payload=b"0")
    stream = client.stream("ConsumeStream", topic="grows", earliest=True)
    assert next(stream).payload == b"0"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions("grows", 2)])["grows"].result(20)
    client.call("Produce", topic="grows", partition=1, payload=b"1")
    message = next(stream)
    assert (message.partition, message.offset, message.payload) == (1, 0, b"1")
    stream.cancel()


def test_a_stream_of_a_topic_that_is_deleted_ends(broker: Broker, client: Reflected) -> None:
    client.call("Produce", topic="doomed", payload=b"v")
    stream = client.stream("ConsumeStream", topic="doomed", earliest=True)
    next(stream)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["doomed"])["doomed"].result(20)
    assert refused(lambda: next(stream)).code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE)


# --- topics and groups -----------------------------------------------------------------------


def test_topics_are_listed_with_their_partitions(client: Reflected) -> None:
    client.call("CreateTopic", topic="listed", partitions=4)
    topics = {topic.topic: topic.partitions for topic in client.call("ListTopics").topics}
    assert topics["listed"] == 4
    assert not any(name.startswith("__") for name in topics)


def test_a_topic_takes_configs(client: Reflected) -> None:
    client.call("CreateTopic", topic="configured", configs={"retention.ms": "1000"})
    error = refused(lambda: client.call("CreateTopic", topic="wrong", configs={"no.such": "1"}))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_group_has_the_offsets_it_was_given(client: Reflected) -> None:
    client.call("CreateTopic", topic="grouped", partitions=3)
    assert dict(client.call("CommittedOffsets", group="readers", topic="grouped").offsets) == {}
    client.call("CommitOffsets", group="readers", topic="grouped", offsets={0: 5, 2: 7})
    assert dict(client.call("CommittedOffsets", group="readers", topic="grouped").offsets) == {0: 5, 2: 7}


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "fields", "status", "name"),
    [
        ("CreateTopic", {"topic": "bad/name"}, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_TOPIC_EXCEPTION"),
        (
            "CreateTopic",
            {"topic": "t", "partitions": -5},
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_PARTITIONS",
        ),
        ("CreateTopic", {"topic": "here"}, grpc.StatusCode.ALREADY_EXISTS, "TOPIC_ALREADY_EXISTS"),
        (
            "Produce",
            {"topic": "here", "partition": 5},
            grpc.StatusCode.NOT_FOUND,
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
        ("Produce", {"topic": ""}, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_TOPIC_EXCEPTION"),
        ("Consume", {"topic": "nothing"}, grpc.StatusCode.NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("Consume", {"topic": "here", "offset": 9}, grpc.StatusCode.OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE"),
        ("Consume", {"topic": "here", "offset": -9}, grpc.StatusCode.OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE"),
        (
            "Consume",
            {"topic": "here", "max_messages": -1},
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_REQUEST",
        ),
        (
            "CommitOffsets",
            {"group": "", "topic": "here", "offsets": {0: 1}},
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_GROUP_ID",
        ),
    ],
)
def test_an_error_has_a_fitting_status_and_its_name_in_kafka(
    client: Reflected, method: str, fields: dict[str, Any], status: grpc.StatusCode, name: str
) -> None:
    if "here" not in {topic.topic for topic in client.call("ListTopics").topics}:
        client.call("CreateTopic", topic="here")
    error = refused(lambda: client.call(method, **fields))
    assert error.code() is status
    trailing = dict(error.trailing_metadata())
    assert error.details().startswith(f"{trailing['kafka-error']}: ")
    assert trailing["kafka-error"] == name


@pytest.mark.parametrize(
    "kind",
    [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, KafkaError)],
    ids=lambda kind: kind.name,
)
def test_errors_that_pass_have_a_status_that_clients_retry(kind: type[KafkaError]) -> None:
    status = status_of(kind())
    assert status is not grpc.StatusCode.OK
    if status is grpc.StatusCode.UNAVAILABLE:
        assert kind.retriable


def test_a_message_that_is_too_large_is_refused(client: Reflected) -> None:
    error = refused(lambda: client.call("Produce", topic="large", payload=b"x" * (MESSAGE_MAX + 1)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    nearly = refused(lambda: client.call("Produce", topic="large", payload=b"x" * ((1 << 20) + 100)))
    assert nearly.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert client.call("Produce", topic="large", payload=b"x" * 1_000_000).offset == 0
    assert len(client.call("Consume", topic="large").messages[0].payload) == 1_000_000


def test_a_call_that_is_not_there_is_unimplemented(client: Reflected) -> None:
    stub = client.channel.unary_unary("/broker.Broker/Frobnicate")
    assert refused(lambda: stub(b"", timeout=10)).code() is grpc.StatusCode.UNIMPLEMENTED


def test_bytes_that_are_no_message_harm_nobody(client: Reflected) -> None:
    stub = client.channel.unary_unary("/broker.Broker/Produce")
    assert refused(lambda: stub(b"\xff" * 100, timeout=10)).code() is not grpc.StatusCode.OK
    assert client.call("ListTopics") is not None


# --- the connection --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 200, b"PRI nonsense\r\n\r\n" * 20]
)
def test_what_only_begins_like_http_2_is_hung_up_on(broker: Broker, client: Reflected, sent: bytes) -> None:
    with Caller(broker.addresses[0]) as caller:
        caller.socket.sendall(sent)
        caller.hang_up()
    assert client.call("ListTopics") is not None


def test_a_broker_stops_while_clients_stream() -> None:
    with Broker(properties=QUICK) as broker, Reflected(broker.bootstrap) as client:
        client.call("Produce", topic="open", payload=b"v")
        stream = client.stream("ConsumeStream", topic="open", earliest=True)
        next(stream)
    assert refused(lambda: next(stream)).code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def test_a_broker_without_grpcio_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(properties=QUICK) as broker:
        with grpc.insecure_channel(broker.bootstrap) as channel:
            call = channel.unary_unary("/broker.Broker/ListTopics")
            monkeypatch.setitem(sys.modules, "grpc", None)
            for _ in range(2):  # on one connection
                error = refused(lambda: call(b"", timeout=30))
                assert (error.code(), error.details()) == (grpc.StatusCode.UNIMPLEMENTED, MISSING.decode())
        with Caller(broker.addresses[0]) as caller:
            caller.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100)
            assert caller.hang_up() == b"\0\0\0\x04\0\0\0\0\0"
        with Caller(broker.addresses[0]) as caller:
            assert caller.ask("CREATE still-here") == "OK still-here 1"


def test_a_broker_that_nobody_speaks_grpc_to_does_not_load_it() -> None:
    script = """
import sys
from ottla import Broker
with Broker() as broker:
    loaded = [name for name in sys.modules if name.split(".")[0] in ("grpc", "h11", "prometheus_client")]
    loaded += [name for name in sys.modules if name.startswith("ottla.gateways")]
print(loaded)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
