"""Events put together to operations with types, which is what checkers read.

`began` and `ended` are places in the order of events; who ended before another began, came before it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from ottla.testing.history.events import Event

NEVER: Final = sys.maxsize
Value = str | int


class Outcome(Enum):
    OK = "ok"  # it happened
    FAIL = "fail"  # it did not, and never will
    INFO = "info"  # nobody knows


@dataclass(slots=True)
class Send:
    process: str
    began: int
    ended: int
    outcome: Outcome
    partition: str
    value: Value
    transaction: str | None
    offset: int | None  # of one that is acknowledged


@dataclass(slots=True)
class Poll:
    process: str
    at: int
    records: list[tuple[str, int, Value]]
    committed: bool  # isolation level read_committed


@dataclass(slots=True)
class Position:
    process: str
    at: int
    positions: Mapping[str, int | None]


@dataclass(slots=True)
class EndTransaction:
    process: str
    began: int
    ended: int
    outcome: Outcome
    transaction: str
    commit: bool


@dataclass(slots=True)
class Owning:
    """A member got partitions (`assigned`), gave them up (`revoked`), or heard that it had lost them."""

    process: str
    at: int
    what: str
    group: str
    member: str
    generation: int | None
    partitions: list[str]


@dataclass(slots=True)
class Crash:
    process: str
    at: int


@dataclass(slots=True)
class Commit:
    process: str
    began: int
    ended: int
    outcome: Outcome
    group: str
    member: str
    generation: int | None
    offsets: Mapping[str, int]
    transaction: str | None


@dataclass(slots=True)
class FetchOffsets:
    process: str
    began: int
    ended: int
    group: str
    offsets: Mapping[str, int | None]
    stable: bool


@dataclass(slots=True)
class Operations:
    """Every operation of a history, in the order in which they began."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    ends: list[EndTransaction] = field(default_factory=list)
    ownings: list[Owning] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    fetches: list[FetchOffsets] = field(default_factory=list)


def operations(events: Iterable[Event]) -> Operations:
    found = Operations()
    begun: dict[tuple[str, int], Any] = {}
    for at, event in enumerate(events):
        if event.type == "invoke":
            begun[event.process, event.operation] = _begin(found, event, at)
            continue
        operation = begun.pop((event.process, event.operation), None)
        if operation is None:
            _happened(found, event, at)
        else:
            _end(found, operation, event, at)
    return found


def _begin(found: Operations, event: Event, at: int) -> object:
    values = event.values
    match event.function:
        case "send":
            send = Send(
                event.process,
                at,
                NEVER,
                Outcome.INFO,
                values["partition"],
                values["value"],
                values.get("transaction"),
                None,
            )
            found.sends.append(send)
            return send
        case "end_transaction":
            end = EndTransaction(
                event.process, at, NEVER, Outcome.INFO, values["transaction"], values["commit"]
            )
            found.ends.append(end)
            return end
        case "commit":
            commit = Commit(
                event.process,
                at,
                NEVER,
                Outcome.INFO,
                values["group"],
                values["member"],
                values.get("generation"),
                values["offsets"],
                values.get("transaction"),
            )
            found.commits.append(commit)
            return commit
        case "fetch_offsets":
            # Only one that is answered says anything, so only then is it in the history.
            return FetchOffsets(event.process, at, NEVER, values["group"], {}, bool(values.get("stable")))
        case other:
            raise ValueError(f"a history knows no operation {other!r}")


def _end(found: Operations, operation: Any, event: Event, at: int) -> None:
    operation.ended = at
    if isinstance(operation, FetchOffsets):
        if event.type == "ok":
            operation.offsets = event.values["offsets"]
            found.fetches.append(operation)
        return
    operation.outcome = Outcome(event.type)
    if isinstance(operation, Send) and event.type == "ok":
        operation.offset = event.values["offset"]


def _happened(found: Operations, event: Event, at: int) -> None:
    values = event.values
    match event.function:
        case "poll":
            records = [(record[0], record[1], record[2]) for record in values["records"]]
            found.polls.append(Poll(event.process, at, records, bool(values.get("committed"))))
        case "position":
            found.positions.append(Position(event.process, at, values["positions"]))
        case "assigned" | "revoked" | "lost":
            found.ownings.append(
                Owning(
                    event.process,
                    at,
                    event.function,
                    values["group"],
                    values["member"],
                    values.get("generation"),
                    values["partitions"],
                )
            )
        case "crash":
            found.crashes.append(Crash(values["process"], at))
        case other:
            raise ValueError(f"{other!r} ended without having begun")
