"""AddPartitionsToTxn, key 24, versions 0-5: make partitions part of a transaction, or ask whether they are.

Clients speak versions 0 to 3, about one transaction; brokers speak 4 and 5, about any number of them. Who
writes to an internal topic in a transaction is a coordinator, so clients cannot add one.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.core.acl import Operation, ResourceType
from ottla.core.outcome import Now, Outcome
from ottla.core.types import INTERNAL_TOPICS, TopicPartition
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    KafkaError,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.server.context import Context
from ottla.server.transaction_calls import code_for, when_free
from ottla.transactions.machine import TransactionMachine
from ottla.transactions.transaction import VERSION_1, VERSION_2

BATCHED: Final = 4


async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, ctx: Context
) -> AddPartitionsToTxnResponse:
    if ctx.version >= BATCHED:
        if not ctx.allows_on_cluster(Operation.CLUSTER_ACTION):
            return AddPartitionsToTxnResponse(error_code=ClusterAuthorizationFailed.code)
        # Side by side, so that all of them wait for the same sync.
        results = await asyncio.gather(*(_add(transaction, ctx) for transaction in request.transactions))
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)
                for transaction, topics in zip(request.transactions, results, strict=True)
            ]
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _add(transaction, ctx))


async def _add(
    transaction: AddPartitionsToTxnTransaction, ctx: Context
) -> list[AddPartitionsToTxnTopicResult]:
    partitions = dict.fromkeys(
        TopicPartition(topic.name, number) for topic in transaction.topics for number in topic.partitions
    )
    if ctx.version < BATCHED and not ctx.allows(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
    ):
        return _results(dict.fromkeys(partitions, TransactionalIdAuthorizationFailed.code))
    wrong = {partition: error.code for partition in partitions if (error := _why_not(partition, ctx))}
    if wrong:
        # One partition that cannot be added fails them all.
        return _results(dict.fromkeys(partitions, OperationNotAttempted.code) | wrong)

    def asked(machine: TransactionMachine, now: Now, ticket: object) -> Outcome:
        producer = (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            return machine.verify_partitions(*producer, partitions)
        version = VERSION_2 if ctx.version >= BATCHED else VERSION_1
        return machine.add_partitions(*producer, partitions, now, version)

    try:
        if ctx.version < BATCHED:
            return _results(await when_free(ctx.node, transaction.transactional_id, asked))
        return _results(await ctx.node.transactions.call(transaction.transactional_id, asked))
    except KafkaError as error:
        return _results(dict.fromkeys(partitions, code_for(error, ctx.version)))


def _why_not(partition: TopicPartition, ctx: Context) -> type[KafkaError] | None:
    """What keeps a partition from being added, if anything does."""
    name, number = partition
    if ctx.version < BATCHED and (
        name in INTERNAL_TOPICS or not ctx.allows(Operation.WRITE, ResourceType.TOPIC, name)
    ):
        return TopicAuthorizationFailed
    topic = ctx.node.image.topics.get(name)
    if topic is None or number not in topic.partitions:
        return UnknownTopicOrPartition
    return None


def _results(codes: dict[TopicPartition, int]) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, number), code in codes.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = AddPartitionsToTxnTopicResult(name=name, results_by_partition=[])
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        )
    return list(topics.values())
