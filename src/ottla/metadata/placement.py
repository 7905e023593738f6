"""Where the replicas of new partitions go: striped over racks and brokers, from a random start.

Each partition takes one broker after the other, from a different rack each time as far as there are any;
leaders go to unfenced brokers only. Once every unfenced broker has led as often as the others, the order is
shuffled, so that the second round does not pair the same brokers again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ottla.protocol.errors import InvalidReplicationFactor

T = TypeVar("T")
Draw = Callable[[int], int]  # a random number below its argument


class UsableBroker(NamedTuple):
    id: int
    rack: str | None
    fenced: bool


def draw_from(random_bytes: Callable[[int], bytes]) -> Draw:
    """Random numbers from random bytes. The bias is one in billions, and placement does not mind."""

    def draw(below: int) -> int:
        return int.from_bytes(random_bytes(8), "big") % below

    return draw


def place(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, draw: Draw
) -> list[tuple[int, ...]]:
    """The replicas of that many partitions; raises `InvalidReplicationFactor` when it cannot be done."""
    racks = _Racks(brokers, draw)
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if not racks.unfenced:
        raise InvalidReplicationFactor("All brokers are currently fenced.")
    if replication_factor > racks.total:
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{racks.total} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    return [racks.place(replication_factor) for _ in range(partitions)]


class _Brokers:
    """Some brokers of a rack, handed out in turn. Every round starts one further on."""

    def __init__(self, ids: list[int], draw: Draw) -> None:
        self.ids = sorted(ids)
        self._draw = draw
        self._start = draw(len(ids)) if ids else 0
        self._round = 0
        self._given = 0

    def next(self, round_: int) -> int | None:
        if self.ids and self._round != round_:
            self._round, self._given = round_, 0
            self._start = (self._start + 1) % len(self.ids)
        if self._given >= len(self.ids):
            return None
        broker = self.ids[(self._start + self._given) % len(self.ids)]
        self._given += 1
        return broker

    def shuffle(self) -> None:
        _shuffle(self.ids, self._draw)


class _Racks:
    def __init__(self, brokers: Iterable[UsableBroker], draw: Draw) -> None:
        by_rack: dict[str | None, tuple[list[int], list[int]]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, ([], []))[broker.fenced].append(broker.id)
        self.total = sum(len(unfenced) + len(fenced) for unfenced, fenced in by_rack.values())
        self.unfenced = sum(len(unfenced) for unfenced, _ in by_rack.values())
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [tuple(_Brokers(ids, draw) for ids in by_rack[name]) for name in names]
        self._draw = draw
        self._first = draw(len(names)) if names else 0
        self._round = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        # With a single unfenced broker there is nothing to shuffle, and rounds simply go on.
        if self._round == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._round = 0
        count = len(self._racks)
        start = self._first % count
        leader_rack = start
        while (leader := self._racks[leader_rack][0].next(self._round)) is None:
            leader_rack = (leader_rack + 1) % count
        chosen = [leader]
        rack, skip = start, leader_rack
        while len(chosen) < replication_factor:
            if rack == skip:
                skip = -1  # the leader's rack is passed over once: it has given its broker for this turn
            else:
                broker = self._next(rack)
                if broker is not None:
                    chosen.append(broker)
            rack = (rack + 1) % count
        self._round += 1
        self._first = start + 1
        return tuple(chosen)

    def _next(self, rack: int) -> int | None:
        unfenced, fenced = self._racks[rack]
        broker = unfenced.next(self._round)
        return fenced.next(self._round) if broker is None else broker

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._draw)
        for unfenced, fenced in self._racks:
            unfenced.shuffle()
            fenced.shuffle()


def _shuffle(items: list[T], draw: Draw) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = draw(last + 1)
        items[last], items[other] = items[other], items[last]
