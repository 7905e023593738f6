"""End-to-end latency under a steady rate: from the moment a record is due to the moment a consumer has it.

The producer is a process of its own (`python -m bench.latency BOOTSTRAP TOPIC RATE SECONDS ACKS`) that keeps
to its timetable: a record that is late counts from when it was due, so a broker that stalls cannot hide it.
All processes read the same monotonic clock of one machine.

The rate is low, or half of the peak: of what the slower broker takes in the same arrangement without a
timetable. So both do the same work.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.percentiles import percentiles
from bench.wire import create_topic, delete_topic
from bench.workload import Family, Figure, Selection, Site, Workload

SIZE = 1_000
TICK_SECONDS = 0.001
LOW_RATE = 500
DUE = struct.Struct(">q")
END = b"end"


def workloads() -> Iterator[Workload]:
    for acks in ("1", "all"):
        yield Workload(
            Family.LATENCY,
            f"latency end to end at a low rate, acks={acks}",
            partial(paced, acks=acks, rate=LOW_RATE, words=f"at {LOW_RATE}/s", seconds=5.0),
            Selection.SMOKE if acks == "all" else Selection.DEFAULT,
            synced=acks == "all",
        )
    yield Workload(
        Family.LATENCY,
        "latency end to end at half of the peak, acks=1",
        lambda site: paced(site, "1", site.prepared, "at half of the peak", 4.0),
        Selection.QUICK,
        prepare=half_of_peak,
    )


def half_of_peak(sites: Sequence[Site]) -> int:
    return round(min(peak(site) for site in sites) / 2)


def peak(site: Site) -> float:
    """Records per second without a timetable; the better of two, since the first one warms up."""
    seconds = max(0.5, 3 * site.effort)
    return max(
        len(arrivals) / (arrivals[-1][1] - arrivals[0][1]) * 1e9
        for arrivals in (observe(site, "1", 0, seconds) for _ in range(2))
    )


def paced(site: Site, acks: str, rate: int, words: str, seconds: float) -> list[Figure]:
    arrivals = observe(site, acks, rate, max(0.5, seconds * site.effort))
    times = [(now - due) / 1e9 for due, now in arrivals]
    # The first tenth meets empty caches and connections that have just been opened.
    return percentiles(f"end to end {words}, acks={acks}", times[len(times) // 10 :])


def observe(site: Site, acks: str, rate: int, seconds: float) -> list[tuple[int, int]]:
    """When each record was due, and when it was here."""
    subject = site.subject
    topic = f"latency-{time.monotonic_ns()}"
    create_topic(subject.address, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": subject.bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 1,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 1)])  # offset 0 holds the record of create_topic()
    consumer.poll(0.2)
    command = [sys.executable, "-m", "bench.latency", subject.bootstrap, topic, str(rate), str(seconds), acks]
    deadline = time.monotonic() + seconds + 60
    arrivals: list[tuple[int, int]] = []
    try:
        with subprocess.Popen(command) as producer:
            at_end = False
            while not at_end:
                if time.monotonic() > deadline or producer.poll() not in (None, 0):
                    producer.kill()
                    raise RuntimeError(f"{len(arrivals)} records came, but not the last one")
                # Not consume(), which waits for as many as were asked for.
                if (message := consumer.poll(0.1)) is None:
                    continue
                now = time.monotonic_ns()
                if message.error():
                    raise KafkaException(message.error())
                value = message.value() or b""
                if value == END:
                    at_end = True
                else:
                    arrivals.append((DUE.unpack_from(value)[0], now))
    finally:
        consumer.close()
    delete_topic(subject.address, topic)
    return arrivals


def main(bootstrap: str, topic: str, rate: str, seconds: str, acks: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "linger.ms": 0,
            "queue.buffering.max.messages": 100_000,
        }
    )
    producer.list_topics(topic, timeout=30)
    rest = bytes(SIZE - DUE.size)
    interval = round(1e9 / int(rate)) if int(rate) else 0
    began = time.monotonic_ns()
    ends = began + round(float(seconds) * 1e9)
    due = began
    while due < ends:
        now = time.monotonic_ns()
        while due <= now:
            try:
                producer.produce(topic, DUE.pack(due) + rest, partition=0)
            except BufferError:
                producer.poll(0.01)
                continue
            due = due + interval if interval else time.monotonic_ns()
        producer.poll(0)
        if (pause := min(TICK_SECONDS, (due - time.monotonic_ns()) / 1e9)) > 0:
            time.sleep(pause)
    producer.produce(topic, END, partition=0)
    producer.flush(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
