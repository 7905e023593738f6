"""Produce (key 0): append record batches to the leaders of partitions.

v1 throttle time; v2 log append time; v3 transactional id and record batches (message format 2); v5 log
start offset; v7 zstd (KIP-110); v8 errors per record (KIP-467); v9 flexible; v10 current leader and its
endpoint (KIP-951); v11 TRANSACTION_ABORTABLE; v12 adds the partitions to the transaction by itself
(KIP-890); v13 topic ids instead of names (KIP-516).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import Records, field, i16, i32, i64, message, struct


@struct
class PartitionProduceData:
    index: i32 = 0
    records: Records | None = None


@struct
class TopicProduceData:
    name: str = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partition_data: list[PartitionProduceData] = field(default=[])


@message(key=0, versions="0-13", flexible="9+")
class ProduceRequest:
    transactional_id: str | None = field("3+", default=None)
    acks: i16 = 0
    timeout_ms: i32 = 0
    topic_data: list[TopicProduceData] = field(default=[])


@struct
class BatchIndexAndErrorMessage:
    batch_index: i32 = 0
    batch_index_error_message: str | None = None


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = -1
    leader_epoch: i32 = -1


@struct
class PartitionProduceResponse:
    index: i32 = 0
    error_code: i16 = 0
    base_offset: i64 = 0
    log_append_time_ms: i64 = field("2+", default=-1, ignorable=True)
    log_start_offset: i64 = field("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", default=[], ignorable=True)
    error_message: str | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", default=LeaderIdAndEpoch(), tag=0)


@struct
class TopicProduceResponse:
    name: str = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@message(key=0, versions="0-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = field(default=[])
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    node_endpoints: list[NodeEndpoint] = field("10+", default=[], tag=0)
