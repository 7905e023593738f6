"""The blocking connection against servers that say what a test tells them to."""

from __future__ import annotations

import select
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.errors import Disconnected, NoAnswer, NotKafka, UnsupportedRequest
from ottla.protocol.codec import encode
from ottla.protocol.headers import RequestHeader, response_head
from ottla.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted import API_VERSIONS, METADATA, answer, serving
from tests.unit.client.scripted_socket import Script, framed, greeting, server


@contextmanager
def connected(then: Script, timeout: float = 30.0) -> Iterator[BlockingConnection]:
    """A connection to a server that agrees on versions and goes on with this."""
    opened = BlockingConnection.open
    with server(greeting(then)) as port, opened("127.0.0.1", port, timeout=timeout) as connection:
        yield connection


def test_a_request_is_answered_by_its_response() -> None:
    metadata = MetadataResponse(cluster_id="here")
    with connected(lambda header: framed(answer(header, metadata))) as connection:
        for _ in range(3):
            assert connection.ask(MetadataRequest(), MetadataResponse).cluster_id == "here"
        assert connection.is_idle()
        connection.close()
        assert not connection.is_open
        with pytest.raises(Disconnected):
            connection.ask(MetadataRequest(), MetadataResponse)


def test_responses_are_received_in_the_order_of_their_requests() -> None:
    numbers = iter("abc")
    then = lambda header: framed(answer(header, MetadataResponse(cluster_id=next(numbers))))  # noqa: E731
    with connected(then) as connection:
        for _ in range(3):
            connection.send(MetadataRequest())
        assert connection.waiting == 3
        assert not connection.is_idle()
        assert [connection.receive(MetadataResponse).cluster_id for _ in range(3)] == ["a", "b", "c"]


def test_an_older_broker_is_asked_again_in_a_version_that_it_knows() -> None:
    asked = []

    def script(header: RequestHeader) -> bytes:
        asked.append(header.request_api_version)
        if header.request_api_version > 2:
            old = serving((API_VERSIONS, 0, 2))
            old.error_code = 35
            return framed(response_head(API_VERSIONS, 0, header.correlation_id) + encode(old, 0))
        return framed(answer(header, serving((API_VERSIONS, 0, 2), (METADATA, 0, 4))))

    with server(script) as port, BlockingConnection.open("127.0.0.1", port) as connection:
        assert asked == [4, 2]
        assert connection.version_of(MetadataRequest) == 4
        with pytest.raises(UnsupportedRequest, match="has no DescribeCluster request"):
            connection.version_of(DescribeClusterRequest)


def test_the_features_of_the_cluster_are_known() -> None:
    def script(header: RequestHeader) -> bytes:
        said = ApiVersionsResponse(
            finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)]
        )
        return framed(answer(header, said))

    with server(script) as port, BlockingConnection.open("127.0.0.1", port) as connection:
        assert connection.features == {"transaction.version": 2}


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2) + b"xx",
        framed(struct.pack(">i", 99) + bytes(40)),  # another correlation id
        framed(struct.pack(">i", 2) + b"\xff" * 40),
    ],
)
def test_what_is_not_kafka_is_said_and_the_connection_is_closed(said: bytes) -> None:
    with connected(lambda header: said) as connection:
        with pytest.raises(NotKafka, match="not Kafka"):
            connection.ask(MetadataRequest(), MetadataResponse)
        assert not connection.is_open


def test_a_frame_that_does_not_end_is_given_up() -> None:
    with connected(lambda header: struct.pack(">i", 100) + b"only this", timeout=0.2) as connection:
        with pytest.raises(NoAnswer, match=r"did not answer Metadata within 0.2 s"):
            connection.ask(MetadataRequest(), MetadataResponse)
        assert not connection.is_open


def test_a_connection_that_ends_instead_of_an_answer_is_said() -> None:
    with connected(lambda header: None) as connection:
        with pytest.raises(Disconnected, match="closed the connection"):
            connection.ask(MetadataRequest(), MetadataResponse)
        assert not connection.is_open


def interrupt_main() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


@pytest.fixture
def on_signal() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Sets what happens on SIGUSR1."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda act: signal.signal(signal.SIGUSR1, lambda *_: act()) and None
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_comes_while_an_answer_is_waited_for_does_no_harm(
    on_signal: Callable[[Callable[[], None]], None],
) -> None:
    caught: list[int] = []
    on_signal(lambda: caught.append(1))
    large = MetadataResponse(cluster_id="x" * 30_000)

    def script(header: RequestHeader) -> bytes:
        interrupt_main()
        return framed(answer(header, large))

    with connected(script) as connection:
        for _ in range(20):
            assert connection.ask(MetadataRequest(), MetadataResponse) == large
    assert caught


def test_an_interrupt_in_the_middle_of_a_request_closes_the_connection(
    on_signal: Callable[[Callable[[], None]], None],
) -> None:
    class Interrupted(Exception):
        pass

    def interrupt() -> None:
        raise Interrupted

    def script(header: RequestHeader) -> bytes:
        interrupt_main()
        return struct.pack(">i", 100) + b"some"

    on_signal(interrupt)
    with connected(script) as connection:
        with pytest.raises(Interrupted):
            connection.ask(MetadataRequest(), MetadataResponse)
        assert not connection.is_open


def test_a_connection_that_the_broker_closed_while_idle_is_replaced() -> None:
    answers = []

    def metadata(header: RequestHeader) -> bytes | None:
        answers.append(header.correlation_id)
        return framed(answer(header, MetadataResponse())) if len(answers) != 2 else None

    with server(greeting(metadata)) as port, BlockingCluster(f"127.0.0.1:{port}") as cluster:
        cluster.refresh()
        first = cluster.any()
        first.send(MetadataRequest())  # which ends it
        select.select([first._socket], [], [])
        first._asked.clear()
        assert not first.is_idle()
        cluster.refresh()
        assert cluster.any() is not first
        assert not first.is_open


def test_leaders_and_errors_of_partitions_come_from_metadata() -> None:
    def metadata(header: RequestHeader) -> bytes:
        partitions = [
            MetadataResponsePartition(partition_index=1, leader_id=-1, error_code=5),
            MetadataResponsePartition(partition_index=0, leader_id=7),
        ]
        topic = MetadataResponseTopic(name="t", partitions=partitions)
        brokers = [MetadataResponseBroker(node_id=7, host="elsewhere", port=1)]
        return framed(answer(header, MetadataResponse(brokers=brokers, topics=[topic])))

    from ottla.core.types import TopicPartition
    from ottla.protocol.errors import LeaderNotAvailable, UnknownTopicOrPartition

    with server(greeting(metadata)) as port, BlockingCluster(f"127.0.0.1:{port}") as cluster:
        assert cluster.topics(["t"]) == {"t": [0, 1]}
        assert cluster.leader_id(TopicPartition("t", 0)) == 7
        with pytest.raises(LeaderNotAvailable, match="t-1 has no leader"):
            cluster.leader_id(TopicPartition("t", 1))
        with pytest.raises(UnknownTopicOrPartition, match="no partition 2: it has 2"):
            cluster.leader_id(TopicPartition("t", 2))


def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    script = greeting(lambda header: framed(answer(header, MetadataResponse())))
    with server(script) as port, BlockingCluster(f"127.0.0.1:1,127.0.0.1:{port}") as cluster:
        assert cluster.topics() == {}
