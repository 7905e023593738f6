"""`python -m bench [--full] [--kafka] [--json] [--only WORD] [--set NAME=VALUE]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from bench import connections, groups, requests, throughput, transactions
from bench.brokers import Subject, apache_kafka, ottla
from bench.report import Figure, as_json, print_table

Measure = Callable[[Subject, int], list[Figure]]


def start(subject: Subject, scale: int) -> list[Figure]:
    return [
        Figure("start to first answer", "ms", subject.boot_seconds * 1e3),
        Figure("memory, idle", "MB", subject.resident_megabytes()),
    ]


# Scale 1 is the short run. The bulk of a full run is large enough to leave the caches of small machines.
MEASURES: dict[str, Measure] = {
    "start": start,
    "connections": lambda subject, scale: connections.idle_connections(subject, 10_000),
    "produce-requests": lambda subject, scale: requests.produce_requests(subject, 100_000 * scale),
    "fetch-requests": lambda subject, scale: requests.fetch_requests(subject, 60_000 * scale),
    "single": lambda subject, scale: throughput.one_record_per_request(subject, 50_000 * scale),
    "acks": lambda subject, scale: requests.acknowledgement(subject, 1_000 * scale),
    "end-to-end": lambda subject, scale: requests.end_to_end(subject, 1_000 * scale),
    "bulk-100": lambda subject, scale: throughput.librdkafka(subject, 100, 200 * scale),
    "bulk-1000": lambda subject, scale: throughput.librdkafka(subject, 1000, 500 * scale),
    "large-100": lambda subject, scale: throughput.large_batches(subject, 100, 400 * scale),
    "large-1000": lambda subject, scale: throughput.large_batches(subject, 1000, 400 * scale),
    "commits": lambda subject, scale: groups.offset_commits(subject, 20_000 * scale),
    "heartbeats-classic": lambda subject, scale: groups.classic_heartbeats(subject, 1_000, 40_000 * scale),
    "heartbeats-consumer": lambda subject, scale: groups.consumer_heartbeats(subject, 1_000, 40_000 * scale),
    "joins-classic": lambda subject, scale: groups.joins(subject, 20, "classic"),
    "joins-consumer": lambda subject, scale: groups.joins(subject, 20, "consumer"),
    "transactions-librdkafka": lambda subject, scale: transactions.librdkafka(subject, 100 * scale),
    "transactions-1": lambda subject, scale: transactions.transactions(subject, 1, 400 * scale),
    "transactions-20": lambda subject, scale: transactions.transactions(subject, 20, 2_000 * scale),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="five times the work")
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka as well")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--only", action="append", metavar="WORD", help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="for Ottla's broker")
    options = parser.parse_args(arguments)
    chosen = [name for name in MEASURES if not options.only or any(word in name for word in options.only)]
    scale = 5 if options.full else 1

    brokers: list[AbstractContextManager[Subject]] = [ottla(options.set)]
    if options.kafka:
        brokers.append(apache_kafka())
    results = {}
    for broker in brokers:
        with broker as subject:
            figures: list[Figure] = []
            for name in chosen:
                print(f"{subject.name}: {name}", file=sys.stderr, flush=True)
                figures += MEASURES[name](subject, scale)
            results[subject.name] = figures
    if options.json:
        print(as_json(results))
    else:
        print_table(results)
        print(
            "librdkafka is bound by its own CPU here; 0.9 MB batches come from a client that costs nothing."
        )
        print(
            "With acks=all Ottla syncs to disk before it answers (ottla.durability=durable); Kafka does not."
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
