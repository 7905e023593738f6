"""Transactions from outside: which there are, and what one of them is at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.topology import TRANSACTION
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ottla.protocol.messages.list_transactions import (
    TransactionState as ListedTransaction,
)


async def list_transactions(cluster: Cluster, *, states: Iterable[str] = ()) -> list[ListedTransaction]:
    """Every transactional id of the cluster: each coordinator knows its own."""
    request = ListTransactionsRequest(state_filters=list(states))

    async def listed_by(broker: int) -> list[ListedTransaction]:
        response = await cluster.ask(request, ListTransactionsResponse, broker=broker)
        check(response.error_code, f"listing the transactions of broker {broker}")
        return response.transaction_states

    async def all_brokers() -> list[ListedTransaction]:
        await cluster.refresh()
        found: dict[str, ListedTransaction] = {}
        for answer in await asyncio.gather(*(listed_by(broker) for broker in cluster.brokers)):
            found |= {each.transactional_id: each for each in answer}
        return [found[name] for name in sorted(found)]

    return await cluster.persist(all_brokers)


async def describe_transaction(cluster: Cluster, transactional_id: str) -> tuple[int, TransactionState]:
    """Its coordinator and its state. Raises TransactionalIdNotFound."""

    async def once() -> tuple[int, TransactionState]:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        response = await cluster.ask_coordinator(
            TRANSACTION, transactional_id, request, DescribeTransactionsResponse
        )
        (found,) = response.transaction_states
        if found.error_code:
            cluster.lost_coordinator(TRANSACTION, transactional_id)
        check(found.error_code, f"transactional id {transactional_id}")
        return await cluster.coordinator(TRANSACTION, transactional_id), found

    return await cluster.persist(once)
