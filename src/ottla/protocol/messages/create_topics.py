"""CreateTopics (key 19): create topics.

v1 validate_only, error message; v2 throttle time; v4 the broker's defaults for -1 partitions or replicas
(KIP-464); v5 flexible, the new topic's configs in the answer (KIP-525); v6 THROTTLING_QUOTA_EXCEEDED
(KIP-599); v7 topic id (KIP-516).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class CreatableReplicaAssignment:
    partition_index: i32 = 0
    broker_ids: list[i32] = field(default=[])


@struct
class CreatableTopicConfig:
    name: str = ""
    value: str | None = ""


@struct
class CreatableTopic:
    name: str = ""
    num_partitions: i32 = 0
    replication_factor: i16 = 0
    assignments: list[CreatableReplicaAssignment] = field(default=[])
    configs: list[CreatableTopicConfig] = field(default=[])


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    topics: list[CreatableTopic] = field(default=[])
    timeout_ms: i32 = 60000
    validate_only: bool = field("1+", default=False)


@struct
class CreatableTopicConfigs:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: i8 = -1
    is_sensitive: bool = False


@struct
class CreatableTopicResult:
    name: str = ""
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)
    error_code: i16 = 0
    error_message: str | None = field("1+", default="", ignorable=True)
    topic_config_error_code: i16 = field("5+", default=0, tag=0, ignorable=True)
    num_partitions: i32 = field("5+", default=-1, ignorable=True)
    replication_factor: i16 = field("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field("5+", default=[], ignorable=True)


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: i32 = field("2+", default=0, ignorable=True)
    topics: list[CreatableTopicResult] = field(default=[])
