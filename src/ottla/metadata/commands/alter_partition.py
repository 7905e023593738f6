"""AlterPartition (key 56): a leader changes the in-sync set of its partition."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.core.ids import Uuid
from ottla.metadata.election import Election
from ottla.metadata.image import MetadataRecord, Topic
from ottla.metadata.leadership import change_of
from ottla.metadata.partition import NO_LEADER_CHANGE, RECOVERED, RECOVERING, PartitionState
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    OperationNotAttempted,
    StaleBrokerEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionDataResponse,
    TopicData,
    TopicDataResponse,
)


def alter_partition(state: ControllerState, request: AlterPartitionRequest, context: Context) -> Decision:
    try:
        state.check_broker_epoch(request.broker_id, request.broker_epoch)
    except StaleBrokerEpoch as error:
        return Decision([], AlterPartitionResponse(error_code=error.code))
    records: list[MetadataRecord] = []
    topics = []
    for asked in request.topics:
        answers = []
        topic = _topic(state, asked, context.version)
        for partition in asked.partitions:
            try:
                after = _alter(state, request.broker_id, topic, partition, context.version, records)
            except KafkaError as error:
                answers.append(
                    PartitionDataResponse(partition_index=partition.partition_index, error_code=error.code)
                )
            else:
                answers.append(_answer(partition.partition_index, after))
        topics.append(
            TopicDataResponse(topic_name=asked.topic_name, topic_id=asked.topic_id, partitions=answers)
        )
    return Decision(records, AlterPartitionResponse(topics=topics), atomic=False)


def _topic(state: ControllerState, asked: TopicData, version: int) -> Topic | None:
    if version < 2:
        return state.image.topics.get(asked.topic_name)
    return state.image.topic_by_id.get(Uuid(asked.topic_id))


def _alter(
    state: ControllerState,
    sender: int,
    topic: Topic | None,
    asked: PartitionData,
    version: int,
    records: list[MetadataRecord],
) -> PartitionState:
    """The partition after the change, whose record is added to `records`."""
    if topic is None:
        raise UnknownTopicId if version >= 2 else UnknownTopicOrPartition
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        raise UnknownTopicOrPartition
    members = (
        asked.new_isr_with_epochs
        if version >= 3
        else [BrokerState(broker_id=broker) for broker in asked.new_isr]
    )
    _check(state, sender, partition, asked, members, version)
    unclean = state.is_unclean_election_enabled(topic.name)
    record = change_of(
        state,
        topic,
        asked.partition_index,
        partition,
        election=Election.UNCLEAN if unclean else Election.ONLINE,
        isr=tuple(member.broker_id for member in members),
        leader_recovery_state=asked.leader_recovery_state,
    ).record()
    if record is None:
        return partition
    records.append(record)
    if record.leader not in (NO_LEADER_CHANGE, sender):
        # The change completed a reassignment that takes the leader away. It is made, and yet the sender
        # gets an error: it has to learn who leads now before it may ask for anything again.
        raise NewLeaderElected if version >= 2 else FencedLeaderEpoch
    return partition.changed(record)


def _check(
    state: ControllerState,
    sender: int,
    partition: PartitionState,
    asked: PartitionData,
    members: Sequence[BrokerState],
    version: int,
) -> None:
    # A leader that knows more than we do has heard from a newer controller.
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        raise NotController
    if asked.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpoch
    if sender != partition.leader:
        raise InvalidRequest
    if asked.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersion
    isr = [member.broker_id for member in members]
    if not isr or len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        raise InvalidRequest
    if partition.leader not in isr:
        raise InvalidRequest
    if asked.leader_recovery_state not in (RECOVERED, RECOVERING):
        raise InvalidRequest
    if asked.leader_recovery_state == RECOVERING and (
        len(isr) > 1 or partition.leader_recovery_state == RECOVERED
    ):
        raise InvalidRequest
    if not all(_is_eligible(state, member) for member in members):
        raise IneligibleReplica if version >= 2 else OperationNotAttempted


def _is_eligible(state: ControllerState, member: BrokerState) -> bool:
    """Whether a broker may be in sync: it is there, and it is the incarnation that the leader means."""
    broker = state.image.brokers.get(member.broker_id)
    return broker is not None and broker.is_active and member.broker_epoch in (-1, broker.epoch)


def _answer(number: int, partition: PartitionState) -> PartitionDataResponse:
    return PartitionDataResponse(
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
