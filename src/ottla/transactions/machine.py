"""The transaction coordinator of one partition of `__transaction_state`: what each request decides.

Commands read the state and answer with an `Outcome`: records for the log, the reply, and markers to be
written by others. Only `apply` changes what the log says. What is kept beside the log is soft and may be
lost with it: timers, and which epoch an InitProducerId went on from.

A transaction that is *prepared* has its outcome in the log while its markers are on their way. Whatever is
asked about it meanwhile is answered CONCURRENT_TRANSACTIONS, and clients try again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from ottla.config.broker import BrokerSettings
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.core.types import TopicPartition
from ottla.protocol.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.transactions import records
from ottla.transactions.effects import WriteMarkers
from ottla.transactions.ending import may_end_version_1, may_end_version_2
from ottla.transactions.states import State
from ottla.transactions.timeouts import Timeouts
from ottla.transactions.transaction import (
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT,
    VERSION_1,
    VERSION_2,
    Transaction,
)

# Ids forgotten, and transactions aborted for their age, in one go: one batch of records each.
EXPIRED_MAX: Final = 1000
TIMED_OUT_MAX: Final = 100
# The request versions of EndTxn that speak version 2 of the protocol.
END_TXN_VERSION_2: Final = 5


class ProducerIdNeeded:
    """The reply of a command that needs a producer id: take one, and ask again with it."""


PRODUCER_ID_NEEDED: Final = ProducerIdNeeded()


class _WentOn(NamedTuple):
    """A producer has these id and epoch since it went on from its `last_epoch`."""

    producer_id: int
    producer_epoch: int
    last_epoch: int


class TransactionMachine:
    """`transaction_version` is the level of the cluster's feature of that name."""

    def __init__(
        self,
        coordinator_epoch: int,
        settings: Callable[[], BrokerSettings],
        transaction_version: Callable[[], int],
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.transactions: dict[str, Transaction] = {}
        self._settings = settings
        self._transaction_version = transaction_version
        self._timeouts = Timeouts()
        self._went_on: dict[str, _WentOn] = {}
        self._next_scan: int | None = None

    # --- the log -------------------------------------------------------------------------

    def apply(self, record: LogRecord, at: Applied) -> None:
        entry = records.read(record)
        if entry is None:
            return
        transactional_id, transaction = entry
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            self._went_on.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction
        if transaction is None or transaction.state is not State.ONGOING:
            self._timeouts.cancel(transactional_id)

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A marker in this partition: there are none, as this log has no transactions of its own."""

    def loaded(self, now: Now) -> Outcome:
        """The whole log is applied: finish what a coordinator before us had decided."""
        outcome = Outcome()
        for transaction in self.transactions.values():
            if transaction.is_prepared:
                self._finish(transaction, now, outcome)
            elif transaction.may_time_out:
                # The age is by the wall clock, which may have been set meanwhile: within reason, then.
                age = min(max(now.wall_ms - transaction.start_ms, 0), transaction.timeout_ms)
                self._timeouts.set(
                    transaction.transactional_id, now.monotonic_ms + transaction.timeout_ms - age
                )
        self._next_scan = now.monotonic_ms + self._scan_interval_ms
        return outcome

    # --- InitProducerId ------------------------------------------------------------------

    def init_producer_id(
        self, request: InitProducerIdRequest, now: Now, fresh_id: int | None = None
    ) -> Outcome:
        """Give a producer its id and epoch, and fence whoever had them before.

        `fresh_id` is a producer id that nobody has; without one the reply may be that it is needed.
        """
        self._check(request)
        transactional_id = request.transactional_id
        assert transactional_id is not None
        timeout_ms = NO_TIMEOUT if request.enable_2pc else request.transaction_timeout_ms
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            if fresh_id is None:
                return Outcome(reply=PRODUCER_ID_NEEDED)
            transaction = Transaction(transactional_id, fresh_id, NO_EPOCH, timeout_ms)
        elif transaction.is_prepared:
            raise ConcurrentTransactions
        elif request.producer_id != NO_PRODUCER_ID:
            self._check_expected(transaction, request.producer_id, request.producer_epoch)
        if transaction.state is State.ONGOING:
            # The epoch that fences is not given to anybody: the client tries again and gets the one after.
            outcome = self._fence(transaction, now, Outcome())
            outcome.reply = _not_initialized(ConcurrentTransactions())
            return outcome
        expected = None if request.producer_id == NO_PRODUCER_ID else request.producer_epoch
        return self._initialize(transaction, expected, timeout_ms, now, fresh_id)

    def _initialize(
        self,
        transaction: Transaction,
        expected_epoch: int | None,
        timeout_ms: int,
        now: Now,
        fresh_id: int | None,
    ) -> Outcome:
        producer_id, epoch = transaction.producer_id, transaction.producer_epoch
        last_epoch = NO_EPOCH if expected_epoch is None else epoch
        if expected_epoch in (None, epoch) or epoch == NO_EPOCH:
            goes_on = True
        elif expected_epoch == self._last_epoch(transaction):
            # A request whose answer was lost; or a producer that was fenced for the age of its transaction.
            goes_on, last_epoch = False, expected_epoch
        else:
            raise ProducerFenced(
                f"epoch {expected_epoch} of {transaction.transactional_id!r} is not its present one, {epoch}"
            )
        if epoch > LAST_CLIENT_EPOCH or (goes_on and transaction.is_epoch_exhausted):
            if fresh_id is None:
                return Outcome(reply=PRODUCER_ID_NEEDED)
            producer_id, epoch = fresh_id, 0
        elif goes_on:
            epoch += 1
        initialized = transaction.initialized(producer_id, epoch, timeout_ms, now.wall_ms)
        self._remember(initialized, last_epoch)
        return Outcome(
            records=[self._record(initialized)],
            reply=InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch),
        )

    def _check(self, request: InitProducerIdRequest) -> None:
        settings = self._settings()
        if not request.transactional_id:
            raise InvalidRequest("The transactional id is empty.")
        if request.enable_2pc and not settings.transaction_two_phase_commit_enable:
            raise TransactionalIdAuthorizationFailed("Two-phase commit is not enabled.")
        if request.keep_prepared_txn:
            raise UnsupportedVersion("A prepared transaction cannot be kept.")
        if request.enable_2pc:
            return
        if not 0 < request.transaction_timeout_ms <= settings.transaction_max_timeout_ms:
            raise InvalidTransactionTimeout

    def _check_expected(self, transaction: Transaction, producer_id: int, epoch: int) -> None:
        """Whether a producer that says who it is may go on: it is who it says, or was before its epochs
        were used up and did not hear of its new id."""
        if producer_id == transaction.producer_id:
            return
        if producer_id != transaction.previous_producer_id or epoch < LAST_CLIENT_EPOCH:
            raise ProducerFenced

    def _last_epoch(self, transaction: Transaction) -> int:
        """The epoch that the present one came from without another producer in between; -1 if not known."""
        known = self._went_on.get(transaction.transactional_id)
        if known is None or known[:2] != (transaction.producer_id, transaction.producer_epoch):
            return NO_EPOCH
        return known.last_epoch

    def _remember(self, transaction: Transaction, last_epoch: int) -> None:
        if last_epoch == NO_EPOCH:
            self._went_on.pop(transaction.transactional_id, None)
        else:
            self._went_on[transaction.transactional_id] = _WentOn(
                transaction.producer_id, transaction.producer_epoch, last_epoch
            )

    # --- AddPartitionsToTxn, AddOffsetsToTxn ---------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        now: Now,
        version: int = VERSION_1,
    ) -> Outcome:
        """Make partitions part of a transaction, which begins with the first of them.

        The reply, as that of `verify_partitions`, is an error code for each partition. Raises what concerns
        all of them.
        """
        transaction = self._find(transactional_id)
        if transaction.is_prepared:
            raise ConcurrentTransactions
        self._check_producer(transaction, producer_id, producer_epoch)
        reply = dict.fromkeys(partitions, 0)
        if transaction.state is State.ONGOING and transaction.partitions.issuperset(partitions):
            return Outcome(reply=reply)
        ongoing = transaction.with_partitions(frozenset(partitions), version, now.wall_ms)
        if transaction.state is not State.ONGOING and ongoing.may_time_out:
            self._timeouts.set(transactional_id, now.monotonic_ms + ongoing.timeout_ms)
        return Outcome(records=[self._record(ongoing)], reply=reply)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> Outcome:
        """Whether partitions are part of a transaction, so that a producer may write to them."""
        transaction = self._find(transactional_id)
        self._check_producer(transaction, producer_id, producer_epoch)
        if transaction.is_prepared:
            raise ConcurrentTransactions
        added = transaction.partitions
        return Outcome(reply={one: 0 if one in added else TransactionAbortable.code for one in partitions})

    def _find(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise InvalidRequest("The transactional id is empty.")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise InvalidProducerIdMapping(f"The transactional id {transactional_id!r} is not known.")
        return transaction

    def _check_producer(self, transaction: Transaction, producer_id: int, epoch: int) -> None:
        if producer_id != transaction.producer_id:
            raise InvalidProducerIdMapping
        if epoch != transaction.producer_epoch:
            raise ProducerFenced

    # --- EndTxn --------------------------------------------------------------------------

    def end_txn(
        self, request: EndTxnRequest, api_version: int, now: Now, fresh_id: int | None = None
    ) -> Outcome:
        """Commit or abort. The answer leaves when the decision is in the log; the markers follow."""
        transaction = self._find(request.transactional_id)
        asked = (transaction, request.producer_id, request.producer_epoch, request.committed)
        if api_version < END_TXN_VERSION_2:
            if not may_end_version_1(*asked):
                return Outcome(reply=EndTxnResponse())
            return self._prepare(transaction, request.committed, VERSION_1, now, NO_PRODUCER_ID)
        # A producer that was fenced at its last epoch and aborts has no epoch left to go on with: that is
        # aborted once more, to hand over to a new producer id.
        has_epoch_left = request.committed or transaction.producer_epoch <= LAST_CLIENT_EPOCH
        if not may_end_version_2(*asked) and has_epoch_left:
            return Outcome(
                reply=EndTxnResponse(
                    producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch
                )
            )
        if not transaction.is_epoch_exhausted:
            fresh_id = NO_PRODUCER_ID
        elif fresh_id is None:
            return Outcome(reply=PRODUCER_ID_NEEDED)
        return self._prepare(transaction, request.committed, VERSION_2, now, fresh_id)

    def _prepare(
        self, transaction: Transaction, committed: bool, version: int, now: Now, next_producer_id: int
    ) -> Outcome:
        prepared = transaction.prepared(committed, version, now.wall_ms, next_producer_id)
        if version >= VERSION_2:
            self._remember(prepared, transaction.producer_epoch)
        outcome = Outcome(records=[self._record(prepared)])
        self._finish(prepared, now, outcome)
        outcome.reply = EndTxnResponse()
        if version >= VERSION_2:
            completed = prepared.completed(now.wall_ms)
            outcome.reply.producer_id = completed.producer_id
            outcome.reply.producer_epoch = completed.producer_epoch
        return outcome

    def _fence(self, transaction: Transaction, now: Now, outcome: Outcome) -> Outcome:
        """Abort an open transaction without its producer, whose epoch is not good any more."""
        version = VERSION_2 if self._transaction_version() >= VERSION_2 else VERSION_1
        fenced = transaction.fenced(version, now.wall_ms)
        # With version 2 the producer itself may go on from there, if no other has come.
        self._remember(fenced, transaction.producer_epoch if version >= VERSION_2 else NO_EPOCH)
        outcome.records.append(self._record(fenced))
        self._finish(fenced, now, outcome)
        return outcome

    def _finish(self, prepared: Transaction, now: Now, outcome: Outcome) -> None:
        """What follows a decision: the markers, or the end of it where there are no partitions."""
        if not prepared.partitions:
            outcome.records.append(self._complete(prepared, now))
            return
        outcome.effects.append(
            WriteMarkers(
                transactional_id=prepared.transactional_id,
                producer_id=prepared.producer_id,
                producer_epoch=prepared.producer_epoch,
                committed=prepared.state is State.PREPARE_COMMIT,
                partitions=prepared.partitions,
                coordinator_epoch=self.coordinator_epoch,
                transaction_version=prepared.version,
            )
        )

    def markers_written(self, markers: WriteMarkers, now: Now) -> Outcome:
        """Every partition has its marker, or is gone: the transaction is over."""
        outcome = Outcome(reply=False)
        transaction = self.transactions.get(markers.transactional_id)
        if (
            transaction is not None
            and transaction.is_prepared
            and (transaction.producer_id, transaction.producer_epoch)
            == (markers.producer_id, markers.producer_epoch)
        ):
            outcome.records.append(self._complete(transaction, now))
            outcome.reply = True
        return outcome

    def _complete(self, prepared: Transaction, now: Now) -> LogRecord:
        completed = prepared.completed(now.wall_ms)
        if completed.producer_id != prepared.producer_id:
            self._remember(completed, LAST_CLIENT_EPOCH)
        return self._record(completed)

    # --- time ----------------------------------------------------------------------------

    def deadline(self) -> int | None:
        times = [at for at in (self._timeouts.next(), self._next_scan) if at is not None]
        return min(times, default=None)

    def expire(self, now: Now) -> Outcome:
        """Abort transactions that are too old, forget ids that nobody uses."""
        outcome = Outcome()
        for transactional_id in self._timeouts.take_due(now.monotonic_ms, TIMED_OUT_MAX):
            transaction = self.transactions.get(transactional_id)
            if transaction is not None and transaction.may_time_out:
                self._fence(transaction, now, outcome)
        if self._next_scan is not None and self._next_scan <= now.monotonic_ms:
            self._next_scan = now.monotonic_ms + self._scan_interval_ms
            forgotten = self._forgotten(now.wall_ms)
            outcome.records += map(records.tombstone, forgotten[:EXPIRED_MAX])
            if len(forgotten) > EXPIRED_MAX:
                self._next_scan = now.monotonic_ms
        return outcome

    def _forgotten(self, now_ms: int) -> list[str]:
        oldest = now_ms - self._settings().transactional_id_expiration_ms
        return [
            transaction.transactional_id
            for transaction in self.transactions.values()
            if transaction.is_idle and transaction.last_update_ms <= oldest
        ]

    @property
    def _scan_interval_ms(self) -> int:
        return self._settings().transaction_remove_expired_transaction_cleanup_interval_ms

    def _record(self, transaction: Transaction) -> LogRecord:
        return records.record_of(transaction, self._transaction_version())


def _not_initialized(error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
