"""Transactional batches that may not be appended at once: the first of a transaction in its partition.

Its partition's leader has to hear from the coordinator first (`runtime/verification.py`). Meanwhile the
batch, which lies in the connection's buffer, is copied, and it takes the producer's turn in the partition:
what the producer sends there next is appended after it, however long the coordinator takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ottla.core.files import Buffer
from ottla.protocol.errors import ConcurrentTransactions, KafkaError, TransactionalIdAuthorizationFailed
from ottla.protocol.messages.produce import ProduceRequest
from ottla.replication.partition import Partition
from ottla.runtime import verification
from ottla.runtime.verification import Patience, ask_coordinator
from ottla.storage.log import Appended
from ottla.storage.producer_state import Verification

if TYPE_CHECKING:
    from ottla.runtime.node import Node

_PRODUCER: Final = Struct(">qhi").unpack_from
_PRODUCER_AT: Final = 43  # where a batch has its producer's id, epoch and first sequence


def may_append(
    request: ProduceRequest, version: int, partition: Partition, records: Buffer, node: Node
) -> bool:
    """Whether a transactional batch can be appended as it is: its transaction is open in the partition."""
    if request.transactional_id is None:
        raise TransactionalIdAuthorizationFailed("A transactional batch needs a transactional id")
    producer_id, epoch, _ = _PRODUCER(records, _PRODUCER_AT)
    if partition.turns and producer_id in partition.turns:
        return False
    if partition.log.producers.has_open_transaction(producer_id, epoch):
        return True
    return not verification.is_needed(verification.of_produce(version), node)


class Unverified:
    """A batch that has to wait. Made before the handler's first await, it has a copy of the records."""

    __slots__ = ("_before", "_turn", "answer", "epoch", "partition", "producer_id", "records", "sequence")

    def __init__(self, partition: Partition, records: Buffer, answer: Any) -> None:
        self.partition = partition
        self.records = bytearray(records)
        self.answer = answer
        self.producer_id, self.epoch, self.sequence = _PRODUCER(records, _PRODUCER_AT)
        self._before = partition.turns.get(self.producer_id)
        self._turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        partition.turns[self.producer_id] = self._turn

    async def wait_for_turn(self, beside: list[Unverified]) -> None:
        """Return when all that the producer sent in requests before is appended or refused."""
        if self._before is not None and all(self._before is not batch._turn for batch in beside):
            await asyncio.shield(self._before)

    def end_turn(self) -> None:
        self._turn.set_result(None)
        turns = self.partition.turns
        if turns.get(self.producer_id) is self._turn:
            del turns[self.producer_id]

    @property
    def is_in_transaction(self) -> bool:
        return self.partition.log.producers.has_open_transaction(self.producer_id, self.epoch)

    def start_verification(self, now_ms: int) -> Verification:
        self.partition.check_leader()
        return self.partition.log.producers.start_verification(
            self.producer_id, self.epoch, self.sequence, now_ms
        )

    def check_verified(self, started: Verification | None) -> None:
        """The last look before the append; nothing suspends in between."""
        if not self.is_in_transaction:
            self.partition.log.producers.check_verified(self.producer_id, self.epoch, self.sequence, started)


async def append_when_verified(
    waiting: list[Unverified],
    request: ProduceRequest,
    version: int,
    node: Node,
    *,
    appended: Callable[[Unverified, Appended], None],
    refused: Callable[[Unverified, KafkaError], None],
) -> None:
    """Append batches that had to wait, or say why not; one or the other is called for each."""
    operation = verification.of_produce(version)
    try:
        for batch in waiting:
            await batch.wait_for_turn(waiting)
        verdicts = await _verify(waiting, request.transactional_id or "", operation, node)
        for batch in waiting:
            try:
                started, error = verdicts[batch]
                if error is not None:
                    raise error
                batch.check_verified(started)
                done = batch.partition.append(
                    batch.records,
                    node.clock.wall_ms(),
                    request.acks,
                    transaction_version=operation.transaction_version,
                )
                node.replicas.write_now(batch.partition)
            except KafkaError as error:
                refused(batch, error)
            else:
                appended(batch, done)
    finally:
        for batch in waiting:
            batch.end_turn()


Verdicts = dict[Unverified, tuple[Verification | None, KafkaError | None]]


async def _verify(
    batches: Iterable[Unverified], transactional_id: str, operation: verification.Operation, node: Node
) -> Verdicts:
    """What the coordinator says about each batch whose transaction is not open in its partition."""
    verdicts: Verdicts = dict.fromkeys(batches, (None, None))
    producers: dict[tuple[int, int], list[Unverified]] = {}
    for batch in verdicts:
        if not batch.is_in_transaction:
            producers.setdefault((batch.producer_id, batch.epoch), []).append(batch)
    patience = Patience(node, transactional_id)
    for (producer_id, epoch), asked in producers.items():
        while True:
            started: dict[Unverified, Verification] = {}
            for batch in asked:
                try:
                    started[batch] = batch.start_verification(node.clock.wall_ms())
                except KafkaError as error:
                    verdicts[batch] = (None, error)
            answers = await ask_coordinator(
                node,
                transactional_id,
                producer_id,
                epoch,
                [batch.partition.partition for batch in started],
                operation,
            )
            for batch, own in started.items():
                verdicts[batch] = (own, answers[batch.partition.partition])
            busy = any(isinstance(answer, ConcurrentTransactions) for answer in answers.values())
            if not busy or not await patience.wait():
                break
    return verdicts
