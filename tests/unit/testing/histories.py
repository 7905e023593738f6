"""Histories for tests: processes that share one clock, so that what is noted first came first."""

from __future__ import annotations

import itertools

from ottla.testing.history import Event, Kind, Recorder, check


class Clients:
    """`clients("p1")` is the recorder of that process."""

    def __init__(self) -> None:
        self._clock = itertools.count()
        self._recorders: dict[str, Recorder] = {}

    def __call__(self, process: str) -> Recorder:
        if process not in self._recorders:
            self._recorders[process] = Recorder(process, clock=lambda: next(self._clock))
        return self._recorders[process]

    def events(self) -> list[Event]:
        return [event for recorder in self._recorders.values() for event in recorder.events]

    def kinds(self, *, drained: bool = False) -> list[Kind]:
        """The kinds of all anomalies found."""
        return [anomaly.kind for anomaly in check(self.events(), drained=drained)]
