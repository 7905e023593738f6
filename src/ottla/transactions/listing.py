"""What a machine of transactions shows to people: DescribeTransactions and ListTransactions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import attrgetter

from ottla.core.outcome import Now, Outcome
from ottla.protocol.errors import InvalidRequest, TransactionalIdNotFound
from ottla.protocol.messages import describe_transactions, list_transactions
from ottla.transactions.machine import TransactionMachine
from ottla.transactions.states import BY_TITLE
from ottla.transactions.transaction import Transaction


def describe(machine: TransactionMachine, transactional_id: str) -> Outcome:
    if not transactional_id:
        raise InvalidRequest("The transactional id is empty.")
    transaction = machine.transactions.get(transactional_id)
    if transaction is None:
        raise TransactionalIdNotFound
    return Outcome(
        reply=describe_transactions.TransactionState(
            transactional_id=transactional_id,
            transaction_state=transaction.state.title,
            transaction_timeout_ms=transaction.timeout_ms,
            transaction_start_time_ms=transaction.start_ms,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            topics=[
                describe_transactions.TopicData(
                    topic=topic, partitions=[partition.partition for partition in partitions]
                )
                for topic, partitions in groupby(sorted(transaction.partitions), key=attrgetter("topic"))
            ],
        )
    )


class Filter:
    """Which transactions are asked for. `matches` is whether an id is of the pattern, if one is given."""

    def __init__(
        self,
        request: list_transactions.ListTransactionsRequest,
        matches: Callable[[str], bool] = lambda transactional_id: True,
    ) -> None:
        self.unknown_states = [name for name in request.state_filters if name not in BY_TITLE]
        self._states = {BY_TITLE[name] for name in request.state_filters if name in BY_TITLE}
        self._any_state = not request.state_filters
        self._producer_ids = set(request.producer_id_filters)
        self._duration_ms = request.duration_filter
        self._matches = matches

    def transactions_of(self, machine: TransactionMachine, now: Now) -> Outcome:
        return Outcome(
            reply=[
                list_transactions.TransactionState(
                    transactional_id=transaction.transactional_id,
                    producer_id=transaction.producer_id,
                    transaction_state=transaction.state.title,
                )
                for transaction in machine.transactions.values()
                if self._is_wanted(transaction, now.wall_ms)
            ]
        )

    def _is_wanted(self, transaction: Transaction, now_ms: int) -> bool:
        if self._producer_ids and transaction.producer_id not in self._producer_ids:
            return False
        if not self._any_state and transaction.state not in self._states:
            return False
        if self._duration_ms >= 0 and now_ms - transaction.start_ms <= self._duration_ms:
            return False
        return self._matches(transaction.transactional_id)
