"""A slice of the simulated partition, for every run of the tests. `python -m tests.simulation.replication` is
the rest."""

from __future__ import annotations

import hashlib

import pytest

from tests.simulation.replication.cluster import run
from tests.simulation.replication.invariants import Violation
from tests.simulation.replication.mutants import MUTANTS

SEEDS = range(12)
# Seeds that once found a mistake: a leader with an epoch that it wrote nothing in; a leader that did not know
# that it had died; a follower that was taken in and left out in turn.
FOUND = (98, 155, 66)


@pytest.mark.parametrize("seed", [*SEEDS, *FOUND])
def test_nothing_acknowledged_is_lost_and_the_partition_comes_back(seed: int) -> None:
    run(seed)


def test_a_seed_is_the_same_run_every_time() -> None:
    first, second = (hashlib.sha256("\n".join(run(5).trace).encode()).digest() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("mutant", ["acknowledged before the followers have it", "a divergent tail is kept"])
def test_a_planted_mistake_is_found(mutant: str) -> None:
    with MUTANTS[mutant](), pytest.raises(Violation):
        for seed in range(40):
            run(seed)
