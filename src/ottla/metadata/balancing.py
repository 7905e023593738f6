"""What the controller looks after now and then: leaders that are not the preferred ones, and partitions that
only an unclean election could give a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ottla.metadata.election import Election
from ottla.metadata.image import MetadataRecord
from ottla.metadata.leadership import Partition, change_of, leaderless
from ottla.metadata.state import ControllerState

# Elections in one go. If there are more to hold, the rest follows at once, after what has come meanwhile.
ELECTIONS_MAX: Final = 1_000

Round = Callable[[ControllerState], list[MetadataRecord]]


def balance_leaders(state: ControllerState) -> list[MetadataRecord]:
    """Give partitions back to the first of their replicas, where it is in sync again."""
    imbalanced = (each for each in state.image.partitions() if each[2].leader != each[2].preferred_leader)
    return _elect(state, imbalanced, Election.PREFERRED)


def elect_uncleanly(state: ControllerState) -> list[MetadataRecord]:
    """Elect anyone at all where nobody leads, on topics that would rather lose records than wait."""
    wanted = (each for each in leaderless(state) if state.is_unclean_election_enabled(each[0].name))
    return _elect(state, wanted, Election.UNCLEAN)


def _elect(
    state: ControllerState, partitions: Iterator[Partition], election: Election
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    for topic, number, partition in partitions:
        record = change_of(state, topic, number, partition, election=election).record()
        if record is not None:
            records.append(record)
            if len(records) == ELECTIONS_MAX:
                break
    return records


class Rounds:
    """When each of these is due. The first comes an interval after the controller became active."""

    def __init__(self, state: ControllerState, now_ms: int) -> None:
        settings = state.settings
        rounds: list[tuple[Round, int]] = [(elect_uncleanly, settings.unclean_election_interval_ms)]
        if settings.balances_leaders:
            rounds.append((balance_leaders, settings.imbalance_check_interval_ms))
        self._intervals = dict(rounds)
        self._due_ms = {each: now_ms + interval_ms for each, interval_ms in rounds}

    def deadline(self) -> int:
        return min(self._due_ms.values())

    def expire(self, state: ControllerState, now_ms: int) -> list[MetadataRecord]:
        """The records of a round that is due."""
        for each, due_ms in self._due_ms.items():
            if now_ms >= due_ms:
                records = each(state)
                is_whole = len(records) < ELECTIONS_MAX
                self._due_ms[each] = now_ms + (self._intervals[each] if is_whole else 1)
                if records:
                    return records
        return []
