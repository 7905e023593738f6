"""Records of `__consumer_offsets`: positions, and the state of classic, consumer, share and streams groups.

The bytes of a key are preceded by the record type (`api_key`) as an int16, those of a value by its version.
A null value takes back what its key says.
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct, u16


@message(key=0, versions="0")
class LegacyOffsetCommitKey:
    """Of a committed position, as written before Kafka 0.9."""

    group: str = ""
    topic: str = ""
    partition: i32 = 0


@message(key=0, versions="0")
class LegacyOffsetCommitValue:
    """A committed position, as written before Kafka 0.9."""

    offset: i64 = 0
    metadata: str = ""
    commit_timestamp: i64 = 0


@message(key=1, versions="0")
class OffsetCommitKey:
    """Of a committed position."""

    group: str = ""
    topic: str = ""
    partition: i32 = 0


@message(key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A committed position."""

    offset: i64 = 0
    leader_epoch: i32 = field("3+", default=-1, ignorable=True)
    metadata: str = ""
    commit_timestamp: i64 = 0
    expire_timestamp: i64 = field("1", default=-1, ignorable=True)
    topic_id: Uuid = field("4+", default=ZERO_UUID, tag=0, ignorable=True)


@message(key=2, versions="0")
class GroupMetadataKey:
    """Of a classic group."""

    group: str = ""


@struct
class MemberMetadata:
    member_id: str = ""
    group_instance_id: str | None = field("3+", default=None, ignorable=True)
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: i32 = field("1+", default=-1, ignorable=True)
    session_timeout: i32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


@message(key=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A classic group with its members."""

    protocol_type: str = ""
    generation: i32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: i64 = field("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(default=[])


@message(key=3, versions="0")
class ConsumerGroupMetadataKey:
    """Of a consumer group's epoch."""

    group_id: str = ""


@message(key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """A consumer group's epoch, and a hash of the topics it reads (KIP-1101)."""

    epoch: i32 = 0
    metadata_hash: i64 = field(default=0, tag=0)


@message(key=4, versions="0")
class ConsumerGroupPartitionMetadataKey:
    """Of a consumer group's topics; the metadata hash has replaced it (KIP-1101)."""

    group_id: str = ""


@struct
class PartitionMetadata:
    partition: i32 = 0
    racks: list[str] = field(default=[])


@struct
class TopicMetadata:
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: i32 = 0
    partition_metadata: list[PartitionMetadata] = field(default=[])


@message(key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The topics of a consumer group; the metadata hash has replaced it (KIP-1101)."""

    topics: list[TopicMetadata] = field(default=[])


@message(key=5, versions="0")
class ConsumerGroupMemberMetadataKey:
    """Of a member of a consumer group."""

    group_id: str = ""
    member_id: str = ""


@struct
class ClassicProtocol:
    name: str = ""
    metadata: bytes = b""


@struct
class ClassicMemberMetadata:
    session_timeout_ms: i32 = 0
    supported_protocols: list[ClassicProtocol] = field(default=[])


@message(key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """What a member of a consumer group has said of itself."""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default=[])
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: i32 = -1
    server_assignor: str | None = ""
    # Kafka's definition means a default of null here but does not say so, hence it writes a null out.
    classic_member_metadata: ClassicMemberMetadata | None = field(default=ClassicMemberMetadata(), tag=0)


@message(key=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    """Of a target assignment's epoch."""

    group_id: str = ""


@message(key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The epoch of a consumer group's target assignment."""

    assignment_epoch: i32 = 0
    assignment_timestamp: i64 = field(default=0, tag=0)


@message(key=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    """Of a member's target assignment."""

    group_id: str = ""
    member_id: str = ""


@struct
class TopicPartition:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])


@message(key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that a member is to have."""

    topic_partitions: list[TopicPartition] = field(default=[])


@message(key=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    """Of a member's present assignment."""

    group_id: str = ""
    member_id: str = ""


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])
    assignment_epochs: list[i32] | None = field(default=[], tag=0)


@message(key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The partitions that a member has, or still has to give up."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[TopicPartitions] = field(default=[])
    partitions_pending_revocation: list[TopicPartitions] = field(default=[])


@message(key=16, versions="0")
class ConsumerGroupRegularExpressionKey:
    """Of a subscribed regular expression."""

    group_id: str = ""
    regular_expression: str = ""


@message(key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that a regular expression stands for."""

    topics: list[str] = field(default=[])
    version: i64 = 0
    timestamp: i64 = 0


@message(key=10, versions="0")
class ShareGroupMemberMetadataKey:
    """Of a member of a share group."""

    group_id: str = ""
    member_id: str = ""


@message(key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """What a member of a share group has said of itself."""

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default=[])


@message(key=11, versions="0")
class ShareGroupMetadataKey:
    """Of a share group's epoch."""

    group_id: str = ""


@message(key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """A share group's epoch."""

    epoch: i32 = 0
    metadata_hash: i64 = 0


@message(key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey:
    """Of a share group's target assignment epoch."""

    group_id: str = ""


@message(key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """The epoch of a share group's target assignment."""

    assignment_epoch: i32 = 0
    assignment_timestamp: i64 = field(default=0, tag=0)


@message(key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey:
    """Of a share group member's target assignment."""

    group_id: str = ""
    member_id: str = ""


@message(key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The partitions that a member of a share group is to have."""

    topic_partitions: list[TopicPartition] = field(default=[])


@message(key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey:
    """Of a share group member's present assignment."""

    group_id: str = ""
    member_id: str = ""


@struct
class ShareTopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])


@message(key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """The partitions that a member of a share group has."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[ShareTopicPartitions] = field(default=[])


@message(key=15, versions="0")
class ShareGroupStatePartitionMetadataKey:
    """Of a share group's initialized partitions."""

    group_id: str = ""


@struct
class TopicPartitionsInfo:
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[i32] = field(default=[])


@struct
class TopicInfo:
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""


@message(key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """The partitions whose share state is initialized, or being initialized or deleted."""

    initializing_topics: list[TopicPartitionsInfo] = field(default=[])
    initialized_topics: list[TopicPartitionsInfo] = field(default=[])
    deleting_topics: list[TopicInfo] = field(default=[])


@message(key=17, versions="0")
class StreamsGroupMetadataKey:
    """Of a streams group's epoch."""

    group_id: str = ""


@struct
class LastAssignmentConfig:
    key: str = ""
    value: str = ""


@message(key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    """A streams group's epoch."""

    epoch: i32 = 0
    metadata_hash: i64 = 0
    validated_topology_epoch: i32 = field(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = field(default=[], tag=1)


@message(key=19, versions="0")
class StreamsGroupMemberMetadataKey:
    """Of a member of a streams group."""

    group_id: str = ""
    member_id: str = ""


@struct
class Endpoint:
    host: str = ""
    port: u16 = 0


@struct
class KeyValue:
    key: str = ""
    value: str = ""


@message(key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    """What a member of a streams group has said of itself."""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: i32 = -1
    topology_epoch: i32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default=[])


@message(key=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey:
    """Of a streams group's target assignment epoch."""

    group_id: str = ""


@message(key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    """The epoch of a streams group's target assignment."""

    assignment_epoch: i32 = 0
    assignment_timestamp: i64 = field(default=0, tag=0)


@message(key=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey:
    """Of a streams group member's target assignment."""

    group_id: str = ""
    member_id: str = ""


@struct
class TaskIds:
    subtopology_id: str = ""
    partitions: list[i32] = field(default=[])


@message(key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    """The tasks that a member of a streams group is to have."""

    active_tasks: list[TaskIds] = field(default=[])
    standby_tasks: list[TaskIds] = field(default=[])
    warmup_tasks: list[TaskIds] = field(default=[])


@message(key=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey:
    """Of a streams group member's present assignment."""

    group_id: str = ""
    member_id: str = ""


@struct
class CurrentTaskIds:
    subtopology_id: str = ""
    partitions: list[i32] = field(default=[])
    assignment_epochs: list[i32] | None = field(default=[], tag=0)


@message(key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    """The tasks that a member of a streams group has, or still has to give up."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    active_tasks: list[CurrentTaskIds] = field(default=[])
    standby_tasks: list[CurrentTaskIds] = field(default=[])
    warmup_tasks: list[CurrentTaskIds] = field(default=[])
    active_tasks_pending_revocation: list[CurrentTaskIds] = field(default=[])
    standby_tasks_pending_revocation: list[CurrentTaskIds] = field(default=[])
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = field(default=[])


@message(key=23, versions="0")
class StreamsGroupTopologyKey:
    """Of a streams group's topology."""

    group_id: str = ""


@struct
class TopicConfig:
    key: str = ""
    value: str = ""


@struct
class StreamsTopicInfo:
    name: str = ""
    partitions: i32 = 0
    replication_factor: i16 = 0
    topic_configs: list[TopicConfig] = field(default=[])


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
    state_changelog_topics: list[StreamsTopicInfo] = field(default=[])
    repartition_sink_topics: list[str] = field(default=[])
    repartition_source_topics: list[StreamsTopicInfo] = field(default=[])
    copartition_groups: list[CopartitionGroup] = field(default=[])


@message(key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    """A streams group's topology."""

    epoch: i32 = 0
    subtopologies: list[Subtopology] = field(default=[])
