"""Recovery: the broker is killed with a lot of data in the page cache, and started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench.throughput import payloads
from bench.wire import (
    Connection,
    batch_of,
    create_topic,
    fetch_error,
    fetch_frame,
    produce_error,
    produce_frame,
)
from bench.workload import Family, Figure, Selection, Site, Workload

PARTITIONS = 4
SIZE = 1_000


def workloads(dirty_megabytes: int) -> Iterator[Workload]:
    yield Workload(
        Family.RECOVERY,
        "recovery",
        recovery(dirty_megabytes),
        Selection.SMOKE,
        alone=True,
        rounds=3,
    )


def recovery(dirty_megabytes: int) -> Callable[[Site], list[Figure]]:
    def measure(site: Site) -> list[Figure]:
        """Batches of 100 KB in four partitions, acks=1, as fast as they are taken."""
        records = batch_of(payloads(SIZE, 100))
        batches = site.sized(dirty_megabytes * 1e6 / len(records) / PARTITIONS)
        with site.fresh() as server:
            server.start()
            create_topic(server.subject.address, "dirty", PARTITIONS)
            with Connection(server.subject.address) as connection:
                frames = [produce_frame("dirty", records, partition=number) for number in range(PARTITIONS)]
                for _ in range(batches):
                    connection.pipeline(b"".join(frames), PARTITIONS)
            server.kill()
            began = time.monotonic()
            first_answer = server.start()
            with Connection(server.subject.address) as connection:
                for number in range(PARTITIONS):
                    wait_for(connection, number, 100 * batches)
            everything = time.monotonic() - began
            cpu = server.subject.cpu_seconds()
        words = f"{round(batches * len(records) * PARTITIONS / 1e6):,} MB dirty"
        return [
            Figure(f"start after kill -9 with {words}, to first answer", "s", first_answer),
            Figure(f"start after kill -9 with {words}, to last record read", "s", everything),
            Figure(f"start after kill -9 with {words}: broker CPU", "s", cpu),
        ]

    return measure


def wait_for(connection: Connection, partition: int, offset: int) -> None:
    """Until the last record is there to read, and the next one is taken."""
    deadline = time.monotonic() + 120
    last = fetch_frame("dirty", offset, partition_max_bytes=1_000, partition=partition)
    more = produce_frame("dirty", batch_of([b"more"]), partition=partition)
    while fetch_error(connection.ask(last), "dirty") or produce_error(connection.ask(more), "dirty"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"record {offset} of partition {partition} has not come back")
        time.sleep(0.01)
