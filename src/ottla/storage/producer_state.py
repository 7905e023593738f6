"""What a partition remembers of each producer: its epoch, its last batches, its open transaction.

From it follow which batch is a duplicate, which is out of order, and where the last stable offset is. The
state is a fold over the batches of the log. `check` and `check_marker` decide whether a batch may be
appended and change nothing; `apply` and `apply_marker` fold it in and cannot fail. Snapshots of the state
are in `producer_snapshot`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.protocol.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)

NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
LAST_SEQUENCE: Final = 0x7FFFFFFF
# How many batches of a producer are remembered: as many as an idempotent client may have in flight.
BATCHES_REMEMBERED: Final = 5
TRANSACTION_VERSION_2: Final = 2
# How many verifications are remembered. Those that nobody answers stay for a day, so somebody could make up
# any number of them; of honest ones there are as many as transactions that begin at the same time.
VERIFICATIONS_MAX: Final = 10_000


class AppendedBatch(NamedTuple):
    """A batch that a producer appended."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class Producer:
    """The state of one producer id."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "id", "timestamp", "transaction_first_offset")

    def __init__(self, producer_id: int) -> None:
        self.id = producer_id
        self.epoch = NO_EPOCH
        self.batches: list[AppendedBatch] = []
        self.coordinator_epoch = -1
        self.timestamp = -1
        self.transaction_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0


class Verification:
    """That somebody is asking the coordinator whether this partition is in a producer's transaction.

    It is the same object until a record or a marker of the producer is appended. So when the answer comes
    after that transaction has ended, and perhaps another begun, it is known to be too late. It remembers
    the lowest sequence that was asked about: if that batch has to be sent again, none after it may be
    written before.
    """

    __slots__ = ("epoch", "lowest_sequence", "started_ms")

    def __init__(self, epoch: int, sequence: int, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.started_ms = now_ms


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class Producers:
    """The producers of one log, and its transactions that are open or not yet replicated."""

    __slots__ = ("_by_id", "_ongoing", "_unreplicated", "_verifying", "end_offset")

    def __init__(self, producers: Iterable[Producer] = (), end_offset: int = 0) -> None:
        self._by_id: dict[int, Producer] = {producer.id: producer for producer in producers}
        # First offset to producer id, in the order of first offsets.
        self._ongoing: dict[int, int] = {
            producer.transaction_first_offset: producer.id
            for producer in sorted(
                self._by_id.values(), key=lambda producer: producer.transaction_first_offset
            )
            if producer.transaction_first_offset != NO_OFFSET
        }
        # First offset to marker's offset, of transactions whose marker is not below the high watermark.
        self._unreplicated: dict[int, int] = {}
        self._verifying: dict[int, Verification] = {}
        # The state is that of the log up to here.
        self.end_offset = end_offset

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._by_id.values())

    def get(self, producer_id: int) -> Producer | None:
        return self._by_id.get(producer_id)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        producer = self._by_id.get(producer_id)
        return (
            producer is not None
            and producer.epoch == epoch
            and producer.transaction_first_offset != NO_OFFSET
        )

    def start_verification(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Verification:
        """A batch would be the first of its transaction here, which has to be asked about."""
        found = self._verifying.get(producer_id)
        if found is None:
            if len(self._verifying) >= VERIFICATIONS_MAX:
                del self._verifying[next(iter(self._verifying))]
            found = self._verifying[producer_id] = Verification(epoch, sequence, now_ms)
        elif epoch > found.epoch:
            found.epoch, found.lowest_sequence = epoch, sequence
        elif epoch == found.epoch and sequence < found.lowest_sequence:
            found.lowest_sequence = sequence
        return found

    def check_verified(
        self, producer_id: int, epoch: int, sequence: int, verification: Verification | None
    ) -> None:
        """Whether the first batch of a transaction may be appended, now that it was verified."""
        if verification is None or self._verifying.get(producer_id) is not verification:
            raise InvalidTxnState(f"the transaction of producer {producer_id} has ended meanwhile")
        if epoch == verification.epoch and sequence > verification.lowest_sequence:
            raise OutOfOrderSequenceNumber(
                f"producer {producer_id} sent sequence {sequence} while {verification.lowest_sequence} is"
                f" still to be sent again"
            )

    def check(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        transactional: bool,
        *,
        sequenced: bool = True,
        transaction_version: int = 0,
    ) -> AppendedBatch | None:
        """Whether a batch may be appended: raises if not, and answers the original if it is a duplicate.

        The coordinators' own batches have a producer but no sequence numbers; `sequenced` is False for them.
        """
        producer = self._by_id.get(producer_id)
        if producer is None:
            # Nothing is known, perhaps because retention removed it, so any sequence may be the next. Only a
            # producer of transactions of version 2 has a fresh epoch and must begin at its beginning.
            if sequenced and first_sequence and transaction_version >= TRANSACTION_VERSION_2:
                raise OutOfOrderSequenceNumber(
                    f"producer {producer_id} begins with sequence {first_sequence} instead of 0"
                )
            return None
        if epoch == producer.epoch:
            if sequenced:
                batches = producer.batches
                last = batches[-1][1] if batches else NO_SEQUENCE
                if first_sequence != (last + 1 if last != LAST_SEQUENCE else 0):
                    for batch in batches:
                        if batch[0] == first_sequence and batch[1] == last_sequence:
                            return batch
                    raise OutOfOrderSequenceNumber(
                        f"producer {producer_id} sent sequence {first_sequence} after {last}"
                    )
        elif epoch < producer.epoch:
            raise InvalidProducerEpoch(
                f"epoch {epoch} of producer {producer_id} is older than its last one, {producer.epoch}"
            )
        elif sequenced and first_sequence and producer.epoch != NO_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"producer {producer_id} begins its epoch {epoch} with sequence {first_sequence} instead of 0"
            )
        if not transactional and producer.transaction_first_offset != NO_OFFSET:
            raise InvalidTxnState(
                f"producer {producer_id} wrote outside of its transaction, which is open since offset"
                f" {producer.transaction_first_offset}"
            )
        return None

    def apply(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """Fold in a data batch of the log."""
        producer = self._by_id.get(producer_id)
        if producer is None:
            producer = self._by_id[producer_id] = Producer(producer_id)
        batches = producer.batches
        if producer.epoch != epoch:
            producer.epoch = epoch
            batches.clear()
        elif len(batches) >= BATCHES_REMEMBERED:
            del batches[0]
        # Half the price of calling the class, for every batch of an idempotent producer.
        batch = (first_sequence, last_sequence, last_offset, last_offset - first_offset, timestamp)
        batches.append(tuple.__new__(AppendedBatch, batch))
        producer.timestamp = timestamp
        if transactional and producer.transaction_first_offset == NO_OFFSET:
            producer.transaction_first_offset = first_offset
            self._ongoing[first_offset] = producer_id
            self._verifying.pop(producer_id, None)

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int = 0
    ) -> None:
        """Whether the end of a transaction may be written. A producer that is not known may end one, too."""
        producer = self._by_id.get(producer_id)
        if producer is None:
            return
        fenced = epoch < producer.epoch
        if transaction_version >= TRANSACTION_VERSION_2 and producer.transaction_first_offset != NO_OFFSET:
            # Every transaction of version 2 ends with a new epoch. The same epoch again without an open
            # transaction is the marker of before, sent a second time.
            fenced = epoch <= producer.epoch
        if fenced:
            raise InvalidProducerEpoch(
                f"the marker's epoch {epoch} of producer {producer_id} is fenced by epoch {producer.epoch}"
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"coordinator epoch {coordinator_epoch} for producer {producer_id} is older than"
                f" {producer.coordinator_epoch}"
            )

    def apply_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, aborted: bool
    ) -> CompletedTransaction | None:
        """Fold in a marker; the transaction that it ends, if it had records. `complete` comes next."""
        producer = self._by_id.get(producer_id)
        if producer is None:
            producer = self._by_id[producer_id] = Producer(producer_id)
        self._verifying.pop(producer_id, None)
        first_offset = producer.transaction_first_offset
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.transaction_first_offset = NO_OFFSET
        producer.coordinator_epoch = coordinator_epoch
        producer.timestamp = timestamp
        if first_offset == NO_OFFSET:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def complete(self, transaction: CompletedTransaction) -> int:
        """The transaction is over. Answers the last stable offset as the transaction index records it."""
        self._ongoing.pop(transaction.first_offset, None)
        self._unreplicated[transaction.first_offset] = transaction.last_offset
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != transaction.producer_id:
                return first_offset
        return transaction.last_offset + 1

    def first_unstable_offset(self) -> int | None:
        """Where the first transaction begins that is open, or ended but not yet below the high watermark."""
        ongoing = next(iter(self._ongoing), None)
        if not self._unreplicated:
            return ongoing
        unreplicated = min(self._unreplicated)
        return unreplicated if ongoing is None else min(ongoing, unreplicated)

    @property
    def has_unreplicated(self) -> bool:
        """Whether a transaction has ended whose marker is not below the high watermark."""
        return bool(self._unreplicated)

    def replicated(self, high_watermark: int) -> None:
        """Transactions with a marker below the high watermark no longer hold back the last stable offset."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for `expiration_ms` and have no open transaction; how many."""
        gone = [
            producer.id
            for producer in self._by_id.values()
            if producer.transaction_first_offset == NO_OFFSET and now_ms - producer.timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self._by_id[producer_id]
        if self._verifying:
            oldest_ms = now_ms - expiration_ms
            self._verifying = {
                producer_id: verification
                for producer_id, verification in self._verifying.items()
                if verification.started_ms > oldest_ms
            }
        return len(gone)


def sequence_after(sequence: int, count: int) -> int:
    """The sequence number `count` records on; after the greatest comes 0."""
    return (sequence + count) & LAST_SEQUENCE


def sequence_before(sequence: int, count: int) -> int:
    """The sequence number `count` records back."""
    return (sequence - count) & LAST_SEQUENCE
