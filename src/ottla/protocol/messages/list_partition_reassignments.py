"""ListPartitionReassignments (key 46): the partitions that are moving to other replicas (KIP-455)."""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class ListPartitionReassignmentsTopics:
    name: str = ""
    partition_indexes: list[i32] = field(default=[])


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    timeout_ms: i32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@struct
class OngoingPartitionReassignment:
    partition_index: i32 = 0
    replicas: list[i32] = field(default=[])
    adding_replicas: list[i32] = field(default=[])
    removing_replicas: list[i32] = field(default=[])


@struct
class OngoingTopicReassignment:
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(default=[])


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = field(default=[])
