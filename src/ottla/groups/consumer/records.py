"""The records of a consumer group, types 3 and 5 to 8 and 16 of `__consumer_offsets`.

Kafka writes what is listed by topic in the order of its hash maps; here it is in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.core.outcome import LogRecord
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.consumer.member import Member, by_topic
from ottla.groups.records import record, tombstone
from ottla.protocol.stored import groups as stored


def member_metadata(group_id: str, member: Member) -> LogRecord:
    return record(
        stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        stored.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    return record(
        stored.ConsumerGroupMetadataKey(group_id=group_id),
        stored.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target(group_id: str, member_id: str, partitions: Iterable[Partition]) -> LogRecord:
    return record(
        stored.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        stored.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored.TopicPartition(topic_id=topic_id, partitions=indices)
                for topic_id, indices in by_topic(partitions).items()
            ]
        ),
    )


def target_epoch(group_id: str, epoch: int, timestamp: int) -> LogRecord:
    return record(
        stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        stored.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp
        ),
    )


def current(group_id: str, member: Member) -> LogRecord:
    return record(
        stored.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        stored.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def _with_epochs(partitions: Mapping[Partition, int]) -> list[stored.TopicPartitions]:
    return [
        stored.TopicPartitions(
            topic_id=topic_id,
            partitions=indices,
            assignment_epochs=[partitions[topic_id, index] for index in indices],
        )
        for topic_id, indices in by_topic(partitions).items()
    ]


def regular_expression(group_id: str, regex: str, topics: Iterable[str], timestamp: int) -> LogRecord:
    return record(
        stored.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        stored.ConsumerGroupRegularExpressionValue(topics=sorted(topics), timestamp=timestamp),
    )


def no_member_metadata(group_id: str, member_id: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def no_group_epoch(group_id: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupMetadataKey(group_id=group_id))


def no_target(group_id: str, member_id: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def no_target_epoch(group_id: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def no_current(group_id: str, member_id: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def no_regular_expression(group_id: str, regex: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def no_partition_metadata(group_id: str) -> LogRecord:
    return tombstone(stored.ConsumerGroupPartitionMetadataKey(group_id=group_id))


def forget_member(group_id: str, member_id: str) -> list[LogRecord]:
    """A member is gone. Kafka insists on this order when it reads them."""
    return [
        no_current(group_id, member_id),
        no_target(group_id, member_id),
        no_member_metadata(group_id, member_id),
    ]
