"""Produce (key 0, versions 0-13): append one batch to each named partition.

Kafka 4 dropped versions 0 to 2; we serve them, and turn their message sets into a batch. A partition with
null records is answered INVALID_RECORD, where Kafka 4.3 never answers at all.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.core.acl import Operation, ResourceType
from ottla.core.files import Buffer
from ottla.core.types import INTERNAL_TOPICS
from ottla.protocol.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTimestamp,
    InvalidTopic,
    KafkaError,
    NotLeaderOrFollower,
    RequestTimedOut,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnsupportedCompressionType,
)
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.replication.partition import Partition
from ottla.server.context import Context, Disconnect
from ottla.server.hosting import hosted
from ottla.server.transactional_produce import Unverified, append_when_verified, may_append
from ottla.server.waiting import settled
from ottla.storage.log import Appended

# Kafka's own tools may repair an internal topic by hand under this client id.
ADMIN_CLIENT: Final = "__admin_client"

MAGIC: Final = 16  # where a batch says its format
ATTRIBUTES: Final = 22  # the byte that says codec and transaction
TRANSACTIONAL: Final = 0x10
CODEC: Final = 0x07
ZSTD: Final = 4
BATCH_HEADER: Final = 61

Waiting = list[tuple[PartitionProduceResponse, asyncio.Future[None]]]


async def produce(request: ProduceRequest, ctx: Context) -> ProduceResponse | None:
    # Until its first await a handler runs in the order the client sent its requests.
    guarded = ctx.node.authorizer is not None
    if guarded and _has_transactional_batch(request) and not _may_use_transactional_id(request, ctx):
        return _refused_whole(request, TransactionalIdAuthorizationFailed())
    waiting: Waiting = []
    unverified: list[Unverified] = []
    now_ms = ctx.node.clock.wall_ms()
    responses = []
    for topic in request.topic_data:
        name = topic.name
        refused: KafkaError | None = None
        if ctx.version >= 13:
            known = ctx.node.image.topic_by_id.get(topic.topic_id)
            if known is None:
                refused = UnknownTopicId()
            else:
                name = known.name
        if guarded and refused is None and not ctx.allows(Operation.WRITE, ResourceType.TOPIC, name):
            refused = TopicAuthorizationFailed()
        elif name in INTERNAL_TOPICS and ctx.client_id != ADMIN_CLIENT:
            refused = InvalidTopic("Clients may not write to an internal topic")
        answers = [
            _append(request, ctx, name, data, now_ms, waiting, unverified)
            if refused is None
            else _refused(data.index, refused)
            for data in topic.partition_data
        ]
        responses.append(
            TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if unverified:
        await _append_unverified(unverified, request, ctx, waiting)
    if request.acks == 0:
        _close_on_error(responses)
        return None
    if waiting:
        await settled([future for _, future in waiting], request.timeout_ms)
        for answer, future in waiting:
            take_outcome(answer, future)
    response = ProduceResponse(responses=responses)
    if ctx.version >= 10:
        _point_to_leaders(response, ctx)
    return response


def _has_transactional_batch(request: ProduceRequest) -> bool:
    """Every batch is looked at: one that is transactional counts wherever it stands."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) >= BATCH_HEADER
                and records[MAGIC] == 2
                and records[ATTRIBUTES] & TRANSACTIONAL
            ):
                return True
    return False


def _may_use_transactional_id(request: ProduceRequest, ctx: Context) -> bool:
    name = request.transactional_id
    return name is not None and ctx.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)


def _refused_whole(request: ProduceRequest, error: KafkaError) -> ProduceResponse | None:
    responses = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[_refused(data.index, error) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    if request.acks == 0:
        _close_on_error(responses)
        return None
    return ProduceResponse(responses=responses)


def _append(
    request: ProduceRequest,
    ctx: Context,
    topic: str,
    data: PartitionProduceData,
    now_ms: int,
    waiting: Waiting,
    unverified: list[Unverified],
) -> PartitionProduceResponse:
    acks = request.acks
    try:
        if acks not in (-1, 0, 1):
            raise InvalidRequiredAcks
        partition = hosted(ctx.node, topic, data.index)
        records = data.records
        if records is None or len(records) < BATCH_HEADER or records[MAGIC] != 2 or ctx.version < 3:
            records = _as_batch(records, ctx.version)
        attributes = records[ATTRIBUTES]
        if attributes & CODEC == ZSTD and ctx.version < 7:
            raise UnsupportedCompressionType
        if attributes & TRANSACTIONAL and not may_append(request, ctx.version, partition, records, ctx.node):
            answer = PartitionProduceResponse(index=data.index)
            unverified.append(Unverified(partition, records, answer))
            return answer
        appended = partition.append(records, now_ms, acks)
    except KafkaError as error:
        return _refused(data.index, error)
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.start_offset,
    )
    if acks == -1:
        _wait_for(ctx, partition, appended.last_offset, answer, waiting)
    return answer


async def _append_unverified(
    unverified: list[Unverified], request: ProduceRequest, ctx: Context, waiting: Waiting
) -> None:
    """The rest of `_append`, for batches that had to wait for the transaction's coordinator."""

    def appended(batch: Unverified, done: Appended) -> None:
        answer = batch.answer
        answer.base_offset = done.base_offset
        answer.log_append_time_ms = done.log_append_time_ms
        answer.log_start_offset = batch.partition.log.start_offset
        if request.acks == -1:
            _wait_for(ctx, batch.partition, done.last_offset, answer, waiting)

    def refused(batch: Unverified, error: KafkaError) -> None:
        _refuse(batch.answer, error)

    await append_when_verified(unverified, request, ctx.version, ctx.node, appended=appended, refused=refused)


def _wait_for(
    ctx: Context, partition: Partition, last_offset: int, answer: PartitionProduceResponse, waiting: Waiting
) -> None:
    """acks=all is answered when every in-sync replica has the batch; a durable one has synced it."""
    committed = partition.committed(last_offset)
    if committed is not None:
        waiting.append((answer, committed))
    synced = ctx.node.synced(partition, last_offset)
    if synced is not None:
        waiting.append((answer, synced))


def take_outcome(answer: PartitionProduceResponse, future: asyncio.Future[None]) -> None:
    """Take an answer back if what it waited for has failed."""
    error = future.exception()
    if error is None or answer.error_code:
        return
    if isinstance(error, TimeoutError):
        error = RequestTimedOut()  # the records stay written; only the answer is late
    if not isinstance(error, KafkaError):
        raise error
    answer.error_code = error.code
    answer.error_message = str(error)
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1


def _as_batch(records: Buffer | None, version: int) -> Buffer:
    """What is not plainly a batch: an old message set to convert, or nothing we take."""
    if not records:
        raise InvalidRecord("A produce request needs exactly one record batch for each partition")
    if version >= 3:
        if len(records) > MAGIC and records[MAGIC] < 2:
            raise InvalidRecord(f"Produce version {version} takes batches of magic 2, not {records[MAGIC]}")
        if len(records) < BATCH_HEADER:
            raise InvalidRecord(f"{len(records)} bytes are no record batch")
        return records
    from ottla.protocol.message_set import up_convert  # only for clients of before 2017

    return up_convert(records)


def _refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    return _refuse(PartitionProduceResponse(index=index), error)


def _refuse(answer: PartitionProduceResponse, error: KafkaError) -> PartitionProduceResponse:
    answer.error_code, answer.error_message = error.code, str(error)
    answer.base_offset = -1
    if isinstance(error, InvalidRecord | InvalidTimestamp):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    return answer


def _close_on_error(responses: list[TopicProduceResponse]) -> None:
    """With acks=0 the only way to say that something went wrong is to hang up."""
    for topic in responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                raise Disconnect(
                    f"acks=0 produce to {topic.name}-{answer.index} failed: {answer.error_message}"
                )


def _point_to_leaders(response: ProduceResponse, ctx: Context) -> None:
    """Tell a client that came to the wrong broker where to go (KIP-951)."""
    leaders: set[int] = set()
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != NotLeaderOrFollower.code:
                continue
            known = ctx.node.image.topics.get(topic.name)
            partition = None if known is None else known.partitions.get(answer.index)
            if partition is not None and partition.leader >= 0:
                answer.current_leader = LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
                leaders.add(partition.leader)
    for leader in sorted(leaders):
        broker = ctx.node.image.brokers.get(leader)
        if broker is not None:
            host, port = ctx.node.broker_endpoint(broker, ctx.connection)
            response.node_endpoints.append(
                NodeEndpoint(node_id=leader, host=host, port=port, rack=broker.rack)
            )
