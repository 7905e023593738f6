"""What is known of one transactional id, and how one state of it becomes the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ottla.core.types import TopicPartition
from ottla.transactions.states import IDLE, PREDECESSORS, PREPARED, State

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
LAST_EPOCH: Final = 0x7FFF
# The greatest epoch that a producer is given: the one after it is kept, to fence that producer with.
LAST_CLIENT_EPOCH: Final = LAST_EPOCH - 1
# The timeout of a transaction that somebody else decides on, in two phases: it is never aborted for its age.
NO_TIMEOUT: Final = 0x7FFF_FFFF
# The protocol of KIP-890: an epoch for each transaction. What came before is not told apart in the log.
VERSION_1: Final = 0
VERSION_2: Final = 2


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id as the log has it. It is replaced, never changed."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    # The producer id before the last change of state, and the one that takes over when the epochs of this
    # one are used up and its transaction is complete.
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    version: int = VERSION_1

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def may_time_out(self) -> bool:
        return self.state is State.ONGOING and self.timeout_ms != NO_TIMEOUT

    def _to(self, state: State, now_ms: int, **changes: Any) -> Transaction:
        assert self.state in PREDECESSORS[state], f"{self} cannot become {state.title}"
        return replace(
            self, state=state, previous_producer_id=self.producer_id, last_update_ms=now_ms, **changes
        )

    def initialized(self, producer_id: int, epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """A producer took over the id, or began again with it."""
        return self._to(
            State.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
        )

    def with_partitions(self, added: frozenset[TopicPartition], version: int, now_ms: int) -> Transaction:
        """Partitions are part of the transaction, which begins with the first of them."""
        return self._to(
            State.ONGOING,
            now_ms,
            partitions=self.partitions | added,
            start_ms=self.start_ms if self.state is State.ONGOING else now_ms,
            version=version,
        )

    def prepared(
        self, committed: bool, version: int, now_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> Transaction:
        """The producer's decision. With version 2 the next transaction has the next epoch."""
        epoch = self.producer_epoch + (version >= VERSION_2)
        return self._ended(committed, min(epoch, LAST_EPOCH), version, now_ms, next_producer_id)

    def fenced(self, version: int, now_ms: int) -> Transaction:
        """The coordinator's decision to abort, because of its age or because another producer came."""
        return self._ended(False, min(self.producer_epoch + 1, LAST_EPOCH), version, now_ms, NO_PRODUCER_ID)

    def _ended(
        self, committed: bool, epoch: int, version: int, now_ms: int, next_producer_id: int
    ) -> Transaction:
        return self._to(
            State.PREPARE_COMMIT if committed else State.PREPARE_ABORT,
            now_ms,
            producer_epoch=epoch,
            start_ms=self.start_ms if self.state is State.ONGOING else now_ms,
            next_producer_id=next_producer_id,
            version=version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker."""
        committed = self.state is State.PREPARE_COMMIT
        changes = (
            {} if self.next_producer_id < 0 else {"producer_id": self.next_producer_id, "producer_epoch": 0}
        )
        return self._to(
            State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT,
            now_ms,
            partitions=frozenset(),
            next_producer_id=NO_PRODUCER_ID,
            **changes,
        )
