"""OffsetFetch (key 9): read the positions that a consumer group has stored.

v1 reads from __consumer_offsets; v2 null topics means all of them, top-level error; v3 throttle time; v5
leader epoch; v6 flexible; v7 require_stable (KIP-447); v8 several groups at once (KIP-709); v9 member id
and epoch (KIP-848); v10 topic ids instead of names (KIP-848).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[i32] = field(default=[])


@struct
class OffsetFetchRequestTopics:
    name: str = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: list[i32] = field(default=[])


@struct
class OffsetFetchRequestGroup:
    group_id: str = ""
    member_id: str | None = field("9+", default=None, ignorable=True)
    member_epoch: i32 = field("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field(default=[])


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest:
    group_id: str = field("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", default=[], nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field("8+", default=[])
    require_stable: bool = field("7+", default=False)


@struct
class OffsetFetchResponsePartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = field("5-7", default=-1, ignorable=True)
    metadata: str | None = ""
    error_code: i16 = 0


@struct
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(default=[])


@struct
class OffsetFetchResponsePartitions:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = -1
    metadata: str | None = ""
    error_code: i16 = 0


@struct
class OffsetFetchResponseTopics:
    name: str = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field(default=[])


@struct
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(default=[])
    error_code: i16 = 0


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: i32 = field("3+", default=0, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field("0-7", default=[])
    error_code: i16 = field("2-7", default=0, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field("8+", default=[])
