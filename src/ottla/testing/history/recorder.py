"""Noting what a client does, as it does it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

from ottla.testing.history.events import Event, Type


class Operation:
    """One that has begun. It ends with `ok`, `fail` or `info`, or never."""

    __slots__ = ("_function", "_number", "_recorder")

    def __init__(self, recorder: Recorder, function: str, number: int) -> None:
        self._recorder, self._function, self._number = recorder, function, number

    def ok(self, **values: Any) -> None:
        """It happened."""
        self._recorder.note(self._number, self._function, "ok", values)

    def fail(self, **values: Any) -> None:
        """It certainly did not happen, and never will."""
        self._recorder.note(self._number, self._function, "fail", values)

    def info(self, **values: Any) -> None:
        """Nobody knows: the answer never came, or says as little."""
        self._recorder.note(self._number, self._function, "info", values)


class Recorder:
    """The events of one process, in memory and as lines of a file if one is given.

    A file is flushed with every event, so that whoever kills the process finds all it had noted.
    Threads may share a recorder: delivery reports and rebalances come on threads of their own.
    """

    def __init__(
        self, process: str, file: TextIO | None = None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.process: Final = process
        self.events: list[Event] = []
        self._file = file
        self._clock = clock
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def note(self, operation: int, function: str, type: Type, values: Mapping[str, Any]) -> None:
        with self._lock:
            event = Event(self._clock(), self.process, operation, function, type, values)
            self.events.append(event)
            if self._file is not None:
                self._file.write(event.line() + "\n")
                self._file.flush()

    # --- records -------------------------------------------------------------------------

    def send(self, partition: str, value: str | int, transaction: str | None = None) -> Operation:
        """`ok(offset=...)` when it is acknowledged. Values are unique in the history."""
        return self._invoke("send", partition=partition, value=value, transaction=transaction)

    def polled(
        self,
        records: Sequence[tuple[str, int, str | int]],
        *,
        committed: bool = False,
    ) -> None:
        """(partition, offset, value) of what a poll returned; `committed` if it was read_committed."""
        self._happened("poll", records=[list(record) for record in records], committed=committed)

    def positioned(self, positions: Mapping[str, int | None]) -> None:
        """The consumer was put at these offsets, by assign or seek; None is wherever it happens to be."""
        self._happened("position", positions=dict(positions))

    # --- transactions --------------------------------------------------------------------

    def end_transaction(self, transaction: str, *, commit: bool) -> Operation:
        """`transaction` is one transaction, not a transactional id."""
        return self._invoke("end_transaction", transaction=transaction, commit=commit)

    # --- groups --------------------------------------------------------------------------

    def assigned(
        self, group: str, partitions: Sequence[str], *, member: str = "", generation: int | None = None
    ) -> None:
        """These came to what the member has. A static member is its instance id."""
        self._owning("assigned", group, partitions, member, generation)

    def revoked(self, group: str, partitions: Sequence[str], *, member: str = "") -> None:
        """The member gives these up: noted before it says so."""
        self._owning("revoked", group, partitions, member, None)

    def lost(self, group: str, partitions: Sequence[str], *, member: str = "") -> None:
        """The member hears that these had been taken from it."""
        self._owning("lost", group, partitions, member, None)

    def crashed(self, process: str) -> None:
        """Another process was killed: noted before anything can follow from it."""
        self._happened("crash", process=process)

    def commit(
        self,
        group: str,
        offsets: Mapping[str, int],
        *,
        member: str = "",
        generation: int | None = None,
        transaction: str | None = None,
    ) -> Operation:
        """Within a transaction it is `ok` when the broker has taken it, and real when that commits."""
        return self._invoke(
            "commit",
            group=group,
            member=member or self.process,
            generation=generation,
            offsets=dict(offsets),
            transaction=transaction,
        )

    def fetch_offsets(self, group: str, *, stable: bool = False) -> Operation:
        """`ok(offsets={partition: offset, or None if there is none})`; `stable` waits for transactions."""
        return self._invoke("fetch_offsets", group=group, stable=stable)

    # --- the parts -----------------------------------------------------------------------

    def _invoke(self, function: str, **values: Any) -> Operation:
        number = next(self._numbers)
        self.note(number, function, "invoke", values)
        return Operation(self, function, number)

    def _happened(self, function: str, **values: Any) -> None:
        self.note(next(self._numbers), function, "ok", values)

    def _owning(
        self, function: str, group: str, partitions: Sequence[str], member: str, generation: int | None
    ) -> None:
        self._happened(
            function,
            group=group,
            member=member or self.process,
            generation=generation,
            partitions=list(partitions),
        )
