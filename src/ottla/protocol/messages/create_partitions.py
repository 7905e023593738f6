"""CreatePartitions (key 37): add partitions to topics.

v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: list[i32] = field(default=[])


@struct
class CreatePartitionsTopic:
    name: str = ""
    count: i32 = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default=[])


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = field(default=[])
    timeout_ms: i32 = 0
    validate_only: bool = False


@struct
class CreatePartitionsTopicResult:
    name: str = ""
    error_code: i16 = 0
    error_message: str | None = None


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = field(default=[])
