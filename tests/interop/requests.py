"""The requests that probes send most, with everything but the point of the test filled in."""

from __future__ import annotations

import uuid
from typing import Any

from tests.interop.wire import Wire


def produce(
    wire: Wire,
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int = 9,
    transactional_id: str | None = None,
) -> Any:
    """The PartitionProduceResponse of one partition."""
    named = {"topic_id": topic_id(wire, topic)} if version >= 13 else {"name": topic}
    response = wire.ask(
        "produce",
        version,
        transactional_id=transactional_id,
        acks=acks,
        timeout=10_000,
        topic_data=[named | {"partition_data": [{"index": partition, "records": records}]}],
    )
    ((answer,),) = [topic.partition_responses for topic in response.responses]
    return answer


def fetch(wire: Wire, topic: str, offset: int, *, version: int = 12, **values: Any) -> Any:
    """The PartitionData of one partition, fetched without a session."""
    response = fetch_response(wire, topic, offset, version=version, **values)
    assert response.error_code == 0 if version >= 7 else True
    ((answer,),) = [topic.partitions for topic in response.responses]
    return answer


def fetch_response(
    wire: Wire,
    topic: str,
    offset: int,
    *,
    version: int = 12,
    partition: int = 0,
    max_wait: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50_000_000,
    partition_max_bytes: int = 1_000_000,
    leader_epoch: int | None = None,
    **values: Any,
) -> Any:
    wanted: dict[str, Any] = {"partition": partition, "fetch_offset": offset}
    wanted["partition_max_bytes"] = partition_max_bytes
    if leader_epoch is not None:
        wanted["current_leader_epoch"] = leader_epoch
    named = {"topic_id": topic_id(wire, topic)} if version >= 13 else {"topic": topic}
    return wire.ask(
        "fetch",
        version,
        max_wait=max_wait,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[named | {"partitions": [wanted]}],
        **values,
    )


def list_offset(
    wire: Wire, topic: str, timestamp: int, *, version: int = 9, isolation_level: int = 0, partition: int = 0
) -> Any:
    """The ListOffsetsPartitionResponse of one partition."""
    values: dict[str, Any] = {"isolation_level": isolation_level} if version >= 2 else {}
    response = wire.ask(
        "list_offsets",
        version,
        replica_id=-1,
        topics=[
            {"name": topic, "partitions": [{"partition_index": partition, "timestamp": timestamp}]},
        ],
        **values,
    )
    ((answer,),) = [topic.partitions for topic in response.topics]
    return answer


def end_offset(wire: Wire, topic: str) -> int:
    return int(list_offset(wire, topic, -1).offset)


def topic_id(wire: Wire, name: str) -> uuid.UUID:
    (topic,) = wire.ask("metadata", 12, topics=[{"name": name}]).topics
    assert isinstance(topic.topic_id, uuid.UUID), f"{name}: {topic.error_code!r}"
    return topic.topic_id


def producer_id(wire: Wire) -> int:
    """A producer id of one's own. Kafka may be short of ids for a moment after its start."""
    for _ in range(100):
        response = wire.ask("init_producer_id", 4, transaction_timeout=-1, producer_id=-1, producer_epoch=-1)
        if response.error_code != 14:
            break
    assert response.error_code == 0
    assert response.producer_epoch == 0
    return int(response.producer_id)
