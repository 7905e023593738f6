"""Running a load and adding up what it took."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.cli.output import in_bytes, print_facts, print_json
from ottla.client import offsets
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.core.types import TopicPartition
from ottla.protocol.compression import NAMES

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
_SAMPLES: Final = 100_000
"""Latencies that are kept. Of a larger load every n-th record is timed."""


@dataclass(slots=True)
class Load:
    topic: str
    count: int
    size: int
    rate: float | None
    acks: str
    compression: str
    progress: bool

    @property
    def acks_code(self) -> int:
        return -1 if self.acks == "all" else int(self.acks)


@dataclass(slots=True)
class Measured:
    """What a load came to. Times are in seconds."""

    records: int
    bytes: int
    seconds: float
    latencies: dict[str, list[float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        seconds = max(self.seconds, 1e-9)
        found: dict[str, Any] = {
            "records": self.records,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 6),
            "records_per_second": round(self.records / seconds, 1),
            "bytes_per_second": round(self.bytes / seconds, 1),
        }
        for name, times in self.latencies.items():
            found[f"{name}_ms"] = {key: round(value * 1000, 3) for key, value in summary(times).items()}
        return found


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value that so many percent do not exceed, of values in order."""
    rank = -(-len(ordered) * percent // 100)  # the ceiling
    return ordered[max(0, min(len(ordered), int(rank)) - 1)]


def summary(times: Sequence[float]) -> dict[str, float]:
    """Average, percentiles and maximum; nothing of nothing."""
    if not times:
        return {}
    ordered = sorted(times)
    found = {"average": sum(ordered) / len(ordered)}
    found |= {f"p{percent:g}": percentile(ordered, percent) for percent in PERCENTILES}
    return found | {"max": ordered[-1]}


def report(measured: Measured, as_json: bool) -> None:
    if as_json:
        print_json(measured.as_dict())
        return
    seconds = max(measured.seconds, 1e-9)
    facts: list[tuple[str, object]] = [
        ("records", f"{measured.records:,} in {measured.seconds:.2f} s"),
        (
            "throughput",
            f"{measured.records / seconds:,.0f} records/s, {in_bytes(measured.bytes / seconds)}/s",
        ),
    ]
    for name, times in measured.latencies.items():
        told = ", ".join(f"{key} {value * 1000:.2f}" for key, value in summary(times).items())
        facts.append((name.replace("_", " "), f"{told} ms" if told else None))
    print_facts(facts)


async def measure_produce(cluster: Cluster, load: Load) -> Measured:
    """Latency is from handing over a record to its confirmation, so it includes waiting for its batch."""
    value, every = bytes(load.size), max(1, load.count // _SAMPLES)
    latencies: list[float] = []
    await cluster.topic(load.topic, create=True)
    with _progress("producing", load.count, load.progress) as advance:
        began = time.perf_counter()
        codec = NAMES.index(load.compression)
        async with Producer(cluster, acks=load.acks_code, codec=codec) as producer:
            for index in range(load.count):
                if load.rate is not None:
                    await asyncio.sleep(began + index / load.rate - time.perf_counter())
                delivery = await producer.send(load.topic, value)
                if index % every == 0:
                    delivery.when_done(_stopwatch(latencies))
                if index % 1000 == 999:
                    advance(1000)
                    await asyncio.sleep(0)
            await producer.flush()
        seconds = time.perf_counter() - began
    return Measured(load.count, load.count * load.size, seconds, {"latency": latencies})


async def measure_consume(cluster: Cluster, topic: str, count: int | None, progress: bool) -> Measured:
    partitions = [TopicPartition(topic, number) for number in (await cluster.topic(topic)).partitions]
    ends = await offsets.ends(cluster, partitions)
    starts = await offsets.beginnings(cluster, partitions)
    held = sum(ends[each] - starts[each] for each in partitions)
    records = size = 0
    fetches: list[float] = []
    consumer = Consumer(cluster)
    consumer.assign({each: at for each, at in starts.items() if at < ends[each]})
    with _progress("consuming", held if count is None else min(held, count), progress) as advance:
        began = time.perf_counter()
        while consumer.positions and (count is None or records < count):
            asked = time.perf_counter()
            fetched = await consumer.poll()
            if len(fetches) < _SAMPLES:
                fetches.append(time.perf_counter() - asked)
            for each in fetched:
                taken = each.records if count is None else each.records[: count - records]
                records += len(taken)
                size += sum(len(r.key or b"") + len(r.value or b"") for r in taken)
                advance(len(taken))
                if each.position >= ends[each.partition]:
                    consumer.drop(each.partition)
        seconds = time.perf_counter() - began
    return Measured(records, size, seconds, {"fetch": fetches})


async def measure_latency(cluster: Cluster, load: Load) -> Measured:
    """One record at a time: until it is confirmed, and until a waiting consumer has it."""
    confirmed: list[float] = []
    end_to_end: list[float] = []
    await cluster.topic(load.topic, create=True)
    partition = TopicPartition(load.topic, 0)
    consumer = Consumer(cluster)
    consumer.assign(await offsets.ends(cluster, [partition]))
    value = bytes(load.size)
    with _progress("measuring", load.count, load.progress) as advance:
        began = time.perf_counter()
        async with Producer(cluster, acks=load.acks_code) as producer, asyncio.TaskGroup() as tasks:
            for _ in range(load.count):
                # The consumer waits already when the record comes, as a consumer does that keeps up.
                received = tasks.create_task(_next_record(consumer))
                await asyncio.sleep(0)
                sent = time.perf_counter()
                delivery = await producer.send(load.topic, value, partition=0)
                delivery.when_done(_stopwatch(confirmed))
                await received
                end_to_end.append(time.perf_counter() - sent)
                await delivery.offset()
                advance(1)
        seconds = time.perf_counter() - began
    latencies = {"confirmed": confirmed, "end_to_end": end_to_end}
    return Measured(load.count, load.count * load.size, seconds, latencies)


async def _next_record(consumer: Consumer) -> None:
    while not any(each.records for each in await consumer.poll(wait_ms=5000)):
        pass


def _stopwatch(times: list[float]) -> Callable[[], None]:
    began = time.perf_counter()
    return lambda: times.append(time.perf_counter() - began)


@contextmanager
def _progress(label: str, total: int, show: bool) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, where somebody sees it."""
    if not show or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)
