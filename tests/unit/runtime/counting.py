"""A node whose `__consumer_offsets` holds counters, to show what the shell of coordinators does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ottla.config.broker import broker_settings, development_defaults
from ottla.config.listeners import Listeners
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.core.types import CONSUMER_OFFSETS
from ottla.protocol.errors import UnknownMemberId
from ottla.runtime.coordinator import Coordinator
from ottla.runtime.node import Node
from ottla.runtime.shard import Ticket, Writing
from ottla.testing.disk import UnsyncedFiles

LONG_S = 30
ADDRESSES = [("127.0.0.1", 9092)]


class Counters:
    """A machine: named counters. A record adds to one of them; a null value takes it back to nothing."""

    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self.totals: dict[str, int] = {}
        self.pending: dict[int, list[tuple[str, int]]] = {}
        self.applied: list[Applied] = []
        self.waiting: list[object] = []
        self.due: int | None = None
        self.after_expiry: list[LogRecord] = []
        self.expiries = 0
        self.has_loaded = False
        self.is_broken = False
        self.news: list[tuple[dict[Uuid, str], set[str]]] = []

    # What the shell asks

    def apply(self, record: LogRecord, at: Applied) -> None:
        name = record.key.decode()
        if name == "poison" and record.value == b"1":
            raise AssertionError("a record that cannot be applied")
        self.applied.append(at)
        if at.producer_id >= 0:
            self.pending.setdefault(at.producer_id, []).append((name, int(record.value or b"0")))
        else:
            self.totals[name] = self.totals.get(name, 0) + int(record.value or b"0")

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        for name, amount in self.pending.pop(producer_id, []):
            if committed:
                self.totals[name] = self.totals.get(name, 0) + amount

    def loaded(self, now: Now) -> Outcome:
        self.has_loaded = True
        return Outcome()

    def deadline(self) -> int | None:
        return self.due

    def expire(self, now: Now) -> Outcome:
        assert not self.is_broken, "as the test wanted it"
        assert self.due is not None and self.due <= now.monotonic_ms, "called before it is time"
        self.expiries += 1
        self.due = None
        waiting, self.waiting = self.waiting, []
        return Outcome(records=self.after_expiry, released=[(ticket, "too late") for ticket in waiting])

    def topics_changed(self, deleted: dict[Uuid, str], changed: set[str], now: Now) -> Outcome:
        self.news.append((deleted, changed))
        return Outcome()

    # Commands

    def add(self, *amounts: tuple[str, int], effects: Sequence[str] = (), atomic: bool = True) -> Outcome:
        """Answers with the totals, and lets those go who waited."""
        totals = dict(self.totals)
        for name, amount in amounts:
            totals[name] = totals.get(name, 0) + amount
        waiting, self.waiting = self.waiting, []
        return Outcome(
            records=[LogRecord(name.encode(), b"%d" % amount) for name, amount in amounts],
            reply=tuple(totals[name] for name, _ in amounts),
            released=[(ticket, f"after {amounts[0][0]}") for ticket in waiting],
            effects=list(effects),
            atomic=atomic,
        )

    def get(self, name: str) -> Outcome:
        if name not in self.totals:
            raise UnknownMemberId(name)
        return Outcome(reply=self.totals[name])

    def wait(self, ticket: object) -> Outcome:
        self.waiting.append(ticket)
        return Outcome()


Command = Callable[[Counters, Now, Ticket], Outcome]


def add(*amounts: tuple[str, int], effects: Sequence[str] = (), atomic: bool = True) -> Command:
    return lambda machine, now, ticket: machine.add(*amounts, effects=effects, atomic=atomic)


def get(name: str) -> Command:
    return lambda machine, now, ticket: machine.get(name)


def wait(machine: Counters, now: Now, ticket: Ticket) -> Outcome:
    return machine.wait(ticket)


class CountingNode:
    """A real node, of which only the machines of groups are ours."""

    def __init__(
        self,
        path: Path,
        files: Files | None = None,
        *,
        timeout_ms: int = LONG_S * 1000,
        **properties: str,
    ) -> None:
        given = {"log.dirs": str(path), "listeners": "PLAINTEXT://127.0.0.1:9092"}
        given |= {name.replace("_", "."): value for name, value in properties.items()}
        given = development_defaults(given) | given
        settings = broker_settings(given)
        self.files = files or UnsyncedFiles()
        self.node = Node(given, settings, Listeners.parse(settings), files=self.files)
        self.effects: list[str] = []
        self.made: list[Counters] = []
        self.counters: Coordinator[Counters] = Coordinator(
            CONSUMER_OFFSETS,
            self.node,
            Writing(base_sequence=0, codec=lambda: 0, timeout_ms=lambda: timeout_ms),
            make=self._make,
            on_effect=self.effects.append,
        )
        coordinators: Any = self.node.coordinators
        coordinators.groups = coordinators.by_topic[CONSUMER_OFFSETS] = self.counters

    def _make(self, partition: int, leader_epoch: int) -> Counters:
        machine = Counters(leader_epoch)
        self.made.append(machine)
        return machine

    async def __aenter__(self) -> CountingNode:
        await self.node.load()
        await self.node.join(ADDRESSES)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if isinstance(self.files, GatedFiles):
            self.files.lift()  # where a test has failed in the middle
        await self.node.stop()

    def call(self, key: str, command: Command, **more: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self.counters.call(key, command, **more))

    def partition(self, key: str) -> Any:
        found = self.node.replicas.find(CONSUMER_OFFSETS, self.counters.partition_for(key))
        assert found is not None
        return found

    async def loaded(self, key: str) -> Counters:
        """The machine of a key, once it is there."""
        while True:
            for index, machine in self.counters.partitions():
                if index == self.counters.partition_for(key):
                    return machine
            await turns(1)


async def turns(count: int = 20) -> None:
    """Let everything run that can run without the disk."""
    for _ in range(count):
        await asyncio.sleep(0)


class GatedFiles(UnsyncedFiles):
    """While the gate is shut, syncs of the logs of counters wait at it."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._arrived = threading.Semaphore(0)
        self._paths: dict[object, str] = {}

    def shut(self) -> None:
        self._open.clear()

    def lift(self) -> None:
        self._open.set()

    async def somebody_syncs(self) -> None:
        assert await asyncio.to_thread(self._arrived.acquire, timeout=LONG_S)

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = super().open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def fdatasync(self, fd: object) -> None:
        path = self._paths.get(fd, "")
        if CONSUMER_OFFSETS in path and path.endswith(".log") and not self._open.is_set():
            self._arrived.release()
            assert self._open.wait(timeout=LONG_S)

    fsync = fdatasync
