"""DescribeProducers (key 61): the producers that have state in partitions (KIP-664)."""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class TopicRequest:
    name: str = ""
    partition_indexes: list[i32] = field(default=[])


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    topics: list[TopicRequest] = field(default=[])


@struct
class ProducerState:
    producer_id: i64 = 0
    producer_epoch: i32 = 0
    last_sequence: i32 = -1
    last_timestamp: i64 = -1
    coordinator_epoch: i32 = 0
    current_txn_start_offset: i64 = -1


@struct
class PartitionResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default=[])


@struct
class TopicResponse:
    name: str = ""
    partitions: list[PartitionResponse] = field(default=[])


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: i32 = 0
    topics: list[TopicResponse] = field(default=[])
