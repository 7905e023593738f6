"""What administrators ask of share groups: a description, other positions, an end.

The positions are with the share coordinator, so whatever changes them takes two steps: a command here that
writes what is going to be done, and another that writes that it was, with the share coordinator in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.core.ids import Uuid
from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.groups.share import assignor
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import Initialize
from ottla.groups.share.partitions import Indices, PartitionStates, SharedTopic
from ottla.protocol.errors import GroupIdNotFound, KafkaError, NonEmptyGroup, UnknownTopicOrPartition
from ottla.protocol.messages import share_group_describe as described
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ottla.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponseTopic

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine


class Alter(NamedTuple):
    topics: list[AlterShareGroupOffsetsResponseTopic]
    initialize: Initialize


class Delete(NamedTuple):
    """States that the share coordinator has to delete, and topics for which there are none."""

    topics: Mapping[Uuid, frozenset[int]]
    errors: list[DeleteShareGroupOffsetsResponseTopic]


def share_group(machine: GroupMachine, group_id: str) -> ShareGroup:
    group = machine.groups.get(group_id)
    if group is None:
        raise GroupIdNotFound(f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise GroupIdNotFound(f"Group {group_id} is not a share group.")
    return group


# --- describing ----------------------------------------------------------------------------


def describe(machine: GroupMachine, group_id: str) -> Outcome:
    """Answers a `DescribedGroup`."""
    group = share_group(machine, group_id)
    name_of = machine.topics.name_of
    members = []
    for member in group.members.values():
        assigned = [
            described.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indices)
            for topic_id, indices in member.assigned_by_topic().items()
            if (name := name_of(topic_id)) is not None
        ]
        members.append(
            described.Member(
                member_id=member.member_id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=sorted(member.topic_names),
                assignment=described.Assignment(topic_partitions=assigned),
            )
        )
    return Outcome(
        reply=described.DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=assignor.NAME,
            members=members,
        )
    )


def initialized_partitions(machine: GroupMachine, group_id: str) -> Outcome:
    """Answers partitions by topic id; none for a group that is not there."""
    group = machine.groups.get(group_id)
    found = group.partitions.initialized if isinstance(group, ShareGroup) else {}
    return Outcome(reply={topic_id: topic.partitions for topic_id, topic in found.items()})


# --- initializing --------------------------------------------------------------------------


def initialized(machine: GroupMachine, group_id: str, indices: Indices, now: Now) -> Outcome:
    """The share coordinator has the states of these partitions."""
    group = machine.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return Outcome(reply=False)
    topics = {}
    for topic_id, partitions in indices.items():
        name = machine.topics.name_of(topic_id)
        if name is not None:  # else it was deleted meanwhile
            topics[topic_id] = SharedTopic(name, frozenset(partitions))
    return Outcome(records=_if_changed(group, group.partitions.finish(topics)), reply=True)


def not_initialized(machine: GroupMachine, group_id: str, indices: Indices) -> Outcome:
    """It has not, and the next heartbeat may try again."""
    group = machine.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return Outcome(reply=False)
    return Outcome(records=_if_changed(group, group.partitions.give_up(indices)), reply=True)


def _if_changed(group: ShareGroup, partitions: PartitionStates) -> list[LogRecord]:
    written = group.written(partitions)
    return [] if written == group.written(group.partitions) else [written]


# --- altering ------------------------------------------------------------------------------


def alter_offsets(
    machine: GroupMachine, group_id: str, topics: Iterable[AlterShareGroupOffsetsRequestTopic], now: Now
) -> Outcome:
    """Answers an `Alter`. A group that is not there is made."""
    is_known = group_id in machine.groups
    group = share_group(machine, group_id) if is_known else ShareGroup(group_id, machine)
    if group.members:
        raise NonEmptyGroup
    answers = []
    start_offsets: dict[Uuid, dict[int, int]] = {}
    for topic in topics:
        topic_id = machine.topics.topic_id(topic.topic_name)
        count = machine.topics.partition_count(topic.topic_name) or 0
        answer = AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=[])
        if topic_id is not None:
            answer.topic_id = topic_id
        for partition in topic.partitions:
            result = AlterShareGroupOffsetsResponsePartition(partition_index=partition.partition_index)
            if topic_id is not None and 0 <= partition.partition_index < count:
                start_offsets.setdefault(topic_id, {})[partition.partition_index] = partition.start_offset
            else:
                error = UnknownTopicOrPartition()
                result.error_code, result.error_message = error.code, str(error)
            answer.partitions.append(result)
        answers.append(answer)
    outcome = Outcome(reply=Alter(answers, Initialize(group_id, group.epoch, start_offsets)))
    if start_offsets:
        begun = {
            topic_id: SharedTopic(machine.topics.name_of(topic_id) or "", frozenset(offsets))
            for topic_id, offsets in start_offsets.items()
        }
        outcome.records.append(group.written(group.partitions.begin(begun)))
    return outcome


# --- deleting ------------------------------------------------------------------------------


def delete_offsets(machine: GroupMachine, group_id: str, names: Iterable[str]) -> Outcome:
    """Answers a `Delete`: what the share coordinator has to forget before `offsets_deleted`."""
    group = share_group(machine, group_id)
    group.check_delete()
    known = group.partitions
    topics: dict[Uuid, frozenset[int]] = {}
    errors = []
    deleting = dict(known.deleting)
    for name in names:
        topic_id = machine.topics.topic_id(name)
        if topic_id is None:
            errors.append(_no_topic(name, UnknownTopicOrPartition()))
        elif topic_id in known.initialized:
            topics[topic_id] = known.initialized[topic_id].partitions
            deleting[topic_id] = name
        elif topic_id in deleting:
            # Somebody began with it and did not come to an end.
            topics[topic_id] = frozenset(range(machine.topics.partition_count(name) or 0))
        else:
            errors.append(
                _no_topic(name, UnknownTopicOrPartition("There is no offset information to delete."))
            )
    outcome = Outcome(reply=Delete(topics, errors))
    left = {topic_id: topic for topic_id, topic in known.initialized.items() if topic_id not in topics}
    outcome.records += _if_changed(group, PartitionStates(known.initializing, left, deleting))
    return outcome


def _no_topic(name: str, error: KafkaError) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=error.code, error_message=str(error)
    )


def offsets_deleted(machine: GroupMachine, group_id: str, topic_ids: Iterable[Uuid]) -> Outcome:
    """The share coordinator has forgotten these topics."""
    group = share_group(machine, group_id)
    known, gone = group.partitions, set(topic_ids)
    deleting = {topic_id: name for topic_id, name in known.deleting.items() if topic_id not in gone}
    left = PartitionStates(known.initializing, known.initialized, deleting)
    return Outcome(records=_if_changed(group, left), reply=True)


def delete_states(machine: GroupMachine, group_id: str) -> Outcome:
    """A group is about to be deleted. Answers what the share coordinator has to forget first.

    Nothing for groups of other kinds, and for those that may not be deleted: that comes out later.
    """
    group = machine.groups.get(group_id)
    if not isinstance(group, ShareGroup) or group.members:
        return Outcome(reply={})
    known = group.partitions
    topics: dict[Uuid, frozenset[int]] = {}
    names = dict(known.deleting)
    for topic_id in known.deleting:
        name = machine.topics.name_of(topic_id)
        if name is not None:
            topics[topic_id] = frozenset(range(machine.topics.partition_count(name) or 0))
    for some in (known.initializing, known.initialized):
        for topic_id, topic in some.items():
            topics[topic_id] = topics.get(topic_id, frozenset()) | topic.partitions
            names[topic_id] = topic.name
    return Outcome(records=_if_changed(group, PartitionStates(deleting=names)), reply=topics)
