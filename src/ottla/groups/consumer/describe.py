"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.core.topics import Topics
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member, by_topic
from ottla.groups.consumer.target import preferred_assignor
from ottla.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, TopicPartitions
from ottla.protocol.messages.consumer_group_describe import Member as DescribedMember

CLASSIC: Final = 0  # types of members
CONSUMER: Final = 1


def described(group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), group.machine.settings()),
        members=[_member(group, member) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: Member) -> DescribedMember:
    topics = group.machine.topics
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment([*member.assigned, *member.revoking], topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=CLASSIC if member.is_classic else CONSUMER,
    )


def _assignment(partitions: Iterable[Partition], topics: Topics) -> Assignment:
    """Topics that were deleted meanwhile are not shown."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indices)
            for topic_id, indices in by_topic(partitions).items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )
