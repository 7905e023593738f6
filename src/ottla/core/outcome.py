"""What a coordinator's command decides: records to write, answers to give, things to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class LogRecord(NamedTuple):
    """A record of a coordinator's log, in Kafka's bytes; without a value it takes the key back."""

    key: bytes
    value: bytes | None


class Now(NamedTuple):
    """The time as a machine is told it."""

    wall_ms: int  # for what is stored or shown
    monotonic_ms: int  # for deadlines: it never jumps


@dataclass(slots=True)
class Outcome:
    """Decided, not done. The shell appends the records as one batch, applies them, and once they are
    committed gives the answers and carries out the effects.

    `reply` is the caller's answer; None when the caller has to wait, in which case its ticket comes up in
    `released` of a later outcome. Soft state that is not in the log (timers, who waits for a rebalance) may
    change while a command is being decided; what the records say changes only in `apply`.
    """

    records: list[LogRecord] = field(default_factory=list)
    reply: Any | None = None
    released: list[tuple[object, Any]] = field(default_factory=list)
    effects: list[Any] = field(default_factory=list)
    # Whether the records stand or fall together. If not, more than fit into a batch go into several.
    atomic: bool = True


class Applied(NamedTuple):
    """Where a record stands in the log, and in whose transaction."""

    offset: int
    timestamp: int
    producer_id: int = -1  # of a transactional batch; else -1
    producer_epoch: int = -1
