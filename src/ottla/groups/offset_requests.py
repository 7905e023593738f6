"""What OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete do to the positions of a shard.

A topic that is unknown, or a metadata string that is too long, concerns its partition alone; a member that
may not commit concerns the partitions that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.core.caller import Caller
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.core.outcome import LogRecord, Now, Outcome
from ottla.groups.group import Committed, PartitionCheck
from ottla.groups.offsets import commit_record, commit_tombstone
from ottla.protocol.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    KafkaError,
    OffsetMetadataTooLarge,
    StaleMemberEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine

GROUP_ID_NOT_FOUND_SINCE: Final = 9  # version of OffsetCommit; before, a group that is gone has no generation
TOPIC_IDS_SINCE: Final = 10  # version of OffsetCommit and OffsetFetch


class _Permission:
    """Whether the caller may commit: asked of the group once, when a partition is fit to be committed.

    The answer is kept, since asking counts as a sign of life.
    """

    def __init__(self, ask: Callable[[], PartitionCheck | None]) -> None:
        self._ask = ask
        self._asked = False
        self._check: PartitionCheck | None = None
        self._error: KafkaError | None = None

    def require(self, topic: str, topic_id: Uuid, partition: int) -> None:
        if not self._asked:
            self._asked = True
            try:
                self._check = self._ask()
            except KafkaError as error:
                self._error = error
        if self._error is not None:
            raise self._error
        if self._check is not None:
            self._check(topic, topic_id, partition)


def commit(machine: GroupMachine, request: OffsetCommitRequest, caller: Caller, now: Now) -> Outcome:
    """Store positions. Every partition has its own answer."""

    def ask() -> PartitionCheck | None:
        group = machine.groups.get(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch < 0:
                return None  # a simple consumer: the group comes to exist by its first position
            raise GroupIdNotFound if caller.version >= GROUP_ID_NOT_FOUND_SINCE else IllegalGeneration
        return group.check_offset_commit(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            transactional=False,
            version=caller.version,
            now=now,
        )

    permission = _Permission(ask)
    expires = -1 if request.retention_time_ms == -1 else now.wall_ms + request.retention_time_ms
    outcome = Outcome()
    topics = []
    for topic in request.topics:
        by_id = caller.version >= TOPIC_IDS_SINCE
        name = machine.topics.name_of(topic.topic_id) if by_id else topic.name
        topic_id = topic.topic_id if by_id else machine.topics.topic_id(topic.name) or ZERO_UUID
        answers = []
        for each in topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=each.partition_index)
            try:
                if name is None:
                    raise UnknownTopicId
                made_at = now.wall_ms if each.commit_timestamp == -1 else each.commit_timestamp
                position = _position(each, made_at, expires, topic_id)
                outcome.records.append(
                    _commit_one(machine, request.group_id, name, each.partition_index, position, permission)
                )
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        topics.append(OffsetCommitResponseTopic(name=name or "", topic_id=topic.topic_id, partitions=answers))
    outcome.reply = OffsetCommitResponse(topics=topics)
    return outcome


def commit_in_transaction(
    machine: GroupMachine, request: TxnOffsetCommitRequest, caller: Caller, now: Now
) -> Outcome:
    """Store positions that take force when the transaction commits. The shell writes them as a part of it."""

    def ask() -> PartitionCheck | None:
        group = machine.groups.get(request.group_id)
        if group is None:
            if request.generation_id < 0:
                return None
            raise IllegalGeneration
        try:
            return group.check_offset_commit(
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                generation=request.generation_id,
                transactional=True,
                version=caller.version,
                now=now,
            )
        except StaleMemberEpoch:
            raise IllegalGeneration from None

    permission = _Permission(ask)
    outcome = Outcome()
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            answer = TxnOffsetCommitResponsePartition(partition_index=each.partition_index)
            try:
                position = _position(each, now.wall_ms, -1, ZERO_UUID)
                outcome.records.append(
                    _commit_one(
                        machine, request.group_id, topic.name, each.partition_index, position, permission
                    )
                )
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
    outcome.reply = TxnOffsetCommitResponse(topics=topics)
    return outcome


def fetch(
    machine: GroupMachine, asked: OffsetFetchRequestGroup, caller: Caller, require_stable: bool
) -> Outcome:
    """The positions of one group; of all partitions when none are named."""
    by_id = caller.version >= TOPIC_IDS_SINCE
    answer = OffsetFetchResponseGroup(group_id=asked.group_id)
    group = machine.groups.get(asked.group_id)
    if group is not None:
        try:
            group.check_offset_fetch(asked.member_id, asked.member_epoch)
        except GroupIdNotFound:
            group = None
        except KafkaError as error:
            answer.error_code = error.code
            return Outcome(reply=answer)
    if asked.topics is None:
        for name, positions in machine.offsets.of_group(asked.group_id).items() if group else ():
            topic_id = machine.topics.topic_id(name)
            if by_id and topic_id is None:
                continue  # it was deleted, and cannot be spoken of
            answer.topics.append(
                OffsetFetchResponseTopics(
                    name=name,
                    topic_id=topic_id or ZERO_UUID,
                    partitions=[
                        _fetched(machine, asked.group_id, name, partition, require_stable)
                        for partition in positions
                    ],
                )
            )
        return Outcome(reply=answer)
    for topic in asked.topics:
        known_as = machine.topics.name_of(topic.topic_id) if by_id else topic.name
        if known_as is None:
            partitions = [_nothing(partition, UnknownTopicId.code) for partition in topic.partition_indexes]
        elif group is None:
            partitions = [_nothing(partition) for partition in topic.partition_indexes]
        else:
            partitions = [
                _fetched(machine, asked.group_id, known_as, partition, require_stable)
                for partition in topic.partition_indexes
            ]
        answer.topics.append(
            OffsetFetchResponseTopics(name=known_as or "", topic_id=topic.topic_id, partitions=partitions)
        )
    return Outcome(reply=answer)


def delete(machine: GroupMachine, request: OffsetDeleteRequest) -> Outcome:
    """Forget positions, except of topics that the group's members read."""
    group = machine.groups.get(request.group_id)
    if group is None:
        raise GroupIdNotFound(f"Group {request.group_id} not found.")
    group.check_offset_delete()
    outcome = Outcome()
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            answer = OffsetDeleteResponsePartition(partition_index=each.partition_index)
            try:
                _require_partition(machine, topic.name, each.partition_index)
                if group.is_subscribed(topic.name):
                    raise GroupSubscribedToTopic
                place = (group.group_id, topic.name, each.partition_index)
                if machine.offsets.get(*place) is not None or machine.offsets.is_pending(*place):
                    outcome.records.append(commit_tombstone(*place))
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
    outcome.reply = OffsetDeleteResponse(topics=topics)
    return outcome


def _position(
    asked: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    made_at: int,
    expires: int,
    topic_id: Uuid,
) -> Committed:
    metadata = asked.committed_metadata or ""
    return Committed(
        asked.committed_offset, asked.committed_leader_epoch, metadata, made_at, expires, topic_id
    )


def _commit_one(
    machine: GroupMachine,
    group_id: str,
    topic: str,
    partition: int,
    position: Committed,
    permission: _Permission,
) -> LogRecord:
    _require_partition(machine, topic, partition)
    permission.require(topic, position.topic_id, partition)
    if _java_length(position.metadata) > machine.settings().offset_metadata_max_bytes:
        raise OffsetMetadataTooLarge
    return commit_record(group_id, topic, partition, position)


def _require_partition(machine: GroupMachine, topic: str, partition: int) -> None:
    count = machine.topics.partition_count(topic)
    if count is None or not 0 <= partition < count:
        raise UnknownTopicOrPartition


def _fetched(
    machine: GroupMachine, group_id: str, topic: str, partition: int, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if require_stable and machine.offsets.is_pending(group_id, topic, partition):
        return _nothing(partition, UnstableOffsetCommit.code)
    position = machine.offsets.get(group_id, topic, partition)
    if position is None or _is_of_another(position, machine.topics.topic_id(topic)):
        return _nothing(partition)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=position.offset,
        committed_leader_epoch=position.leader_epoch,
        metadata=position.metadata,
    )


def _is_of_another(position: Committed, topic_id: Uuid | None) -> bool:
    """Whether it is about a topic of the same name that was deleted."""
    return topic_id is not None and position.topic_id not in (ZERO_UUID, topic_id)


def _nothing(partition: int, error_code: int = 0) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=-1, error_code=error_code
    )


def _java_length(text: str) -> int:
    """How long Java takes a string to be: in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
