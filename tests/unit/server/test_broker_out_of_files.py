"""A real broker whose process may open no more files: clients are put off, and the disk is not blamed."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ottla import Broker
from ottla.client.blocking.connection import BlockingConnection
from ottla.core.ids import Uuid
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import KafkaStorageError
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.testing.broker import TestBroker

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits other processes")

PARTITIONS = 10
LARGE = 600_000  # two of them do not fit into a segment


class Client:
    """One connection, and a topic with small segments."""

    def __init__(self, broker: TestBroker) -> None:
        host, port = broker.bootstrap.split(":")
        self.connection = BlockingConnection.open(host, int(port))
        topic = CreatableTopic(
            name="t",
            num_partitions=PARTITIONS,
            replication_factor=1,
            configs=[CreatableTopicConfig(name="segment.bytes", value=str(1 << 20))],
        )
        answer = self.connection.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
        self.topic_id: Uuid = answer.topics[0].topic_id

    def produce(self, partition: int, size: int, acks: int = -1) -> int:
        data = PartitionProduceData(
            index=partition, records=write_batch([Record(timestamp=0, value=bytes(size))])
        )
        topic = TopicProduceData(name="t", topic_id=self.topic_id, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])
        answer = self.connection.ask(request, ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code

    def fetch(self, partition: int, offset: int) -> tuple[int, bool]:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1000)
        topic = FetchTopic(topic="t", topic_id=self.topic_id, partitions=[wanted])
        request = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[topic])
        answer = self.connection.ask(request, FetchResponse).responses[0].partitions[0]
        return answer.error_code, bool(answer.records)


@contextmanager
def open_files(broker: TestBroker, limit: int) -> Iterator[None]:
    before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)


def open_now(broker: TestBroker) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker({}) as started:
        yield started


@pytest.fixture
def client(broker: TestBroker) -> Iterator[Client]:
    """One that has produced and fetched: a broker that can open no files can import no modules either."""
    client = Client(broker)
    for partition in range(PARTITIONS):
        assert client.produce(partition, LARGE) == 0
        assert client.fetch(partition, 0) == (0, True)
    yield client
    client.connection.close()


def test_files_that_logs_hold_are_closed_for_those_that_they_need(broker: TestBroker, client: Client) -> None:
    with open_files(broker, open_now(broker)):
        for offset in (1, 2):  # a new segment each, with a snapshot, indexes and a sync of the directory
            for partition in range(PARTITIONS):
                assert client.produce(partition, LARGE) == 0
                assert client.fetch(partition, offset) == (0, True)
                assert client.fetch(partition, 0) == (0, True)
    assert "offline" not in broker.log_text


@pytest.mark.parametrize("acks", [1, -1])
def test_without_any_file_a_request_is_refused_and_the_next_is_served(
    acks: int, broker: TestBroker, client: Client
) -> None:
    with open_files(broker, 3):
        refused = [client.produce(partition, LARGE, acks) for partition in range(PARTITIONS)]
        assert set(refused) == {KafkaStorageError.code}
        # By then all files of logs have been closed, in vain.
        assert {client.fetch(partition, 0) for partition in range(PARTITIONS)} == {
            (KafkaStorageError.code, False)
        }
        assert {client.produce(partition, 10, acks) for partition in range(PARTITIONS)} == {
            KafkaStorageError.code
        }
    for partition in range(PARTITIONS):
        assert client.produce(partition, LARGE) == 0
        assert client.fetch(partition, 0) == (0, True)
        assert client.fetch(partition, 1) == (0, True)
        assert client.fetch(partition, 2) == (0, False)  # what was refused is not there
    assert "offline" not in broker.log_text
    broker.restart()
    assert "offline" not in broker.log_text


ASYNCIO_BROKER = """
import asyncio, resource, sys
from ottla import Broker

async def main():
    loop, said = asyncio.get_running_loop(), []
    async with Broker(data_dir=sys.argv[1], port=0) as broker:
        def complain(loop, context):
            if not said:
                # After this turn of the loop, in which it may complain again.
                loop.call_soon(lambda: loop.call_soon(over.set))
            said.append(context["message"])

        over = asyncio.Event()
        loop.set_exception_handler(complain)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Fewer than those that stay open for good, so that it does not matter who closes one meanwhile.
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        print(broker.bootstrap, flush=True)
        await over.wait()
        print(said, flush=True)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def test_a_listener_that_cannot_accept_says_so_once_in_a_turn_and_tries_again(tmp_path: Path) -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-c", ASYNCIO_BROKER, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)  # or a failure would wait for its end
        assert process.stdout is not None
        host, port = process.stdout.readline().strip().split(":")
        with socket.create_connection((host, int(port))):
            assert process.stdout.readline() == "['socket.accept() out of system resource']\n"
            # It is accepted after all, and so is the next one.
            BlockingConnection.open(host, int(port)).close()
        process.communicate("")
        assert process.returncode == 0


def test_a_listener_keeps_a_long_queue_of_those_who_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with Broker(data_dir=tmp_path, port=0) as broker:
            host, port = broker.bootstrap.split(":")
            address = host, int(port)
            # The loop accepts none of them meanwhile.
            clients = [socket.create_connection(address, timeout=5) for _ in range(200)]
            for each in clients:
                each.close()

    asyncio.run(main())
