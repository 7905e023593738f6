"""librdkafka's performance program: what it can do without Python around it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator

from bench.brokers import cost_of
from bench.throughput import RECEIVE, SEND
from bench.wire import create_topic, delete_topic
from bench.workload import Family, Figure, NotRun, Selection, Site, Workload
from tools.rdkafka_performance import ProgramUnavailable, program

SIZE = 1_000
PARTITIONS = 12


def workloads() -> Iterator[Workload]:
    yield Workload(Family.THROUGHPUT, "throughput of rdkafka_performance", throughput, Selection.DEFAULT)


def throughput(site: Site) -> list[Figure]:
    try:
        path = program()
    except ProgramUnavailable as error:
        raise NotRun(str(error)) from error
    subject = site.subject
    topic = f"rdkafka-{time.monotonic_ns()}"
    create_topic(subject.address, topic, PARTITIONS)
    count = site.work(500_000, at_least=1_000)
    said: list[str] = []

    def run(*arguments: str) -> None:
        common = ("-b", subject.bootstrap, "-t", topic, "-q")
        done = subprocess.run(
            [path, *common, *arguments], capture_output=True, text=True, timeout=300, check=True
        )
        said.append(done.stdout)

    def produce() -> None:
        settings = ("linger.ms=5", "batch.size=1000000", "queue.buffering.max.messages=1000000")
        run("-P", "-s", str(SIZE), "-c", str(count), "-a", "1", *named("-X", settings))

    def consume() -> None:
        settings = ("fetch.message.max.bytes=4000000", "queued.min.messages=1000000")
        partitions = map(str, range(PARTITIONS))
        wanted = ("-o", "beginning", "-c", str(count))
        run("-C", *named("-p", partitions), *wanted, *named("-X", settings))

    produce()
    said.clear()
    inward, outward = cost_of(subject, produce), cost_of(subject, consume)
    delete_topic(subject.address, topic)
    name, gigabytes = "1 KB, 12 partitions, rdkafka_performance", count * SIZE / 1e9
    return [
        Figure(f"produce {name}", "MB/s", megabytes(said[0]), higher_is_better=True),
        Figure(f"produce {name}: broker CPU", "s/GB", inward.cpu_seconds / gigabytes, floor=RECEIVE),
        Figure(f"consume {name}", "MB/s", megabytes(said[1]), higher_is_better=True),
        Figure(f"consume {name}: broker CPU", "s/GB", outward.cpu_seconds / gigabytes, floor=SEND),
    ]


def named(option: str, values: Iterator[str] | tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def megabytes(said: str) -> float:
    found = re.findall(r"([\d.]+) MB/s", said)
    if not found:
        raise RuntimeError(f"rdkafka_performance says {said!r}")
    return float(found[-1])
