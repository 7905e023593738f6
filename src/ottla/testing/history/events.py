"""One event of a history, and its line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

Type = Literal["invoke", "ok", "fail", "info"]
TYPES: Final = ("invoke", "ok", "fail", "info")


class Event(NamedTuple):
    """`values` of an `invoke` say what was asked for, those of its `ok` what came of it.

    Times are of one monotonic clock for all processes; they order what several processes noted.
    """

    time: int
    process: str
    operation: int
    function: str
    type: Type
    values: Mapping[str, Any]

    def line(self) -> str:
        head = {
            "t": self.time,
            "proc": self.process,
            "op": self.operation,
            "f": self.function,
            "type": self.type,
        }
        return json.dumps({**head, **self.values}, separators=(",", ":"))


def event(line: str) -> Event:
    values = json.loads(line)
    time, process, operation, function, type = (values.pop(name) for name in ("t", "proc", "op", "f", "type"))
    if type not in TYPES:
        raise ValueError(f"an event is {', '.join(TYPES)}, not {type!r}")
    return Event(time, process, operation, function, type, values)


def load(*paths: Path) -> list[Event]:
    """The events of several processes, in order of time. A last line that a killed process left
    unfinished did not happen."""
    found: list[Event] = []
    for path in paths:
        *lines, _unfinished = path.read_text().split("\n")
        found += [event(line) for line in lines]
    return merge(found)


def merge(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.time)
