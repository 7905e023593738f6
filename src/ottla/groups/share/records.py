"""The records of a share group, types 10 to 15 of `__consumer_offsets`.

Kafka writes what is listed by topic in the order of its hash maps; here it is in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.core.ids import Uuid
from ottla.core.outcome import LogRecord
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.consumer.member import by_topic
from ottla.groups.records import record, tombstone
from ottla.groups.share.member import ShareMember
from ottla.groups.share.partitions import SharedTopic
from ottla.protocol.stored import groups as stored

STABLE = 0  # the state of a member: in share groups there is no other


def member_metadata(group_id: str, member: ShareMember) -> LogRecord:
    return record(
        stored.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        stored.ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    return record(
        stored.ShareGroupMetadataKey(group_id=group_id),
        stored.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target(group_id: str, member_id: str, partitions: Iterable[Partition]) -> LogRecord:
    return record(
        stored.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        stored.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored.TopicPartition(topic_id=topic_id, partitions=indices)
                for topic_id, indices in by_topic(partitions).items()
            ]
        ),
    )


def target_epoch(group_id: str, epoch: int, timestamp: int) -> LogRecord:
    return record(
        stored.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        stored.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp
        ),
    )


def current(group_id: str, member: ShareMember) -> LogRecord:
    return record(
        stored.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        stored.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=STABLE,
            assigned_partitions=[
                stored.ShareTopicPartitions(topic_id=topic_id, partitions=indices)
                for topic_id, indices in member.assigned_by_topic().items()
            ],
        ),
    )


def partition_states(
    group_id: str,
    initializing: Mapping[Uuid, SharedTopic],
    initialized: Mapping[Uuid, SharedTopic],
    deleting: Mapping[Uuid, str],
) -> LogRecord:
    return record(
        stored.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        stored.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_topics(initializing),
            initialized_topics=_topics(initialized),
            deleting_topics=[
                stored.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in sorted(deleting.items())
            ],
        ),
    )


def _topics(topics: Mapping[Uuid, SharedTopic]) -> list[stored.TopicPartitionsInfo]:
    return [
        stored.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in sorted(topics.items())
    ]


def forget_member(group_id: str, member_id: str) -> list[LogRecord]:
    """A member is gone. Kafka insists on this order when it reads them."""
    return [no_current(group_id, member_id), no_target(group_id, member_id), no_member(group_id, member_id)]


def no_current(group_id: str, member_id: str) -> LogRecord:
    return tombstone(stored.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def no_target(group_id: str, member_id: str) -> LogRecord:
    return tombstone(stored.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def no_member(group_id: str, member_id: str) -> LogRecord:
    return tombstone(stored.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def no_group(group_id: str) -> list[LogRecord]:
    """What is left of a group without members."""
    return [
        tombstone(stored.ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        tombstone(stored.ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        tombstone(stored.ShareGroupMetadataKey(group_id=group_id)),
    ]
