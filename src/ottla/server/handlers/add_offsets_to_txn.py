"""AddOffsetsToTxn, key 25, versions 0-4: make the partition of a group's offsets part of a transaction."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.core.types import CONSUMER_OFFSETS, TopicPartition
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, check_transactional_id
from ottla.server.transaction_calls import code_for, when_free


async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, ctx: Context) -> AddOffsetsToTxnResponse:
    node = ctx.node
    try:
        check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
        check_group(ctx, Operation.READ, request.group_id)
        await node.groups.prepare()  # so that the partition exists which is promised its marker
        offsets = TopicPartition(CONSUMER_OFFSETS, node.groups.partition_for(request.group_id))
        await when_free(
            node,
            request.transactional_id,
            lambda machine, now, ticket: machine.add_partitions(
                request.transactional_id, request.producer_id, request.producer_epoch, (offsets,), now
            ),
        )
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=code_for(error, ctx.version))
    return AddOffsetsToTxnResponse()
