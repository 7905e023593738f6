"""`python -m tools.interop [--client NAME]... [--feature NAME]...`: runs the matrix and shows it.

Without names it runs everything: the matrix, Kafka's command line tools, the data directory both ways and
the tests that kafka-python has of its own, and writes docs/interop.md.
"""

from __future__ import annotations

import argparse
import sys

from tools.interop import results as kept
from tools.interop.brokers import brokers
from tools.interop.clients import CLIENTS
from tools.interop.features import FEATURES
from tools.interop.matrix import run_row, terminal


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.interop", description=__doc__)
    parser.add_argument("--client", action="append", choices=list(CLIENTS), metavar="NAME", help="only these")
    parser.add_argument(
        "--feature", action="append", choices=list(FEATURES), metavar="NAME", help="only these"
    )
    parser.add_argument("--no-referee", action="store_true", help="Ottla alone, without Apache Kafka")
    parser.add_argument("--list", action="store_true", help="the names of clients and features")
    options = parser.parse_args(arguments)
    if options.list:
        print("clients: ", ", ".join(CLIENTS), "\nfeatures:", ", ".join(FEATURES))
        return 0
    return run_matrix(options)


def run_matrix(options: argparse.Namespace) -> int:
    found: kept.Results = {}
    with brokers(not options.no_referee) as both:
        if both.kafka is None:
            print(f"no referee: {both.why_not}")
        for name in options.client or CLIENTS:
            features = [FEATURES[feature] for feature in options.feature or FEATURES]
            row = run_row(CLIENTS[name], features, both, lambda line: print(line, flush=True))
            found[name] = kept.Row(row.version, row.language, row.date, dict(row.cells))
            remember(name, row)
    print("\n" + terminal(found))
    failed = [cell for row in found.values() for cell in row.cells.values() if cell.outcome == kept.FAILED]
    return 1 if failed else 0


def remember(name: str, row: kept.Row) -> None:
    """Cells that were not run this time keep what they were."""
    known = kept.load()
    if name in known and known[name].version == row.version:
        row.cells = known[name].cells | row.cells
    known[name] = row
    kept.save({client: known[client] for client in CLIENTS if client in known})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
