"""AlterPartitionReassignments (key 45): start or cancel moving partitions to other replicas (KIP-455).

v1 may forbid a change of the replication factor (KIP-860).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class ReassignablePartition:
    partition_index: i32 = 0
    replicas: list[i32] | None = None


@struct
class ReassignableTopic:
    name: str = ""
    partitions: list[ReassignablePartition] = field(default=[])


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: i32 = 60000
    allow_replication_factor_change: bool = field("1+", default=True)
    topics: list[ReassignableTopic] = field(default=[])


@struct
class ReassignablePartitionResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


@struct
class ReassignableTopicResponse:
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(default=[])


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: i32 = 0
    allow_replication_factor_change: bool = field("1+", default=True, ignorable=True)
    error_code: i16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = field(default=[])
