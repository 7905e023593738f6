"""TxnOffsetCommit, key 28, versions 0-5: store positions of a group as a part of a transaction.

The first ones of a transaction need the word of its coordinator, as the first batch in any partition does
(`runtime/verification.py`). Until version 4 the client has said AddOffsetsToTxn; from version 5 on the
partition of the group becomes part of the transaction here. A topic that may not be read concerns its
partitions alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.acl import Operation
from ottla.core.outcome import Now, Outcome
from ottla.core.types import CONSUMER_OFFSETS
from ottla.protocol.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidGroupId,
    KafkaError,
    NotCoordinator,
    TopicAuthorizationFailed,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.replication.partition import Partition
from ottla.runtime import verification
from ottla.runtime.shard import coordinator_error
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, check_transactional_id, split_topics
from ottla.storage.producer_state import Verification

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine

LOADING_SINCE: Final = 2  # older producers do not know that a coordinator may be loading
NO_SEQUENCE: Final = -1  # coordinators do not number their batches


async def txn_offset_commit(request: TxnOffsetCommitRequest, ctx: Context) -> TxnOffsetCommitResponse:
    caller = caller_of(ctx)
    producer = (request.producer_id, request.producer_epoch)
    refused: list[TxnOffsetCommitRequestTopic] = []
    response: TxnOffsetCommitResponse
    try:
        check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
        check_group(ctx, Operation.READ, request.group_id)
        request.topics, refused = split_topics(ctx, Operation.READ, request.topics, lambda topic: topic.name)
        if refused and not request.topics:
            raise TopicAuthorizationFailed
        if not request.group_id:
            raise InvalidGroupId
        await ctx.node.groups.prepare()
        partition = _partition_of(request.group_id, ctx)
        verified = await _verify(request, partition, ctx)

        def command(machine: GroupMachine, now: Now, ticket: object) -> Outcome:
            # The last look before the append: the transaction may have been ended while we asked about it.
            if verified is not None and not partition.log.producers.has_open_transaction(*producer):
                partition.log.producers.check_verified(*producer, NO_SEQUENCE, verified)
            return machine.txn_offset_commit(request, caller, now)

        response = await ctx.node.groups.call(request.group_id, command, transaction=producer)
    except CoordinatorLoadInProgress as error:
        known = error if ctx.version >= LOADING_SINCE else CoordinatorNotAvailable()
        response = TxnOffsetCommitResponse(topics=_refused(request.topics, known))
    except KafkaError as error:
        response = TxnOffsetCommitResponse(topics=_refused(request.topics, coordinator_error(error)))
    if refused:
        response.topics = _refused(refused, TopicAuthorizationFailed()) + response.topics
    return response


def _partition_of(group_id: str, ctx: Context) -> Partition:
    partition = ctx.node.replicas.find(CONSUMER_OFFSETS, ctx.node.groups.partition_for(group_id))
    if partition is None or not partition.is_leader:
        raise NotCoordinator
    return partition


async def _verify(request: TxnOffsetCommitRequest, partition: Partition, ctx: Context) -> Verification | None:
    """Hear from the transaction's coordinator, unless the transaction is open in the partition already."""
    producer = (request.producer_id, request.producer_epoch)
    producers = partition.log.producers
    operation = verification.of_txn_offset_commit(ctx.version)
    if producers.has_open_transaction(*producer) or not verification.is_needed(operation, ctx.node):
        return None
    patience = verification.Patience(ctx.node, request.transactional_id)
    while True:
        started = producers.start_verification(*producer, NO_SEQUENCE, ctx.node.clock.wall_ms())
        verdicts = await verification.ask_coordinator(
            ctx.node, request.transactional_id, *producer, [partition.partition], operation
        )
        error = verdicts[partition.partition]
        if error is None:
            return started
        if not isinstance(error, ConcurrentTransactions) or not await patience.wait():
            raise error


def _refused(
    topics: list[TxnOffsetCommitRequestTopic], error: KafkaError
) -> list[TxnOffsetCommitResponseTopic]:
    return [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error.code)
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
