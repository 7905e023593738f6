"""Who owned which partition: one member of a generation, and one member at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.testing.history.anomalies import Anomaly, Kind
from ottla.testing.history.operations import NEVER, Crash, Operations, Owning


@dataclass(slots=True)
class Interval:
    """From having heard of the assignment to giving it up, so certainly within what the member had."""

    member: str
    began: int
    ended: int = NEVER
    expelled: bool = False  # it heard of the end later than the group decided it


def check_ownership(operations: Operations) -> Iterator[Anomaly]:
    yield from _two_owners_in_a_generation(operations.ownings)
    for (group, partition), intervals in intervals_of(operations).items():
        yield from _two_owners_at_a_time(group, partition, intervals)


def _two_owners_in_a_generation(ownings: list[Owning]) -> Iterator[Anomaly]:
    owners: dict[tuple[str, int, str], str] = {}
    for owning in ownings:
        if owning.what != "assigned" or owning.generation is None:
            continue
        for partition in owning.partitions:
            owner = owners.setdefault((owning.group, owning.generation, partition), owning.member)
            if owner != owning.member:
                yield Anomaly(
                    Kind.OWNERSHIP_OVERLAP,
                    f"generation {owning.generation} of {owning.group} gave {partition} to {owner} "
                    f"and to {owning.member}",
                )


def _two_owners_at_a_time(group: str, partition: str, intervals: list[Interval]) -> Iterator[Anomaly]:
    # Intervals are in the order in which they began, so each is compared with the one that reaches farthest.
    farthest: Interval | None = None
    for interval in intervals:
        if interval.expelled:
            continue
        if farthest is not None and interval.began < farthest.ended and interval.member != farthest.member:
            yield Anomaly(
                Kind.OWNERSHIP_OVERLAP,
                f"{interval.member} got {partition} of {group} while {farthest.member} still had it",
            )
        if farthest is None or interval.ended >= farthest.ended:
            farthest = interval


def intervals_of(operations: Operations) -> dict[tuple[str, str], list[Interval]]:
    """For each group and partition, who had it and from when to when."""
    found: dict[tuple[str, str], list[Interval]] = defaultdict(list)
    running: dict[str, dict[tuple[str, str], Interval]] = defaultdict(dict)  # of each process
    moves: list[Owning | Crash] = sorted([*operations.ownings, *operations.crashes], key=lambda what: what.at)
    for move in moves:
        mine = running[move.process]
        if isinstance(move, Crash):
            for interval in mine.values():
                interval.ended = move.at
            mine.clear()
            continue
        for partition in move.partitions:
            key = (move.group, partition)
            if move.what == "assigned":
                # One that is told again what it has goes on having it.
                if key not in mine:
                    mine[key] = Interval(move.member, move.at)
                    found[key].append(mine[key])
            elif key in mine:
                ending = mine.pop(key)
                ending.ended = move.at
                ending.expelled = move.what == "lost"
    return found
