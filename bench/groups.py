"""Coordinators: positions committed, heartbeats of a large group, members that join, transactions."""

from __future__ import annotations

import struct
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.brokers import Subject
from bench.report import Figure
from bench.wire import Connection, create_topic
from ottla.protocol import codec, headers
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

DEPTH = 50
PATIENCE_SECONDS = 60.0


def offset_commits(subject: Subject, count: int) -> list[Figure]:
    """One partition per commit, by a consumer that assigns its partitions itself."""
    create_topic(subject.address, "committed")
    find_coordinator(subject, "bench-commits")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = OffsetCommitRequestTopic(name="committed", partitions=[partition])
    request = frame(OffsetCommitRequest(group_id="bench-commits", topics=[topic]), 7)
    return [
        Figure("offset commits", "1/s", pipelined(subject, [request] * DEPTH, count), higher_is_better=True)
    ]


def heartbeats(subject: Subject, members: int, count: int) -> list[Figure]:
    """Members of one consumer group (KIP-848) that have nothing new to say or to hear."""
    create_topic(subject.address, "heartbeats", 100)
    find_coordinator(subject, "bench-heartbeats")
    with Connection(subject.address) as connection:
        for member in range(members):
            beat(connection, f"member-{member}", 0)
        # Another round or two, until everybody is where the group is.
        epochs = [beat(connection, f"member-{member}", 0) for member in range(members)]
    frames = [
        frame(
            ConsumerGroupHeartbeatRequest(
                group_id="bench-heartbeats", member_id=f"member-{member}", member_epoch=epoch
            ),
            1,
        )
        for member, epoch in enumerate(epochs)
    ]
    rate = pipelined(subject, frames, count)
    return [Figure(f"heartbeats, group of {members:,}", "1/s", rate, higher_is_better=True)]


def joins(subject: Subject, members: int) -> list[Figure]:
    """From the first member's start until every member has its share (classic protocol, librdkafka)."""
    create_topic(subject.address, "joined", members)
    consumers = [
        Consumer(
            {"bootstrap.servers": subject.bootstrap, "group.id": "bench-joins", "enable.auto.commit": False}
        )
        for _ in range(members)
    ]
    # Told by callbacks: asking a consumer from another thread than the one that polls it can hang librdkafka.
    owned = [0] * members
    settled = threading.Event()

    def poll(number: int, consumer: Consumer) -> None:
        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            owned[number] = len(partitions)

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            owned[number] = 0

        consumer.subscribe(["joined"], on_assign=assigned, on_revoke=revoked)
        while not settled.is_set():
            consumer.poll(0.05)
        consumer.close()

    threads = [threading.Thread(target=poll, args=each) for each in enumerate(consumers)]
    began = time.perf_counter()
    try:
        for thread in threads:
            thread.start()
        while set(owned) != {1}:
            if time.perf_counter() - began > PATIENCE_SECONDS:
                raise RuntimeError(f"{members} members did not settle in {PATIENCE_SECONDS} s: {owned}")
            time.sleep(0.01)
        seconds = time.perf_counter() - began
    finally:
        settled.set()
    for thread in threads:
        thread.join()
    return [Figure(f"{members} members join and settle", "s", seconds)]


def transactions(subject: Subject, count: int) -> list[Figure]:
    """One record in one partition per transaction, one producer (librdkafka, transaction version 1)."""
    create_topic(subject.address, "transactional")
    producer = Producer({"bootstrap.servers": subject.bootstrap, "transactional.id": "bench", "linger.ms": 0})
    producer.init_transactions(PATIENCE_SECONDS)
    began = time.perf_counter()
    for _ in range(count):
        producer.begin_transaction()
        producer.produce("transactional", b"value")
        producer.commit_transaction(PATIENCE_SECONDS)
    rate = count / (time.perf_counter() - began)
    return [Figure("transactions of one producer", "1/s", rate, higher_is_better=True)]


def frame(request: object, version: int) -> bytes:
    key: int = request.api_key  # type: ignore[attr-defined]
    body = headers.request_head(key, version, 1, "bench") + codec.encode(request, version)
    return struct.pack(">i", len(body)) + body


def beat(connection: Connection, member: str, epoch: int) -> int:
    """Join or join again; the epoch that the member has then."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="bench-heartbeats",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["heartbeats"],
        topic_partitions=[],
    )
    answer = codec.decode(ConsumerGroupHeartbeatResponse, 1, connection.ask(frame(request, 1)), 1)
    if answer.error_code:
        raise RuntimeError(f"a heartbeat answers error {answer.error_code}: {answer.error_message}")
    return answer.member_epoch


def find_coordinator(subject: Subject, group: str) -> None:
    """Apache Kafka makes the topic of the coordinator at the first question and is ready at a later one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Connection(subject.address) as connection:
        while time.monotonic() < deadline:
            answer = connection.ask(frame(FindCoordinatorRequest(key=group), 3))
            if not codec.decode(FindCoordinatorResponse, 3, answer, 1).error_code:
                return
            time.sleep(0.05)
    raise RuntimeError(f"no coordinator for {group}")


def pipelined(subject: Subject, frames: list[bytes], count: int) -> float:
    """Requests per second, `DEPTH` of them on their way at a time."""
    with Connection(subject.address) as connection:
        turns = [b"".join(frames[start : start + DEPTH]) for start in range(0, len(frames), DEPTH)]
        began = time.perf_counter()
        for number in range(count // DEPTH):
            connection.pipeline(turns[number % len(turns)], DEPTH)
        return count / (time.perf_counter() - began)
