"""DescribeLogDirs (key 35): the log directories of a broker and the size of the replicas in them.

v2 flexible; v3 top-level error; v4 total and usable bytes (KIP-827); v5 cordoned directories (KIP-1066).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class DescribableLogDirTopic:
    topic: str = ""
    partitions: list[i32] = field(default=[])


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = field(default=[])


@struct
class DescribeLogDirsPartition:
    partition_index: i32 = 0
    partition_size: i64 = 0
    offset_lag: i64 = 0
    is_future_key: bool = False


@struct
class DescribeLogDirsTopic:
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(default=[])


@struct
class DescribeLogDirsResult:
    error_code: i16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(default=[])
    total_bytes: i64 = field("4+", default=-1, ignorable=True)
    usable_bytes: i64 = field("4+", default=-1, ignorable=True)
    is_cordoned: bool = field("5+", default=False, ignorable=True)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = field("3+", default=0, ignorable=True)
    results: list[DescribeLogDirsResult] = field(default=[])
