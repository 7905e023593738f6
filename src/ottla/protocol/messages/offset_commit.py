"""OffsetCommit (key 8): store the positions of a consumer group.

v1 generation, member and commit timestamp; v2 retention time instead of the timestamp; v3 throttle time; v5
drops the retention time; v6 leader epoch; v7 group instance id (KIP-345); v8 flexible; v9 usable with the
consumer protocol (KIP-848); v10 topic ids instead of names (KIP-848).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class OffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = field("6+", default=-1, ignorable=True)
    commit_timestamp: i64 = field("1", default=-1)
    committed_metadata: str | None = ""


@struct
class OffsetCommitRequestTopic:
    name: str = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field(default=[])


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest:
    group_id: str = ""
    generation_id_or_member_epoch: i32 = field("1+", default=-1, ignorable=True)
    member_id: str = field("1+", default="", ignorable=True)
    group_instance_id: str | None = field("7+", default=None)
    retention_time_ms: i64 = field("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(default=[])


@struct
class OffsetCommitResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class OffsetCommitResponseTopic:
    name: str = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field(default=[])


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: i32 = field("3+", default=0, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(default=[])
