"""StreamsGroupDescribe (key 89): the state, topology and members of streams groups (KIP-1071)."""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct, u16


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    group_ids: list[str] = field(default=[])
    include_authorized_operations: bool = False


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
class Subtopology:
    subtopology_id: str = ""
    source_topics: list[str] = field(default=[])
    repartition_sink_topics: list[str] = field(default=[])
    state_changelog_topics: list[TopicInfo] = field(default=[])
    repartition_source_topics: list[TopicInfo] = field(default=[])


@struct
class Topology:
    epoch: i32 = 0
    subtopologies: list[Subtopology] | None = None


@struct
class Endpoint:
    host: str = ""
    port: u16 = 0


@struct
class TaskOffset:
    subtopology_id: str = ""
    partition: i32 = 0
    offset: i64 = 0


@struct
class TaskIds:
    subtopology_id: str = ""
    partitions: list[i32] = field(default=[])


@struct
class Assignment:
    active_tasks: list[TaskIds] = field(default=[])
    standby_tasks: list[TaskIds] = field(default=[])
    warmup_tasks: list[TaskIds] = field(default=[])


@struct
class Member:
    member_id: str = ""
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: i32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default=[])
    task_offsets: list[TaskOffset] = field(default=[])
    task_end_offsets: list[TaskOffset] = field(default=[])
    assignment: Assignment = field(default=Assignment())
    target_assignment: Assignment = field(default=Assignment())
    is_classic: bool = False


@struct
class DescribedGroup:
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    topology: Topology | None = None
    members: list[Member] = field(default=[])
    authorized_operations: i32 = -2_147_483_648


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = field(default=[])
