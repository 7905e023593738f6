"""Batches just under a megabyte from a client that costs nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from bench.brokers import cost_of
from bench.throughput import RECEIVE, SEND, bulk
from bench.wire import Connection, batch, create_topic, delete_topic, fetch_frame, produce_frame
from bench.workload import Family, Figure, Selection, Site, Workload

MEGABYTES = 600


def workloads() -> Iterator[Workload]:
    for size, selection in ((1_000, Selection.SMOKE), (100, Selection.DEFAULT)):
        measure = partial(large_batches, size=size)
        yield Workload(Family.LARGE, f"large batches of {size} B records", measure, selection)


def large_batches(site: Site, size: int) -> list[Figure]:
    """Two of them are on their way at a time."""
    subject = site.subject
    topic = f"large-{size}-{time.monotonic_ns()}"
    create_topic(subject.address, topic)
    records = 900_000 // (size + 10)
    data = batch(records, size)
    request = produce_frame(topic, data)
    rounds = site.work(MEGABYTES * 1_000_000 / len(data) / 2, at_least=4)
    with Connection(subject.address) as connection:

        def send(rounds: int) -> None:
            for _ in range(rounds):
                connection.pipeline(request * 2, 2)

        def receive(rounds: int) -> None:
            for number in range(rounds):
                # Offset 0 holds the record of create_topic().
                offsets = (1 + 2 * number * records, 1 + (2 * number + 1) * records)
                frames = [fetch_frame(topic, offset, partition_max_bytes=len(data)) for offset in offsets]
                connection.pipeline(b"".join(frames), 2)

        send(rounds // 4)
        inward = cost_of(subject, lambda: send(rounds))
        receive(rounds // 4)
        outward = cost_of(subject, lambda: receive(rounds))
    delete_topic(subject.address, topic)
    # What is around a small record is a tenth of what is sent.
    count = rounds * 2
    return [
        *bulk(f"produce 0.9 MB batches of {size} B records", inward, count, len(data), RECEIVE),
        *bulk(f"fetch 0.9 MB batches of {size} B records", outward, count, len(data), SEND),
    ]
