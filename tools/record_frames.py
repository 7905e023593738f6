"""Records the requests that real clients send, for tests/unit/protocol/fixtures/client_frames.json.

    python -m tools.record_frames tests/unit/protocol/fixtures/client_frames.json

A small server answers just well enough that clients go on: it takes records and hands them out again, lets
one member into a group, and says yes to everything else. The first two frames of each API and version are
kept for each client. Run it again when a client library has a new release, and look at the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import kafka.admin

import kafka
from ottla.core.ids import Uuid
from ottla.protocol.apis import all_apis, api
from ottla.protocol.codec import decode, encode_chunks
from ottla.protocol.headers import read_request_header, response_head
from ottla.protocol.messages import (
    api_versions,
    fetch,
    find_coordinator,
    init_producer_id,
    join_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
    sync_group,
)

TOPIC = "frames"
TOPIC_ID = Uuid(bytes(range(1, 17)))
FRAMES_OF_A_KIND = 2
PATIENCE_SECONDS = 8


class Server:
    """One broker with one topic of one partition."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, str, int], list[str]] = {}
        self.client = ""
        self.port = 0
        self.log: list[tuple[int, bytes]] = []  # the offset of each batch, and its bytes
        self.end_offset = 0
        self.assignment = b""
        self.answers: dict[int, Callable[[Any], Any]] = {
            0: self.produce,
            1: self.fetch,
            2: self.list_offsets,
            3: self.metadata,
            8: self.offset_commit,
            9: self.offset_fetch,
            10: self.find_coordinator,
            11: self.join_group,
            14: self.sync_group,
            18: self.api_versions,
            22: lambda _: init_producer_id.InitProducerIdResponse(producer_id=1),
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                header, pos = read_request_header(frame, 0, size)
                key, version = header.request_api_key, header.request_api_version
                kept = self.frames.setdefault((self.client, api(key).name, version), [])
                if len(kept) < FRAMES_OF_A_KIND:
                    kept.append(frame.hex())
                request: Any = decode(api(key).request, version, frame, pos)
                answer = self.answers.get(key, lambda _, key=key: api(key).response())(request)
                if key == 1 and not any(p.records for t in answer.responses for p in t.partitions):
                    await asyncio.sleep(request.max_wait_ms / 1000)
                if key != 0 or request.acks != 0:
                    writer.writelines(
                        encode_chunks(answer, version, response_head(key, version, header.correlation_id))
                    )
        writer.close()

    def api_versions(self, _: Any) -> Any:
        served = [(a.key, a.request.stable) for a in all_apis() if a.key not in (4, 5, 6, 7)]
        return api_versions.ApiVersionsResponse(
            api_keys=[
                api_versions.ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
                for key, versions in served
            ]
        )

    def metadata(self, _: Any) -> Any:
        partition = metadata.MetadataResponsePartition(
            leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
        )
        topic = metadata.MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        broker = metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        return metadata.MetadataResponse(
            brokers=[broker], cluster_id="recorder", controller_id=1, topics=[topic]
        )

    def produce(self, request: produce.ProduceRequest) -> Any:
        responses = []
        for topic in request.topic_data:
            for partition in topic.partition_data:
                records = bytes(partition.records or b"")
                self.log.append((self.end_offset, struct.pack(">q", self.end_offset) + records[8:]))
                reply = produce.PartitionProduceResponse(
                    index=partition.index, base_offset=self.end_offset, log_start_offset=0
                )
                self.end_offset += struct.unpack_from(">i", records, 57)[0]
            responses.append(
                produce.TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=[reply]
                )
            )
        return produce.ProduceResponse(responses=responses)

    def fetch(self, request: fetch.FetchRequest) -> Any:
        asked = [p for t in request.topics for p in t.partitions]
        wanted = asked[0].fetch_offset if asked else self.end_offset
        records = b"".join(batch for offset, batch in self.log if offset >= wanted)
        partition = fetch.PartitionData(
            high_watermark=self.end_offset,
            last_stable_offset=self.end_offset,
            log_start_offset=0,
            records=records,
        )
        topic = fetch.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        return fetch.FetchResponse(responses=[topic])

    def list_offsets(self, request: list_offsets.ListOffsetsRequest) -> Any:
        latest = request.topics[0].partitions[0].timestamp == -1
        partition = list_offsets.ListOffsetsPartitionResponse(offset=self.end_offset if latest else 0)
        topic = list_offsets.ListOffsetsTopicResponse(name=TOPIC, partitions=[partition])
        return list_offsets.ListOffsetsResponse(topics=[topic])

    def find_coordinator(self, request: find_coordinator.FindCoordinatorRequest) -> Any:
        if not request.coordinator_keys:
            return find_coordinator.FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=self.port)
        found = [
            find_coordinator.Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.port)
            for key in request.coordinator_keys
        ]
        return find_coordinator.FindCoordinatorResponse(coordinators=found)

    def join_group(self, request: join_group.JoinGroupRequest) -> Any:
        protocol = request.protocols[0]
        member = join_group.JoinGroupResponseMember(member_id="member-1", metadata=protocol.metadata)
        return join_group.JoinGroupResponse(
            generation_id=1,
            protocol_name=protocol.name,
            leader="member-1",
            member_id="member-1",
            members=[member],
        )

    def sync_group(self, request: sync_group.SyncGroupRequest) -> Any:
        for assignment in request.assignments:
            self.assignment = assignment.assignment
        return sync_group.SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=self.assignment,
        )

    def offset_commit(self, request: offset_commit.OffsetCommitRequest) -> Any:
        topics = [
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(partition_index=p.partition_index)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return offset_commit.OffsetCommitResponse(topics=topics)

    def offset_fetch(self, request: offset_fetch.OffsetFetchRequest) -> Any:
        if request.groups:
            unknown = offset_fetch.OffsetFetchResponsePartitions(committed_offset=-1)
            topics = offset_fetch.OffsetFetchResponseTopics(
                name=TOPIC, topic_id=TOPIC_ID, partitions=[unknown]
            )
            group = offset_fetch.OffsetFetchResponseGroup(
                group_id=request.groups[0].group_id, topics=[topics]
            )
            return offset_fetch.OffsetFetchResponse(groups=[group])
        partition = offset_fetch.OffsetFetchResponsePartition(committed_offset=-1)
        topic = offset_fetch.OffsetFetchResponseTopic(name=TOPIC, partitions=[partition])
        return offset_fetch.OffsetFetchResponse(topics=[topic])


def use_confluent_kafka(address: str) -> None:
    common = {"bootstrap.servers": address, "client.id": "confluent"}
    producer = confluent_kafka.Producer(common | {"enable.idempotence": True})
    producer.produce(TOPIC, b"value", b"key", headers={"h": b"1"})
    producer.flush(PATIENCE_SECONDS)
    consumer = confluent_kafka.Consumer(common | {"group.id": "group", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    consumer.poll(PATIENCE_SECONDS)
    with tolerant():
        consumer.commit(asynchronous=False)
    consumer.close()
    admin = confluent_kafka.admin.AdminClient(common)
    resource = confluent_kafka.admin.ConfigResource("topic", TOPIC)
    for ask in (
        lambda: admin.create_topics([confluent_kafka.admin.NewTopic("new", 1, 1)], request_timeout=1),
        lambda: admin.delete_topics(["old"], request_timeout=1),
        lambda: admin.describe_configs([resource], request_timeout=1),
        lambda: admin.create_partitions([confluent_kafka.admin.NewPartitions(TOPIC, 2)], request_timeout=1),
        lambda: {"": admin.list_consumer_groups(request_timeout=1)},
    ):
        for future in ask().values():
            with tolerant():
                future.result(2)


def list_topics(address: str) -> None:
    """librdkafka's question for all topics has three bytes too many, which a broker has to bear with."""
    confluent_kafka.admin.AdminClient({"bootstrap.servers": address}).list_topics(timeout=PATIENCE_SECONDS)


def use_kafka_python(address: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=address, client_id="kafka-python")
    producer.send(TOPIC, b"value", b"key", headers=[("h", b"1")]).get(PATIENCE_SECONDS)
    producer.close()
    consumer = kafka.KafkaConsumer(
        TOPIC,
        bootstrap_servers=address,
        client_id="kafka-python",
        group_id="group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=3000,
    )
    with tolerant():
        next(consumer)
        consumer.commit()
    consumer.close()
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=address, client_id="kafka-python")
    for ask in (
        lambda: admin.create_topics([kafka.admin.NewTopic("new", 1, 1)]),
        lambda: admin.delete_topics(["old"]),
        lambda: admin.describe_configs([kafka.admin.ConfigResource("TOPIC", TOPIC)]),
        lambda: admin.describe_cluster(),
        lambda: admin.list_groups(),
        lambda: admin.describe_log_dirs(),
    ):
        with tolerant():
            ask()
    admin.close()


async def _use_aiokafka(address: str) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=address, client_id="aiokafka", enable_idempotence=True
    )
    async with producer:
        await producer.send_and_wait(TOPIC, b"value", b"key", headers=[("h", b"1")])
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC, bootstrap_servers=address, client_id="aiokafka", group_id="group", auto_offset_reset="earliest"
    )
    async with consumer:
        await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)
        await consumer.commit()
    admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=address, client_id="aiokafka")
    await admin.start()
    with tolerant():
        await admin.create_topics([aiokafka.admin.NewTopic("new", 1, 1)])
    with tolerant():
        await admin.list_consumer_groups()
    await admin.close()


def use_aiokafka(address: str) -> None:
    asyncio.run(_use_aiokafka(address))


@contextlib.contextmanager
def tolerant() -> Iterator[None]:
    """What a client makes of a made-up answer is of no interest; that it asked is."""
    try:
        yield
    except Exception as error:
        print(f"  {type(error).__name__}: {error}", file=sys.stderr)


CLIENTS: dict[str, Callable[[str], None]] = {
    f"aiokafka {aiokafka.__version__}": use_aiokafka,
    f"confluent-kafka {confluent_kafka.__version__}": use_confluent_kafka,
    f"confluent-kafka {confluent_kafka.__version__} list_topics": list_topics,
    f"kafka-python {kafka.__version__}": use_kafka_python,
}


async def record() -> list[dict[str, Any]]:
    recorder = Server()
    server = await asyncio.start_server(recorder.serve, "127.0.0.1", 0)
    recorder.port = server.sockets[0].getsockname()[1]
    for client, use in CLIENTS.items():
        print(client, file=sys.stderr)
        recorder.client = client
        with tolerant():
            await asyncio.to_thread(use, f"127.0.0.1:{recorder.port}")
    return [
        {"client": client, "api": name, "version": version, "frame": frame}
        for (client, name, version), kept in sorted(recorder.frames.items())
        for frame in kept
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the requests that real clients send.")
    parser.add_argument("path", type=Path)
    path: Path = parser.parse_args().path
    frames = asyncio.run(record())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(frame) for frame in frames) + "\n]\n")
    print(f"{len(frames)} frames in {path}")


if __name__ == "__main__":
    main()
