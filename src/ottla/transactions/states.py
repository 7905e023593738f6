"""The states of a transaction, and which may follow which."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class State(IntEnum):
    """The numbers are those of the log; `title` is the name that clients see and ask for."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6  # being forgotten; its record is a tombstone, so it is never stored
    PREPARE_EPOCH_FENCE = 7  # known to Kafka's clients as a name only

    @property
    def title(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


# State -> the states it may come from. With version 2 of the protocol a producer may abort what it never
# began, to get a new epoch: that is how PREPARE_ABORT follows upon states without a transaction.
PREDECESSORS: Final = {
    State.EMPTY: frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.ONGOING: frozenset({State.ONGOING, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: frozenset({State.ONGOING, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
}

# The outcome is in the log and the markers are on their way; until they are written nothing else may happen.
PREPARED: Final = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
IDLE: Final = PREDECESSORS[State.DEAD]

BY_TITLE: Final = {state.title: state for state in State}
