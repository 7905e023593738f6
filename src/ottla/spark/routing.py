"""From the rows of an Arrow batch to record batches for the partitions they belong to.

A row goes to the partition that its column `partition` names; without one to where Kafka's default
partitioner sends its key; without a key too, to the partition that all such rows of this Arrow batch go to,
and those of the next batch to the next one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.arrow.encode import EncodedBatch, Encoder, partition_keys, rows_by_partition
from ottla.client.blocking.cluster import BlockingCluster
from ottla.core.types import TopicPartition
from ottla.protocol.errors import InvalidTopic, KafkaError, MessageTooLarge, UnknownTopicOrPartition
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.spark.write_options import WriteOptions

TOPIC_RESOURCE: Final = 2
MAX_MESSAGE_BYTES: Final = "max.message.bytes"

Wave = dict[TopicPartition, bytearray]
"""At most one record batch for each partition: what goes out together."""


class Router:
    """Routes and encodes the rows of one task; tasks begin at different partitions (`turn`)."""

    def __init__(self, options: WriteOptions, cluster: BlockingCluster, turn: int = 0) -> None:
        self._options, self._cluster, self._turn = options, cluster, turn
        self._limits: dict[str, int] = {}

    @property
    def topics(self) -> list[str]:
        """Those that rows went to."""
        return sorted(self._limits)

    def route(self, batch: pa.RecordBatch) -> Iterator[Wave]:
        """The rows of a batch in waves; those of a partition stay in order."""
        if self._options.topic is not None:
            yield from self._to_topic(self._options.topic, batch)
            return
        names = _column(batch, "topic")
        if names.null_count:
            # In the words of Spark's Kafka connector.
            raise InvalidTopic("null topic present in the data. Use the topic option for setting a topic.")
        for name in pc.unique(names).to_pylist():
            yield from self._to_topic(name, batch.filter(pc.equal(names, name)))

    def _to_topic(self, name: str, batch: pa.RecordBatch) -> Iterator[Wave]:
        encoder = Encoder(self._columns(batch), now_ms=time.time_ns() // 1_000_000)
        limit = self._limit(name)
        queues = {
            TopicPartition(name, number): self._encode(encoder, rows, limit)
            for number, rows in self._by_partition(name, batch)
        }
        while queues:
            yield {partition: waiting.pop(0).batch for partition, waiting in queues.items()}
            queues = {partition: waiting for partition, waiting in queues.items() if waiting}

    def _columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without the timestamps that the rows may have from where they were read: as in the connector, a
        record is as old as its writing, unless asked for otherwise."""
        index = batch.schema.get_field_index("timestamp")
        return batch if index < 0 or self._options.include_timestamp else batch.remove_column(index)

    def _by_partition(self, name: str, batch: pa.RecordBatch) -> list[tuple[int, pa.Array | None]]:
        """The rows of each partition that has any; None for all of them."""
        topic = self._cluster.topic(name, create=True)
        available = topic.available or list(topic.partitions)
        keyless = available[self._turn % len(available)]
        self._turn += 1
        count = len(topic.partitions)
        keys, given = _column(batch, "key"), _column(batch, "partition")
        if keys is not None and (self._options.ignore_keys or keys.null_count == len(keys)):
            keys = None
        if given is not None:
            _check_range(name, given, count)
            if given.null_count:
                by_key = keyless if keys is None else partition_keys(keys, count, keyless=keyless)
                given = pc.coalesce(given, by_key)
        elif keys is not None and count > 1:
            given = partition_keys(keys, count, keyless=keyless)
        return [(keyless, None)] if given is None else list(rows_by_partition(given, count).items())

    def _encode(self, encoder: Encoder, rows: pa.Array | None, limit: int) -> list[EncodedBatch]:
        options = self._options
        encoded = encoder.encode(rows, codec=options.codec, level=options.level, max_bytes=limit)
        largest = max((len(each.batch) for each in encoded), default=0)
        if largest > options.max_request_size:
            raise MessageTooLarge(
                f"The message is {largest} bytes when serialized which is larger than "
                f"{options.max_request_size}, which is the value of the max.request.size configuration."
            )
        return encoded

    def _limit(self, name: str) -> int:
        """How large a batch for this topic is made: a topic may take less than we would send."""
        if name not in self._limits:
            self._limits[name] = min(self._options.batch_size, _max_message_bytes(self._cluster, name))
        return self._limits[name]


def _column(batch: pa.RecordBatch, name: str) -> Any:
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def _check_range(name: str, given: pa.Array, count: int) -> None:
    bounds = pc.min_max(given).as_py()
    for number in (bounds["min"], bounds["max"]):
        if number is not None and not 0 <= number < count:
            raise UnknownTopicOrPartition(
                f"a row is for partition {number} of topic {name}, which has partitions 0 to {count - 1}"
            )


def _max_message_bytes(cluster: BlockingCluster, name: str) -> int:
    """What the topic says, or no limit if it cannot be asked: then the broker refuses what is too large."""
    cluster.topic(name, create=True)  # there may be a topic to create first
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=[MAX_MESSAGE_BYTES]
    )
    try:
        response = cluster.ask(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    except KafkaError:
        return 1 << 31
    found = [each.value for result in response.results for each in result.configs]
    return int(found[0]) if found and found[0] else 1 << 31
