"""Whether a partition is in a producer's transaction: what its leader asks the coordinator (KIP-890).

The first batch of a transaction in a partition is only written if the coordinator knows that the partition
belongs to it, for it is the coordinator who will end the transaction there. Older clients have told the
coordinator themselves, and it is asked whether they did; newer ones leave it to the partition's leader to
add the partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING, Final

from ottla.core.outcome import Now, Outcome
from ottla.core.types import TopicPartition
from ottla.protocol.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
    TransactionAbortable,
    error_class,
)
from ottla.runtime.verifications import Question
from ottla.transactions.transaction import VERSION_2

if TYPE_CHECKING:
    from ottla.runtime.node import Node
    from ottla.transactions.machine import TransactionMachine

# The first pause before asking again while the transaction before is being completed by another broker; it
# doubles up to add.partitions.to.txn.retry.backoff.ms. Mostly that takes a few milliseconds.
FIRST_BACKOFF_MS: Final = 1

_UNREACHABLE: Final = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NetworkException, NotCoordinator)


class Operation(Enum):
    """What a client's version means: what it has done itself, and which errors it knows."""

    VERIFY_FOR_OLD = "verify, for a client that does not know TRANSACTION_ABORTABLE"
    VERIFY = "verify"
    ADD = "add"

    @property
    def is_verifying(self) -> bool:
        return self is not Operation.ADD

    @property
    def transaction_version(self) -> int:
        return VERSION_2 if self is Operation.ADD else 0


def of_produce(version: int) -> Operation:
    if version >= 12:
        return Operation.ADD
    return Operation.VERIFY if version >= 11 else Operation.VERIFY_FOR_OLD


def of_txn_offset_commit(version: int) -> Operation:
    if version >= 5:
        return Operation.ADD
    return Operation.VERIFY if version >= 4 else Operation.VERIFY_FOR_OLD


def is_needed(operation: Operation, node: Node) -> bool:
    """Adding is always needed; verifying can be switched off."""
    return operation is Operation.ADD or node.settings.transaction_partition_verification_enable


async def ask_coordinator(
    node: Node,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    operation: Operation,
) -> dict[TopicPartition, KafkaError | None]:
    """The coordinator's word on each partition: None if it may be written to, else what to tell the client.

    CONCURRENT_TRANSACTIONS means that the transaction before is being completed, for which `Patience` waits.
    """

    def asked(machine: TransactionMachine, now: Now, ticket: object) -> Outcome:
        if operation is Operation.ADD:
            return machine.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, now, VERSION_2
            )
        return machine.verify_partitions(transactional_id, producer_id, producer_epoch, partitions)

    codes: dict[TopicPartition, int]
    elsewhere = node.transactions.elsewhere(transactional_id)
    try:
        if elsewhere is None:
            codes = await node.transactions.call(transactional_id, asked)
        else:
            codes = await node.coordinators.verifications.ask(
                elsewhere,
                Question(transactional_id, producer_id, producer_epoch, partitions, operation.is_verifying),
                within=node.settings.request_timeout_ms / 1000,
                still_leads=lambda: node.transactions.elsewhere(transactional_id) == elsewhere,
            )
    except KafkaError as error:
        refused = for_client(error, operation)
        return dict.fromkeys(partitions, refused)
    return {
        partition: for_client(error_class(code)(), operation) if code else None
        for partition, code in codes.items()
    }


def for_client(error: KafkaError, operation: Operation) -> KafkaError:
    """What a client is told that wanted to write. Older ones only try again on errors that they know."""
    is_busy = isinstance(error, ConcurrentTransactions) and operation is not Operation.ADD
    if isinstance(error, _UNREACHABLE) or is_busy:
        return NotEnoughReplicas(
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}"
        )
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(str(error))
    if isinstance(error, TransactionAbortable) and operation is Operation.VERIFY_FOR_OLD:
        return InvalidTxnState("Partition was not added to the transaction")
    return error


class Patience:
    """How long to go on asking while the transaction before is being completed.

    A client would wait longer than that before it sent the batch again, and the batch is here already.
    """

    def __init__(self, node: Node, transactional_id: str) -> None:
        settings = node.settings
        self._node = node
        self._transactional_id = transactional_id
        self._longest_ms = settings.add_partitions_to_txn_retry_backoff_ms
        self._until_ms = node.clock.monotonic_ms() + settings.add_partitions_to_txn_retry_backoff_max_ms
        self._pause_ms = FIRST_BACKOFF_MS

    async def wait(self) -> bool:
        """Return when there is reason to ask again; False when it has been long enough."""
        left_ms = self._until_ms - self._node.clock.monotonic_ms()
        if left_ms <= 0:
            return False
        over = self._node.coordinators.transaction_over(self._transactional_id)
        if over is None:
            await asyncio.sleep(min(self._pause_ms, self._longest_ms, left_ms) / 1000)
            self._pause_ms *= 2
            return True
        timer = asyncio.get_running_loop().call_later(left_ms / 1000, _give_up, over)
        try:
            await over
        finally:
            timer.cancel()
        return True


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
