"""AlterReplicaLogDirs (key 34): move replicas between the log directories of a broker.

v2 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class AlterReplicaLogDirTopic:
    name: str = ""
    partitions: list[i32] = field(default=[])


@struct
class AlterReplicaLogDir:
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(default=[])


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = field(default=[])


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default=[])


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default=[])
