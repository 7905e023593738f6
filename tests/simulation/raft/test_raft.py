"""A slice of the simulation for every build; `make simulate` runs as much of it as you like."""

from __future__ import annotations

import pytest

from tests.simulation.raft.cluster import run
from tests.simulation.raft.mutants import BEGIN_AT, MUTANTS, found_after

SLICE = 40


@pytest.mark.parametrize("first", range(0, 80, SLICE))
def test_a_quorum_keeps_its_promises_and_comes_back(first: int) -> None:
    for seed in range(first, first + SLICE):
        run(seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_is_a_run(seed: int) -> None:
    one, other = run(seed), run(seed)
    assert (one.trace, one.events) == (other.trace, other.events)


def test_seeds_are_different_runs() -> None:
    assert len({run(seed).trace for seed in range(10)}) == 10


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_machine_is_found_out(mutant: str) -> None:
    assert found_after(mutant, 100, BEGIN_AT.get(mutant, 0)) is not None
