"""ElectLeaders (key 43): elect the preferred, or an unclean, leader of partitions.

v1 election type, top-level error (KIP-460); v2 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class TopicPartitions:
    topic: str = ""
    partitions: list[i32] = field(default=[])


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: i8 = field("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = field(default=[])
    timeout_ms: i32 = 60000


@struct
class PartitionResult:
    partition_id: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


@struct
class ReplicaElectionResult:
    topic: str = ""
    partition_result: list[PartitionResult] = field(default=[])


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = field(default=[])
