"""Long histories of a broker that does everything right, and the same with one thing wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from ottla.testing.history import Event, Kind, check
from ottla.testing.history.events import merge
from tests.unit.testing.histories import Clients

PARTITIONS = ("t-0", "t-1", "t-2")
SEEDS = range(20)


@dataclass
class World:
    """Logs, transactions and one group, with clients that note what they do. Some of it goes unanswered."""

    random: random.Random
    clients: Clients = field(default_factory=Clients)
    logs: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in PARTITIONS})
    aborted: set[str] = field(default_factory=set)
    owners: dict[str, str] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    count: int = 0

    def transaction(self, producer: str) -> None:
        self.count += 1
        name = f"{producer}/{self.count}"
        values = [f"{name}/{number}" for number in range(self.random.randint(1, 4))]
        for value in values:
            partition = self.random.choice(PARTITIONS)
            send = self.clients(producer).send(partition, value, name)
            self.logs[partition].append(value)
            if self.random.random() < 0.9:
                send.ok(offset=len(self.logs[partition]) - 1)
        commit = self.random.random() < 0.7
        end = self.clients(producer).end_transaction(name, commit=commit)
        if not commit or self.random.random() < 0.2:
            self.aborted.update(values)
        elif self.random.random() < 0.8:
            end.ok()

    def rebalance(self, members: list[str]) -> None:
        self.generation += 1
        for partition, member in self.owners.items():
            self.clients(member).revoked("g", [partition])
        self.owners = {partition: self.random.choice(members) for partition in PARTITIONS}
        for partition, member in self.owners.items():
            self.clients(member).assigned("g", [partition], generation=self.generation)

    def consume(self) -> None:
        partition, member = self.random.choice(list(self.owners.items()))
        fetch = self.clients(member).fetch_offsets("g")
        at = self.committed.get(partition)
        fetch.ok(offsets={partition: at})
        log = self.logs[partition]
        polled = [
            (partition, offset, log[offset])
            for offset in range(at or 0, len(log))
            if log[offset] not in self.aborted
        ]
        self.clients(member).positioned({partition: at or 0})
        self.clients(member).polled(polled, committed=True)
        offset = len(log)
        commit = self.clients(member).commit("g", {partition: offset}, generation=self.generation)
        if self.random.random() < 0.9:
            self.committed[partition] = offset
            commit.ok()


def history(seed: int) -> list[Event]:
    world = World(random.Random(seed))
    world.rebalance(["m1", "m2"])
    for _ in range(150):
        match world.random.randrange(8):
            case 0:
                world.rebalance(["m1", "m2", "m3"])
            case 1 | 2 | 3:
                world.consume()
            case _:
                world.transaction(world.random.choice(["p1", "p2"]))
    for partition, log in world.logs.items():
        records = [(partition, offset, value) for offset, value in enumerate(log)]
        world.clients("last").polled([r for r in records if r[2] not in world.aborted], committed=True)
    return merge(world.clients.events())


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_where_nothing_is_wrong(seed: int) -> None:
    assert check(history(seed), drained=True) == []


Corrupt = Callable[[list[Event], random.Random], list[Event]]


def change(events: list[Event], at: int, **values: Any) -> list[Event]:
    changed = events[at]._replace(values={**events[at].values, **values})
    return [*events[:at], changed, *events[at + 1 :]]


def places(events: list[Event], function: str, type: str = "ok", process: str | None = None) -> list[int]:
    return [
        at
        for at, event in enumerate(events)
        if (event.function, event.type) == (function, type) and process in (None, event.process)
    ]


def acknowledged(events: list[Event], transactions: set[str]) -> list[tuple[str, int, str]]:
    """What the broker said it has of these transactions."""
    asked = {
        (events[at].process, events[at].operation): events[at].values
        for at in places(events, "send", "invoke")
    }
    answered = [
        (asked[events[at].process, events[at].operation], events[at].values) for at in places(events, "send")
    ]
    return [
        (send["partition"], answer["offset"], send["value"])
        for send, answer in answered
        if send["transaction"] in transactions
    ]


def lose_a_record(events: list[Event], random: random.Random) -> list[Event]:
    ended = {(events[at].process, events[at].operation) for at in places(events, "end_transaction")}
    committed = {
        events[at].values["transaction"]
        for at in places(events, "end_transaction", "invoke")
        if (events[at].process, events[at].operation) in ended
    }
    lost = random.choice(acknowledged(events, committed))
    for at in places(events, "poll"):
        records = [record for record in events[at].values["records"] if tuple(record) != lost]
        events = change(events, at, records=records)
    return events


def show_what_was_aborted(events: list[Event], random: random.Random) -> list[Event]:
    aborted = {
        events[at].values["transaction"]
        for at in places(events, "end_transaction", "invoke")
        if not events[at].values["commit"]
    }
    seen = [list(random.choice(acknowledged(events, aborted)))]
    other = events[-1]._replace(
        process="other", operation=10_000, values={"records": seen, "committed": True}
    )
    return [*events, other]


def swap_two_values(events: list[Event], random: random.Random) -> list[Event]:
    at = random.choice([at for at in places(events, "poll") if len(events[at].values["records"]) > 1])
    records = [list(record) for record in events[at].values["records"]]
    records[0][2], records[1][2] = records[1][2], records[0][2]
    return change(events, at, records=records)


def forget_a_commit(events: list[Event], random: random.Random) -> list[Event]:
    at = random.choice(
        [at for at in places(events, "fetch_offsets") if None not in events[at].values["offsets"].values()]
    )
    return change(events, at, offsets=dict.fromkeys(events[at].values["offsets"]))


def give_a_partition_twice(events: list[Event], random: random.Random) -> list[Event]:
    at = random.choice(places(events, "assigned"))
    other = events[at]._replace(
        process="thief", operation=10_000, values={**events[at].values, "member": "thief"}
    )
    return [*events[: at + 1], other, *events[at + 1 :]]


def take_an_old_commit(events: list[Event], random: random.Random) -> list[Event]:
    at = random.choice(
        [
            at
            for at in places(events, "commit")
            for began in places(events[:at], "commit", "invoke", events[at].process)[-1:]
            if events[began].values["generation"] > 1
        ]
    )
    began = places(events[:at], "commit", "invoke", events[at].process)[-1]
    return change(events, began, generation=events[began].values["generation"] - 1)


def see_it_before_its_commit(events: list[Event], random: random.Random) -> list[Event]:
    end = random.choice(
        [
            at
            for at in places(events, "end_transaction", "invoke")
            if events[at].values["commit"]
            for ended in [events[at + 1]]
            if ended.function == "end_transaction" and ended.type == "ok"
            if events[at - 1].function == "send" and events[at - 1].type == "ok"
        ]
    )
    send, acknowledged = events[end - 2].values, events[end - 1].values
    seen = [send["partition"], acknowledged["offset"], send["value"]]
    early = events[end]._replace(
        process="other",
        operation=10_000,
        function="poll",
        type="ok",
        values={"records": [seen], "committed": True},
    )
    return [*events[:end], early, *events[end:]]


WRONG: list[tuple[Corrupt, set[Kind]]] = [
    (lose_a_record, {Kind.LOST_WRITE, Kind.UNSEEN}),
    (show_what_was_aborted, {Kind.ABORTED_READ, Kind.PRECOMMITTED_READ}),
    (swap_two_values, {Kind.INCONSISTENT_OFFSET}),
    (forget_a_commit, {Kind.LOST_COMMIT}),
    (give_a_partition_twice, {Kind.OWNERSHIP_OVERLAP}),
    (take_an_old_commit, {Kind.FENCED_COMMIT}),
    (see_it_before_its_commit, {Kind.PRECOMMITTED_READ}),
]


@pytest.mark.parametrize("corrupt,kinds", WRONG, ids=[corrupt.__name__ for corrupt, _ in WRONG])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_thing_wrong_is_found_wherever_it_is(seed: int, corrupt: Corrupt, kinds: set[Kind]) -> None:
    events = corrupt(history(seed), random.Random(seed))
    ordered = [event._replace(time=time) for time, event in enumerate(events)]
    assert {anomaly.kind for anomaly in check(ordered, drained=True)} & kinds
