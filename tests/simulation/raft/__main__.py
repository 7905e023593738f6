"""Many seeds of the Raft simulation: `python -m tests.simulation.raft --seeds 20000`.

A seed that fails is printed with what happened; run it alone with `--first SEED --seeds 1`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from multiprocessing import Pool

from tests.simulation.raft.cluster import run
from tests.simulation.raft.invariants import Violation


def attempt(seed: int) -> tuple[int, int, str]:
    try:
        cluster = run(seed)
    except Violation as violation:
        return 0, 0, str(violation)
    return cluster.events, cluster.invariants.elections, ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.raft", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    begun = time.monotonic()
    events = elections = failures = 0
    seeds = range(options.first, options.first + options.seeds)
    with Pool(options.processes) as pool:
        for count, elected, problem in pool.imap_unordered(attempt, seeds, chunksize=20):
            events, elections = events + count, elections + elected
            if problem:
                failures += 1
                print(problem, flush=True)
    seconds = time.monotonic() - begun
    print(
        f"{options.seeds} seeds in {seconds:.0f} s ({60 * options.seeds / seconds:.0f} a minute), "
        f"{events} events, {elections} elections, {failures} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
