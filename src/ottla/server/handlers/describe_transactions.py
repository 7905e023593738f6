"""DescribeTransactions, key 65, version 0: the state of transactional ids that are coordinated here.

Of their partitions, those of topics that may be described.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.server.context import Context
from ottla.server.group_authorization import check_transactional_id, split_topics
from ottla.transactions.listing import describe


async def describe_transactions(
    request: DescribeTransactionsRequest, ctx: Context
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[await _describe(asked, ctx) for asked in request.transactional_ids]
    )


async def _describe(transactional_id: str, ctx: Context) -> TransactionState:
    try:
        check_transactional_id(ctx, Operation.DESCRIBE, transactional_id)
        state: TransactionState = await ctx.node.transactions.call(
            transactional_id, lambda machine, now, ticket: describe(machine, transactional_id)
        )
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    state.topics, _ = split_topics(ctx, Operation.DESCRIBE, state.topics, lambda topic: topic.topic)
    return state
