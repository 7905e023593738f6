"""StreamsGroupHeartbeat (key 88): join, stay in or leave a streams group (KIP-1071)."""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct, u16


@struct
class KeyValue:
    key: str = ""
    value: str = ""


@struct
class TopicInfo:
    name: str = ""
    partitions: i32 = 0
    replication_factor: i16 = 0
    topic_configs: list[KeyValue] = field(default=[])


@struct
class CopartitionGroup:
    source_topics: list[i16] = field(default=[])
    source_topic_regex: list[i16] = field(default=[])
    repartition_source_topics: list[i16] = field(default=[])


@struct
class Subtopology:
    subtopology_id: str = ""
    source_topics: list[str] = field(default=[])
    source_topic_regex: list[str] = field(default=[])
    state_changelog_topics: list[TopicInfo] = field(default=[])
    repartition_sink_topics: list[str] = field(default=[])
    repartition_source_topics: list[TopicInfo] = field(default=[])
    copartition_groups: list[CopartitionGroup] = field(default=[])


@struct
class Topology:
    epoch: i32 = 0
    subtopologies: list[Subtopology] = field(default=[])


@struct
class TaskIds:
    subtopology_id: str = ""
    partitions: list[i32] = field(default=[])


@struct
class Endpoint:
    host: str = ""
    port: u16 = 0


@struct
class TaskOffset:
    subtopology_id: str = ""
    partition: i32 = 0
    offset: i64 = 0


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    endpoint_information_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


@struct
class Status:
    status_code: i8 = 0
    status_detail: str = ""


@struct
class TaskIdsResponse:
    subtopology_id: str = ""
    partitions: list[i32] = field(default=[])


@struct
class EndpointResponse:
    host: str = ""
    port: u16 = 0


@struct
class TopicPartition:
    topic: str = ""
    partitions: list[i32] = field(default=[])


@struct
class EndpointToPartitions:
    user_endpoint: EndpointResponse = field(default=EndpointResponse())
    active_partitions: list[TopicPartition] = field(default=[])
    standby_partitions: list[TopicPartition] = field(default=[])


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    acceptable_recovery_lag: i32 = 0
    task_offset_interval_ms: i32 = 0
    status: list[Status] | None = field(default=[])
    active_tasks: list[TaskIdsResponse] | None = None
    standby_tasks: list[TaskIdsResponse] | None = None
    warmup_tasks: list[TaskIdsResponse] | None = None
    endpoint_information_epoch: i32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
