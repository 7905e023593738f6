"""Many seeds of the simulated partition: `python -m tests.simulation.replication --seeds 20000`.

A seed that fails is printed with what happened; run it alone with `--first SEED --seeds 1`. With `--mutants`
the simulation is made to find every mistake in `mutants.py` instead.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from multiprocessing import Pool

from tests.simulation.replication.cluster import run
from tests.simulation.replication.invariants import Violation
from tests.simulation.replication.mutants import MUTANTS


def attempt(seed: int) -> tuple[int, str]:
    try:
        return run(seed).events, ""
    except Violation as violation:
        return 0, str(violation)


def find(mutant: str, seeds: int, first: int) -> int | None:
    """The first seed that finds a mistake."""
    with MUTANTS[mutant]():
        for seed in range(first, first + seeds):
            if attempt(seed)[1]:
                return seed
    return None


def hunt(seeds: int, first: int, processes: int) -> int:
    with Pool(processes) as pool:
        found = pool.map(partial(find, seeds=seeds, first=first), MUTANTS, chunksize=1)
    for mutant, seed in zip(MUTANTS, found, strict=True):
        print(f"{'not found' if seed is None else f'seed {seed}':>10}  {mutant}")
    return 1 if None in found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replication", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", action="store_true", help="look for planted mistakes")
    options = parser.parse_args()
    if options.mutants:
        return hunt(options.seeds, options.first, options.processes)
    begun = time.monotonic()
    events = failures = 0
    with Pool(options.processes) as pool:
        seeds = range(options.first, options.first + options.seeds)
        for count, problem in pool.imap_unordered(attempt, seeds, chunksize=5):
            events += count
            if problem:
                failures += 1
                print(problem, flush=True)
    print(f"{options.seeds} seeds, {events} events, {failures} failed, {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
