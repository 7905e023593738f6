"""A coordinator's machine with its log in memory: what the shell does, at once and without a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.protocol.errors import KafkaError

START_MS: Final = 1_700_000_000_000
NO_TRANSACTION: Final = (-1, -1)


class Machine(Protocol):
    def apply(self, entry: LogRecord, at: Applied, /) -> None: ...
    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None: ...
    def loaded(self, now: Now) -> Outcome: ...
    def deadline(self) -> int | None: ...
    def expire(self, now: Now) -> Outcome: ...


M = TypeVar("M", bound=Machine)


class Ticket:
    """Where an answer arrives: a reply, or an error; neither while its owner waits."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self.reply: Any = None
        self.error: KafkaError | None = None

    @property
    def waits(self) -> bool:
        return self.reply is None and self.error is None

    def __repr__(self) -> str:
        return f"Ticket({self.owner!r})"


class Written(NamedTuple):
    """A record in the log."""

    record: LogRecord
    at: Applied


class Marker(NamedTuple):
    """The end of a transaction in the log."""

    producer_id: int
    producer_epoch: int
    committed: bool


class MemoryShard(Generic[M]):
    """Runs commands on a machine. `restart` makes another one from the log, as a failover does."""

    def __init__(self, make: Callable[[], M]) -> None:
        self._make = make
        self.log: list[Written | Marker] = []
        self.effects: list[Any] = []
        self.elapsed_ms = 0
        # What happened since somebody looked: records that were written, tickets that were answered.
        self.news: list[Written | Marker | Ticket] = []
        self.machine = make()
        self._take(self.machine.loaded)

    @property
    def now(self) -> Now:
        # The two clocks have nothing in common, so that mixing them up shows.
        return Now(START_MS + self.elapsed_ms, 5_000_000 + self.elapsed_ms)

    def run(
        self,
        command: Callable[[M, Now, Ticket], Outcome],
        *,
        transaction: tuple[int, int] = NO_TRANSACTION,
        owner: str = "",
    ) -> Ticket:
        ticket = Ticket(owner)
        try:
            outcome = command(self.machine, self.now, ticket)
        except KafkaError as error:
            ticket.error = error
            self.news.append(ticket)
            return ticket
        self._write(outcome, transaction)
        if outcome.reply is not None:
            outcome.released.insert(0, (ticket, outcome.reply))
        self._release(outcome)
        return ticket

    def call(self, command: Callable[[M, Now, Ticket], Outcome], **how: Any) -> Any:
        """The reply to a command that does not have to wait. Raises its error."""
        ticket = self.run(command, **how)
        if ticket.error is not None:
            raise ticket.error
        assert not ticket.waits, "the command has to wait"
        return ticket.reply

    def take(self, decide: Callable[[M, Now], Outcome]) -> None:
        """Carry out what the machine decides on news of ours."""
        machine = self.machine
        self._take(lambda now: decide(machine, now))

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        marker = Marker(producer_id, producer_epoch, committed)
        self.log.append(marker)
        self.news.append(marker)
        self.machine.end_transaction(*marker)

    def advance(self, ms: int) -> None:
        """Let time pass, and with it what falls due."""
        end_ms = self.elapsed_ms + ms
        while True:
            due = self.machine.deadline()
            if due is None or due - 5_000_000 > end_ms:
                break
            self.elapsed_ms = max(self.elapsed_ms, due - 5_000_000)
            self._take(self.machine.expire)
        self.elapsed_ms = end_ms

    def restart(self) -> None:
        """Another machine takes over. Whoever waits is told nothing: its connection is gone."""
        self.machine = self.replayed()
        self._take(self.machine.loaded)

    def replayed(self) -> M:
        """A machine that knows what the log says."""
        machine = self._make()
        for entry in self.log:
            if isinstance(entry, Marker):
                machine.end_transaction(*entry)
            else:
                machine.apply(*entry)
        return machine

    def take_news(self) -> list[Written | Marker | Ticket]:
        news, self.news = self.news, []
        return news

    def _take(self, decide: Callable[[Now], Outcome]) -> None:
        outcome = decide(self.now)
        self._write(outcome, NO_TRANSACTION)
        self._release(outcome)

    def _write(self, outcome: Outcome, transaction: tuple[int, int]) -> None:
        for record in outcome.records:
            at = Applied(len(self.log), self.now.wall_ms, *transaction)
            self.log.append(Written(record, at))
            self.news.append(self.log[-1])
            self.machine.apply(record, at)

    def _release(self, outcome: Outcome) -> None:
        for ticket, reply in outcome.released:
            assert isinstance(ticket, Ticket) and ticket.waits, f"{ticket} is answered twice"
            if isinstance(reply, KafkaError):
                ticket.error = reply
            else:
                ticket.reply = reply
            self.news.append(ticket)
        self.effects += outcome.effects
