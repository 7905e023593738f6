"""What the handlers of transactions have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.core.outcome import Now, Outcome
from ottla.protocol.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    KafkaError,
    ProducerFenced,
)
from ottla.runtime.shard import Command
from ottla.runtime.verification import Patience

if TYPE_CHECKING:
    from ottla.runtime.node import Node

# In versions before this one of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn clients do not know
# PRODUCER_FENCED, but INVALID_PRODUCER_EPOCH.
PRODUCER_FENCED_SINCE: Final = 2


async def with_producer_id(
    node: Node, transactional_id: str, command: Callable[[Any, Now, int | None], Outcome]
) -> Any:
    """The answer to a command that may turn out to need a new producer id, which only comes by waiting."""
    from ottla.transactions.machine import PRODUCER_ID_NEEDED

    reply = await node.transactions.call(
        transactional_id, lambda machine, now, ticket: command(machine, now, None)
    )
    if reply is PRODUCER_ID_NEEDED:
        fresh_id = await node.producer_ids.take()
        reply = await node.transactions.call(
            transactional_id, lambda machine, now, ticket: command(machine, now, fresh_id)
        )
    return reply


async def when_free(node: Node, transactional_id: str, command: Command[Any]) -> Any:
    """The answer to a command on a transaction, after a short wait if the one before is being completed.

    The markers are written soon after a client has heard of its commit, but seldom before it asks to begin
    the next transaction, and on CONCURRENT_TRANSACTIONS it would pause for longer than that takes.
    """
    patience = Patience(node, transactional_id)
    while True:
        try:
            return await node.transactions.call(transactional_id, command)
        except ConcurrentTransactions:
            if not await patience.wait():
                raise


def code_for(error: KafkaError, version: int) -> int:
    """The error's code, in an API whose clients may be older than the error."""
    if isinstance(error, ProducerFenced) and version < PRODUCER_FENCED_SINCE:
        return InvalidProducerEpoch.code
    return error.code
