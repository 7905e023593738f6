"""ListOffsets (key 2): find the offset that belongs to a timestamp, or the first or last of a partition.

v0 answers a list of segment offsets; v1 a single offset with its timestamp; v2 isolation level, throttle
time; v4 leader epochs; v5 OFFSET_NOT_AVAILABLE; v6 flexible; v7 offset of the max timestamp, -3 (KIP-734);
v8 earliest local offset, -4 (KIP-405); v9 latest tiered offset, -5 (KIP-1005); v10 a timeout for remote
lookups (KIP-1075); v11 earliest pending upload offset, -6 (KIP-1023).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class ListOffsetsPartition:
    partition_index: i32 = 0
    current_leader_epoch: i32 = field("4+", default=-1, ignorable=True)
    timestamp: i64 = 0
    max_num_offsets: i32 = field("0", default=1)


@struct
class ListOffsetsTopic:
    name: str = ""
    partitions: list[ListOffsetsPartition] = field(default=[])


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest:
    replica_id: i32 = 0
    isolation_level: i8 = field("2+", default=0)
    topics: list[ListOffsetsTopic] = field(default=[])
    timeout_ms: i32 = field("10+", default=0, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    old_style_offsets: list[i64] = field("0", default=[])
    timestamp: i64 = field("1+", default=-1)
    offset: i64 = field("1+", default=-1)
    leader_epoch: i32 = field("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default=[])


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: i32 = field("2+", default=0, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(default=[])
