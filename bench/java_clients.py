"""Kafka's own measuring tools, and with them its Java clients: ProducerPerformance and its kin."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from bench.brokers import cost_of
from bench.throughput import RECEIVE_SLOWLY, SEND
from bench.wire import create_topic, delete_topic
from bench.workload import Family, Figure, NotRun, Selection, Site, Workload
from tools.kafka.distribution import KafkaUnavailable, jars, java
from tools.kafka.run import run_tool

SIZE = 1_000
PARTITIONS = 12
MEBIBYTE = 1024 * 1024


def workloads() -> Iterator[Workload]:
    yield Workload(Family.THROUGHPUT, "throughput of Java's clients", throughput, Selection.DEFAULT)
    yield Workload(
        Family.LATENCY, "latency by EndToEndLatency", end_to_end_latency, Selection.DEFAULT, synced=True
    )


def perf(tool: str, *arguments: str) -> str:
    """What the tool prints. It gets what Kafka's script would give it, unlike a command that is soon done."""
    try:
        java()
        jars()
    except KafkaUnavailable as error:
        raise NotRun(str(error)) from error
    return run_tool(tool, *arguments, timeout=300, heap="512m", brief=False)


def throughput(site: Site) -> list[Figure]:
    """What the tools say of themselves: the start of a JVM is no part of it, but of the CPU time it is."""
    subject = site.subject
    topic = f"java-{time.monotonic_ns()}"
    create_topic(subject.address, topic, PARTITIONS)
    count = site.work(400_000, at_least=1_000)
    said: list[str] = []

    def produce() -> None:
        properties = (f"bootstrap.servers={subject.bootstrap}", "acks=1", "linger.ms=5", "batch.size=262144")
        arguments = ("--num-records", str(count), "--record-size", str(SIZE), "--throughput", "-1")
        said.append(perf("producer-perf", "--topic", topic, *arguments, "--command-property", *properties))

    def consume() -> None:
        arguments = ("--num-records", str(count), "--group", topic)
        said.append(
            perf("consumer-perf", "--bootstrap-server", subject.bootstrap, "--topic", topic, *arguments)
        )

    inward, outward = cost_of(subject, produce), cost_of(subject, consume)
    delete_topic(subject.address, topic)
    name, gigabytes = "1 KB, 12 partitions, Java client", count * SIZE / 1e9
    return [
        Figure(f"produce {name}", "MB/s", produced_megabytes(said[0]), higher_is_better=True),
        Figure(f"produce {name}: broker CPU", "s/GB", inward.cpu_seconds / gigabytes, floor=RECEIVE_SLOWLY),
        Figure(f"consume {name}", "MB/s", consumed_megabytes(said[1]), higher_is_better=True),
        Figure(f"consume {name}: broker CPU", "s/GB", outward.cpu_seconds / gigabytes, floor=SEND),
    ]


def produced_megabytes(said: str) -> float:
    """Of the summary, which is the last line."""
    found = re.findall(r"\(([\d.]+) MB/sec\)", said)
    return float(found[-1]) * MEBIBYTE / 1e6


def consumed_megabytes(said: str) -> float:
    """Without the time it took to join the group."""
    heads, values = [line.split(", ") for line in said.strip().splitlines() if ", " in line][-2:]
    return float(dict(zip(heads, values, strict=True))["fetch.MB.sec"]) * MEBIBYTE / 1e6


def end_to_end_latency(site: Site) -> list[Figure]:
    """One record after the other. The tool's percentiles are whole milliseconds, so its average is taken."""
    subject = site.subject
    topic = f"echo-{time.monotonic_ns()}"
    create_topic(subject.address, topic)
    arguments = ("--num-records", str(site.work(3_000)), "--producer-acks", "all", "--record-size", "100")
    said = perf("end-to-end-latency", "--bootstrap-server", subject.bootstrap, "--topic", topic, *arguments)
    delete_topic(subject.address, topic)
    average = re.search(r"Avg latency: ([\d.]+) ms", said)
    if average is None:
        raise RuntimeError(f"EndToEndLatency says {said!r}")
    return [
        Figure("end to end, acks=all, Java client, one at a time: average", "ms", float(average.group(1)))
    ]
