"""ListTransactions, key 66, versions 0-2: the transactional ids that are coordinated here.

A pattern (version 2) only ever matches ids that are made of the characters of topic names. Only those that
may be described are listed.
"""

from __future__ import annotations

from ottla.core.acl import Operation, ResourceType
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.server.context import Context
from ottla.transactions.listing import Filter


async def list_transactions(request: ListTransactionsRequest, ctx: Context) -> ListTransactionsResponse:
    try:
        wanted = _filter(request)
        lists = await ctx.node.transactions.call_all(
            lambda machine, now, ticket: wanted.transactions_of(machine, now)
        )
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=wanted.unknown_states,
        transaction_states=[
            state
            for states in lists
            for state in states
            if ctx.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, state.transactional_id)
        ],
    )


def _filter(request: ListTransactionsRequest) -> Filter:
    if not request.transactional_id_pattern:
        return Filter(request)
    from ottla.groups.consumer.pattern import compiled  # few ask for one

    return Filter(request, compiled(request.transactional_id_pattern).matches)
