"""OffsetForLeaderEpoch (key 23): where a leader epoch ended in the leader's log.

v1 leader epoch in the answer; v2 current leader epoch, throttle time; v3 replica id, -2 being a debug
consumer that may see past the high watermark; v4 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class OffsetForLeaderPartition:
    partition: i32 = 0
    current_leader_epoch: i32 = field("2+", default=-1, ignorable=True)
    leader_epoch: i32 = 0


@struct
class OffsetForLeaderTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(default=[])


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    replica_id: i32 = field("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(default=[])


@struct
class EpochEndOffset:
    error_code: i16 = 0
    partition: i32 = 0
    leader_epoch: i32 = field("1+", default=-1, ignorable=True)
    end_offset: i64 = -1


@struct
class OffsetForLeaderTopicResult:
    topic: str = ""
    partitions: list[EpochEndOffset] = field(default=[])


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: i32 = field("2+", default=0, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(default=[])
