"""`python -m tools.interop [--client NAME]... [--feature NAME]... [--only PART]...`

Without names it runs every part: the matrix of clients and features, Kafka's command line tools, the data
directory under both brokers in turn, and the tests that kafka-python has of its own; then it writes
docs/interop.md. With names it runs those cells of the matrix and leaves the page alone.
"""

from __future__ import annotations

import argparse
import json
import sys

from tools.interop import command_line, suites
from tools.interop import results as kept
from tools.interop.brokers import brokers
from tools.interop.clients import CLIENTS
from tools.interop.features import FEATURES
from tools.interop.matrix import run_row, terminal
from tools.interop.page import write_page
from tools.interop.toolchains import HOME
from tools.kafka.distribution import KafkaUnavailable, jars, java, write_whole

PARTS = ("matrix", "tools", "directory", "suites")
DIRECTORY = HOME / "directory.json"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.interop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--client", action="append", choices=list(CLIENTS), metavar="NAME", help="only these")
    parser.add_argument(
        "--feature", action="append", choices=list(FEATURES), metavar="NAME", help="only these"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="only these parts")
    parser.add_argument("--no-referee", action="store_true", help="Ottla alone, without Apache Kafka")
    parser.add_argument(
        "--page", action="store_true", help="write docs/interop.md from what is known, run nothing"
    )
    parser.add_argument("--list", action="store_true", help="the names of clients and features")
    options = parser.parse_args(arguments)
    if options.list:
        print("clients: ", ", ".join(CLIENTS), "\nfeatures:", ", ".join(FEATURES))
        return 0
    failed = False
    if not options.page:
        some = options.client or options.feature
        parts = options.only or (("matrix",) if some else PARTS)
        run = {"matrix": matrix, "tools": tools, "directory": directory, "suites": own_tests}
        for part in parts:
            failed |= run[part](options)
        if some:
            return int(failed)
    write_page(in_order(kept.load()), suites.load(), known_directory(), command_line.load())
    return int(failed)


def say(line: str) -> None:
    print(line, flush=True)


def matrix(options: argparse.Namespace) -> bool:
    found: kept.Results = {}
    with brokers(not options.no_referee) as both:
        if both.kafka is None:
            say(f"no referee: {both.why_not}")
        for name in options.client or CLIENTS:
            features = [FEATURES[feature] for feature in options.feature or FEATURES]
            row = run_row(CLIENTS[name], features, both, say)
            found[name] = kept.Row(row.version, row.language, row.date, dict(row.cells))
            remember(name, row)
    say("\n" + terminal(found))
    return any(cell.outcome == kept.FAILED for row in found.values() for cell in row.cells.values())


def remember(name: str, row: kept.Row) -> None:
    """Cells that were not run this time keep what they were."""
    known = kept.load()
    if name in known and known[name].version == row.version:
        row.cells = known[name].cells | row.cells
    known[name] = row
    kept.save(in_order(known))


def in_order(known: kept.Results) -> kept.Results:
    return {client: known[client] for client in CLIENTS if client in known}


def tools(options: argparse.Namespace) -> bool:
    """Kafka's tools against Ottla; and against Apache Kafka, to prove what they are expected to print."""
    found = command_line.run_everything(not options.no_referee, say)
    if isinstance(found, str):
        say(f"Kafka's own tools: not run: {found}")
        return False
    command_line.save(found)
    return any(brokers["Ottla"] for brokers in found.values())


def available(title: str) -> bool:
    try:
        jars(), java()
    except KafkaUnavailable as error:
        say(f"{title}: not run: {error}")
        return False
    return True


def directory(options: argparse.Namespace) -> bool:
    from tools.kafka.exchange import every_exchange

    if not available("one data directory, two brokers"):
        return False
    steps: list[tuple[str, list[str]]] = []
    every_exchange(lambda title, problems: steps.append((title, problems)))
    write_whole(DIRECTORY, json.dumps(steps, indent=1) + "\n")
    return any(problems for _, problems in steps)


def known_directory() -> list[tuple[str, list[str]]] | None:
    if not DIRECTORY.exists():
        return None
    return [(title, problems) for title, problems in json.loads(DIRECTORY.read_text())]


def own_tests(options: argparse.Namespace) -> bool:
    suite = suites.run_suite(not options.no_referee)
    suites.save(suite)
    if suite.not_run:
        say(f"kafka-python's own tests: not run: {suite.not_run}")
    passed = list(suite.ottla.values()).count("passed")
    say(f"kafka-python's own tests: {passed} of {len(suite.ottla)} passed")
    problems = suites.failures(suite)
    for problem in problems:
        say(f"      {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
