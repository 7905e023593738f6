"""One partition of a coordinator's topic: a machine whose state is that partition's log.

A command is decided, its records are appended and applied, all without suspending. The answer is given once
everything that was in the log when it was decided is committed: below the high watermark and, where this
broker syncs, on the disk. That holds for answers without records too, and for errors: they rest on what the
command saw.

A shard lives from one change of leadership to the next. When its log and its machine may have come apart it
is closed, and another one begins by replaying the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ottla.core.clock import Clock
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.protocol.batch import HEADER_SIZE, TRANSACTIONAL, Record, write_batch
from ottla.protocol.control import EndTransactionMarker
from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.runtime.loading import Replayed, replay
from ottla.storage.log import Origin

logger = logging.getLogger("ottla.coordinator")

NO_TRANSACTION: Final = (-1, -1)
# What a record takes in a batch beside its key and value, generously.
RECORD_OVERHEAD: Final = 32
# A machine whose deadline has passed already is asked again after this long, and not at once.
SHORTEST_WAIT_MS: Final = 1
# How soon to look again whether enough replicas are in sync for what is due to be written.
WRITABLE_CHECK_MS: Final = 500

Ticket = asyncio.Future[Any]
Answers = list[tuple[Any, Any]]


class Machine(Replayed, Protocol):
    """What a shard asks of the machine it runs; commands are the business of those who call them."""

    def loaded(self, now: Now) -> Outcome: ...
    def deadline(self) -> int | None: ...
    def expire(self, now: Now) -> Outcome: ...


M = TypeVar("M", bound=Machine)
Command = Callable[[M, Now, Ticket], Outcome]


class Writing(NamedTuple):
    """How the records of one kind of coordinator are written."""

    base_sequence: int  # of batches outside of transactions, which have no producer and yet may have this
    codec: Callable[[], int]
    timeout_ms: Callable[[], int]  # how long an answer waits to be committed


class Home(Protocol):
    """What the node has that a shard needs."""

    @property
    def clock(self) -> Clock: ...
    @property
    def is_durable(self) -> bool: ...
    @property
    def replicas(self) -> Replicas: ...
    def synced(self, partition: Partition, last_offset: int) -> asyncio.Future[None] | None: ...


class State(Enum):
    IDLE = "idle"  # nothing in the log: the machine is made when somebody asks for it
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"  # the log could not be replayed
    CLOSED = "closed"


class Held(NamedTuple):
    """Answers and effects that wait for what they rest on to be committed."""

    end_offset: int
    deadline_ms: int
    answers: Answers
    effects: list[Any]


class Shard(Generic[M]):
    def __init__(
        self,
        partition: Partition,
        home: Home,
        writing: Writing,
        *,
        turn: asyncio.Lock,
        make: Callable[[], M],
        on_effect: Callable[[Any], None],
        on_broken: Callable[[Shard[M]], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = State.IDLE
        self.machine: M
        self._home = home
        self._clock = home.clock
        self._writing = writing
        self._turn = turn
        self._make = make
        self._on_effect = on_effect
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        # Whoever has no answer yet: as many as there are unanswered requests, which connections bound.
        self._tickets: set[Ticket] = set()
        self._held: deque[Held] = deque()
        self._is_asking = False
        self._timeout: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._loading: asyncio.Task[None] | None = None

    @property
    def index(self) -> int:
        return self.partition.partition.partition

    # --- life ----------------------------------------------------------------------------

    def load(self, after_ms: int = 0) -> None:
        """Begin to replay the log, now or soon, if there is anything in it."""
        log = self.partition.log
        if log.start_offset < log.end_offset:
            self.state = State.LOADING
            self._loading = self._loop.create_task(self._load(after_ms))

    async def _load(self, after_ms: int) -> None:
        if after_ms:
            await asyncio.sleep(after_ms / 1000)
        # A machine may have something to write as soon as it is loaded.
        while not self.partition.isr.is_large_enough:  # noqa: ASYNC110
            await asyncio.sleep(WRITABLE_CHECK_MS / 1000)
        log = self.partition.log
        started_ms = self._clock.monotonic_ms()
        try:
            self.machine = self._make()
            await replay(log, self.machine, self._turn)
        except OSError as error:
            # Which closes this shard. If it is not of the disk, another one begins again.
            self._break(self.partition.directory.fail(error))
            return
        except Exception:
            self.state = State.FAILED
            logger.exception("cannot load the coordinator of %s", self.partition.partition)
            return
        # From the last look at the log to here nothing was awaited, so the machine is where the log is.
        logger.info(
            "loaded partition=%s end_offset=%d ms=%d",
            self.partition.partition,
            log.end_offset,
            self._clock.monotonic_ms() - started_ms,
        )
        self._begin()

    def _begin(self) -> None:
        self.state = State.ACTIVE
        self._take(self.machine.loaded)

    def close(self, error: KafkaError | None = None) -> None:
        """Leave everybody who waits to find the new coordinator."""
        self.state = State.CLOSED
        if self._loading is not None:
            self._loading.cancel()
        for timer in (self._timer, self._timeout):
            if timer is not None:
                timer.cancel()
        self._held.clear()
        tickets, self._tickets = self._tickets, set()
        for ticket in tickets:
            if not ticket.done():
                ticket.set_exception(error or NotCoordinator())

    def _break(self, reason: BaseException) -> None:
        """Log and machine may differ: let another shard begin from the log."""
        if self.state is not State.CLOSED:
            logger.warning(
                "beginning again from the log partition=%s reason=%r",
                self.partition.partition,
                reason,
                exc_info=None if isinstance(reason, KafkaError) else reason,
            )
            self.close()
            self._on_broken(self)

    # --- commands ------------------------------------------------------------------------

    def run(self, command: Command[M], transaction: tuple[int, int] | None = None) -> Ticket:
        """Decide a command and write what it decided. The ticket has the answer once there is one.

        Raises the errors that come before any decision, on which nothing has changed.
        """
        self._check_writable()
        self._check_active()
        if transaction is not None:
            self.partition.log.producers.check(*transaction, 0, 0, True, sequenced=False)
        machine = self.machine
        ticket: Ticket = self._loop.create_future()
        try:
            outcome = command(machine, self._now(), ticket)
        except KafkaError as error:
            self._answer([(ticket, error)], [])
            return ticket
        if outcome.records:
            try:
                self._append(outcome, transaction)
            except KafkaError as error:
                # Others may have been released by this decision, and timers set.
                self._break(error)
                raise coordinator_error(error) from error
            except Exception as error:
                self._break(error)
                raise
        answers = outcome.released
        if outcome.reply is None:
            self._tickets.add(ticket)
        else:
            answers = [(ticket, outcome.reply), *answers]
        self._answer(answers, outcome.effects)
        self._set_timer()
        return ticket

    def take(self, decide: Callable[[M, Now], Outcome]) -> None:
        """Carry out what the machine decides on news of ours, which nobody waits for."""
        if self.state is State.ACTIVE:
            machine = self.machine
            self._take(lambda now: decide(machine, now))

    def marker_appended(self, marker: EndTransactionMarker) -> None:
        """A transaction has ended in this partition. A shard that is still loading meets it in the log."""
        if self.state is State.ACTIVE:
            try:
                self.machine.end_transaction(marker.producer_id, marker.producer_epoch, marker.commit)
            except Exception as error:
                self._break(error)
            else:
                self._set_timer()

    def _check_active(self) -> None:
        if self.state is State.IDLE:
            if self.partition.log.start_offset == self.partition.log.end_offset:
                self.machine = self._make()
                self._begin()
            else:
                self.load()  # a marker came before anybody asked
        if self.state is State.ACTIVE:
            return
        if self.state is State.LOADING:
            raise CoordinatorLoadInProgress
        if self.state is State.FAILED:
            raise CoordinatorNotAvailable(f"{self.partition.partition} could not be loaded.")
        raise NotCoordinator

    def _check_writable(self) -> None:
        """Refuse before the command what the log would refuse after it."""
        partition = self.partition
        if not partition.is_leader:
            raise NotCoordinator
        if not partition.isr.is_large_enough:
            raise CoordinatorNotAvailable

    def _now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.monotonic_ms())

    def _take(self, decide: Callable[[Now], Outcome]) -> None:
        try:
            outcome = decide(self._now())
            if outcome.records:
                # Nobody can be told that it was too much at once, and the parts of it stand for themselves.
                outcome.atomic = False
                self._append(outcome, None)
        except Exception as error:
            self._break(error)
            return
        self._answer(outcome.released, outcome.effects)
        self._set_timer()

    # --- the log -------------------------------------------------------------------------

    def _append(self, outcome: Outcome, transaction: tuple[int, int] | None) -> None:
        records = outcome.records
        if outcome.atomic:
            self._append_batch(records, transaction)
            return
        limit = self.partition.log.settings.max_message_bytes - HEADER_SIZE
        part: list[LogRecord] = []
        size = 0
        for record in records:
            record_size = RECORD_OVERHEAD + len(record.key) + len(record.value or b"")
            if part and size + record_size > limit:
                self._append_batch(part, transaction)
                part, size = [], 0
            part.append(record)
            size += record_size
        self._append_batch(part, transaction)

    def _append_batch(self, records: list[LogRecord], transaction: tuple[int, int] | None) -> None:
        """Append and apply; `KafkaError` when the log does not take it."""
        now_ms = self._clock.wall_ms()
        producer_id, producer_epoch = NO_TRANSACTION if transaction is None else transaction
        batch = write_batch(
            [Record(timestamp=now_ms, key=record.key, value=record.value) for record in records],
            codec=self._writing.codec(),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._writing.base_sequence,
            attributes=0 if transaction is None else TRANSACTIONAL,
        )
        partition = self.partition
        offset = partition.append(batch, now_ms, origin=Origin.COORDINATOR).base_offset
        if not self._home.is_durable:
            self._home.replicas.write_now(partition)  # otherwise the sync does, before any answer leaves
        apply = self.machine.apply
        for number, record in enumerate(records, offset):
            apply(record, Applied(number, now_ms, producer_id, producer_epoch))

    # --- answers -------------------------------------------------------------------------

    def _committed_offset(self) -> int:
        """Everything below is committed."""
        log = self.partition.log
        if self._home.is_durable:
            return min(log.high_watermark, log.recovery_point)
        return log.high_watermark

    def _answer(self, answers: Answers, effects: list[Any]) -> None:
        """Give answers and carry out effects, as soon as all that is in the log now is committed."""
        if not answers and not effects:
            return
        end_offset = self.partition.log.end_offset
        committed_offset = self._committed_offset()
        if end_offset <= committed_offset:
            self._release_held(committed_offset)
            self._release(answers, effects)
            return
        self._tickets.update(ticket for ticket, _ in answers)
        timeout_ms = self._writing.timeout_ms()
        self._held.append(Held(end_offset, self._clock.monotonic_ms() + timeout_ms, answers, effects))
        if self._timeout is None:
            self._timeout = self._loop.call_later(timeout_ms / 1000, self._time_out)
        if not self._is_asking:
            # Once for all that is decided in this turn of the loop.
            self._is_asking = True
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        """Ask to be told when the log as it is now is committed."""
        self._is_asking = False
        if self.state is not State.ACTIVE:
            return
        partition = self.partition
        last_offset = partition.log.end_offset - 1
        try:
            waits = [partition.committed(last_offset), self._home.synced(partition, last_offset)]
        except KafkaStorageError as error:
            self._break(error)
            return
        for wait in waits:
            if wait is not None:
                wait.add_done_callback(self._advance)

    def _advance(self, wait: asyncio.Future[None]) -> None:
        error = None if wait.cancelled() else wait.exception()
        if self.state is not State.ACTIVE:
            return
        if isinstance(error, NotEnoughReplicasAfterAppend):
            self._stop_holding()
            return
        if error is not None:
            self._break(error)
            return
        self._release_held(self._committed_offset())
        if not self._held and self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _release_held(self, committed_offset: int) -> None:
        while self._held and self._held[0].end_offset <= committed_offset:
            held = self._held.popleft()
            self._release(held.answers, held.effects)

    def _stop_holding(self) -> None:
        """Too few replicas are in sync, for nobody knows how long. What was decided stays in the log and may
        yet count, so its effects wait; those who asked for it do not."""
        held, self._held = self._held, deque()
        for each in held:
            self._release([(ticket, CoordinatorNotAvailable()) for ticket, _ in each.answers], [])
            if each.effects:
                self._held.append(each._replace(answers=[]))
        if self._held and not self._is_asking:
            self._is_asking = True
            self._loop.call_soon(self._ask)

    def _release(self, answers: Answers, effects: list[Any]) -> None:
        for ticket, answer in answers:
            self._tickets.discard(ticket)
            if not ticket.done():  # the client may have hung up
                if isinstance(answer, BaseException):
                    ticket.set_exception(answer)
                else:
                    ticket.set_result(answer)
        for effect in effects:
            try:
                self._on_effect(effect)
            except Exception:
                logger.exception("an effect failed partition=%s", self.partition.partition)

    def _time_out(self) -> None:
        """Those who waited too long are told so. What they asked for stays in the log, and may yet count."""
        self._timeout = None
        now_ms = self._clock.monotonic_ms()
        for held in self._held:
            if held.deadline_ms > now_ms:
                wait = (held.deadline_ms - now_ms) / 1000
                self._timeout = self._loop.call_later(wait, self._time_out)
                return
            late, held.answers[:] = list(held.answers), []
            self._release([(ticket, CoordinatorNotAvailable()) for ticket, _ in late], [])

    # --- time ----------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """A deadline that has moved away is found out when the timer fires; most do, on every heartbeat."""
        if self.state is not State.ACTIVE:
            return
        deadline_ms = self.machine.deadline()
        if deadline_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        wait_ms = max(deadline_ms - self._clock.monotonic_ms(), SHORTEST_WAIT_MS)
        self._timer_ms = deadline_ms
        self._timer = self._loop.call_later(wait_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        deadline_ms = self.machine.deadline()
        if deadline_ms is None:
            return
        if deadline_ms > self._clock.monotonic_ms():
            self._set_timer()
        elif not self.partition.isr.is_large_enough:
            self._timer_ms = deadline_ms
            self._timer = self._loop.call_later(WRITABLE_CHECK_MS / 1000, self._fire)
        else:
            self._take(self.machine.expire)


_NOT_AVAILABLE: Final = (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
_NOT_COORDINATOR: Final = (NotLeaderOrFollower, KafkaStorageError)
_TOO_LARGE: Final = (MessageTooLarge, RecordListTooLarge)


def coordinator_error(error: KafkaError) -> KafkaError:
    """What Kafka tells the client of a coordinator whose log refused a write."""
    if isinstance(error, _NOT_AVAILABLE):
        return CoordinatorNotAvailable()
    if isinstance(error, _NOT_COORDINATOR):
        return NotCoordinator()
    if isinstance(error, _TOO_LARGE):
        return UnknownServerError(str(error))
    return error
