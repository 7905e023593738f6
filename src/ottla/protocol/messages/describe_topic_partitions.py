"""DescribeTopicPartitions (key 75): the partitions of topics, in pages (KIP-966)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class TopicRequest:
    name: str = ""


@struct
class Cursor:
    topic_name: str = ""
    partition_index: i32 = 0


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = field(default=[])
    response_partition_limit: i32 = 2000
    cursor: Cursor | None = None


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = -1
    replica_nodes: list[i32] = field(default=[])
    isr_nodes: list[i32] = field(default=[])
    eligible_leader_replicas: list[i32] | None = None
    last_known_elr: list[i32] | None = None
    offline_replicas: list[i32] = field(default=[])


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: i16 = 0
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default=[])
    topic_authorized_operations: i32 = -2_147_483_648


@struct
class CursorResponse:
    topic_name: str = ""
    partition_index: i32 = 0


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    throttle_time_ms: i32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default=[])
    next_cursor: CursorResponse | None = None
