"""Growth: the same work, with ten and a hundred times as many partitions, connections or bytes around it.

The work is small requests to twenty partitions over ten connections. What should not matter is how much else
there is; how much it does is the last figure of each. Every size has a broker of its own, and all of them run
and take turns: they have done the same when they are compared, so that a JVM which still gets warmer does not
seem to get cheaper with size.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from bench.brokers import Subject, cost_of
from bench.throughput import payloads
from bench.wire import Connection, batch, batch_of, create_topic, fetch_frame, produce_frame
from bench.workload import Family, Figure, Selection, Site, Workload

STEPS = (1, 10, 100)
PARTITIONS = 20
CONNECTIONS = 10
LOG_MEGABYTES = 10
# How many requests are under way at a time.
DEPTH = 10
# A JVM has compiled most of what it needs after tens of thousands.
WARM_REQUESTS = 40_000
TURNS = 12
REQUESTS_A_TURN = 2_500

Work = Callable[[int], object]


def workloads() -> Iterator[Workload]:
    for name, measure in (("partitions", partitions), ("connections", connections), ("log size", log_size)):
        yield Workload(
            Family.GROWTH,
            f"growth of {name}",
            measure,
            Selection.SMOKE if name == "connections" else Selection.DEFAULT,
            alone=True,
            rounds=3,
        )


def partitions(site: Site) -> list[Figure]:
    def around(subject: Subject, step: int) -> int:
        create_topic(subject.address, "work", PARTITIONS)
        have, want = PARTITIONS, site.sized(PARTITIONS * step, at_least=PARTITIONS)
        while have < want:
            more = min(200, want - have)
            create_topic(subject.address, f"ballast-{have}", more)
            have += more
        return have

    def work(subject: Subject, _: int, stack: ExitStack) -> Work:
        few = connect(subject, CONNECTIONS, stack)
        return lambda _: produce_over(few)

    return grown(site, around, {"produce among {:,} partitions": work})


def connections(site: Site) -> list[Figure]:
    """All of them are used in turn; the number of requests is the same."""

    def around(subject: Subject, step: int) -> int:
        create_topic(subject.address, "work", PARTITIONS)
        return site.sized(CONNECTIONS * step, at_least=CONNECTIONS)

    def work(subject: Subject, count: int, stack: ExitStack) -> Work:
        opened = connect(subject, count, stack)
        groups = [opened[start : start + CONNECTIONS] for start in range(0, count, CONNECTIONS)]
        return lambda number: produce_over(groups[number % len(groups)])

    return grown(site, around, {"produce over {:,} connections": work})


def log_size(site: Site) -> list[Figure]:
    """Fetches of one batch anywhere in the log of one partition, and of the newest."""
    records = batch_of(payloads(1_000, 16))

    def batches_of(megabytes: int) -> int:
        return 10 * -(-megabytes * 1_000_000 // (10 * len(records)))

    def around(subject: Subject, step: int) -> int:
        create_topic(subject.address, "log")
        megabytes = site.sized(LOG_MEGABYTES * step)
        request = produce_frame("log", records) * 10
        with Connection(subject.address) as connection:
            for _ in range(batches_of(megabytes) // 10):
                connection.pipeline(request, 10)
        return megabytes

    def fetch(subject: Subject, stack: ExitStack, numbers: Sequence[int]) -> Work:
        connection = stack.enter_context(Connection(subject.address))
        turns = fetches([1 + 16 * number for number in numbers])
        return lambda number: connection.pipeline(turns[number % len(turns)], DEPTH)

    def anywhere(subject: Subject, megabytes: int, stack: ExitStack) -> Work:
        have = batches_of(megabytes)
        return fetch(subject, stack, [number * 7919 % have for number in range(1_000)])

    def newest(subject: Subject, megabytes: int, stack: ExitStack) -> Work:
        return fetch(subject, stack, [batches_of(megabytes) - 1])

    return grown(
        site,
        around,
        {"fetch 16 KB anywhere in {:,} MB": anywhere, "fetch the newest 16 KB of {:,} MB": newest},
    )


def fetches(offsets: Sequence[int]) -> list[bytes]:
    """Requests for one batch each, as many at a time as are sent together."""
    frames = [fetch_frame("log", offset, partition_max_bytes=1_000) for offset in offsets]
    frames *= -(-DEPTH // len(frames))
    return [b"".join(frames[start : start + DEPTH]) for start in range(0, len(frames), DEPTH)]


def connect(subject: Subject, count: int, stack: ExitStack) -> list[Connection]:
    return [stack.enter_context(Connection(subject.address)) for _ in range(count)]


def produce_over(opened: list[Connection]) -> None:
    """One request over each, to one partition after the other."""
    for number, connection in enumerate(opened):
        connection.socket.sendall(REQUEST_OF[number % PARTITIONS])
    for connection in opened:
        connection.receive()


REQUEST_OF = [produce_frame("work", batch(1, 100), partition=number) for number in range(PARTITIONS)]


def grown(
    site: Site,
    around: Callable[[Subject, int], int],
    works: dict[str, Callable[[Subject, int, ExitStack], Work]],
) -> list[Figure]:
    """The figures of works that are named by the size `around` makes of a step, each of `DEPTH` requests."""
    figures = []
    with ExitStack() as stack:
        sized = []
        for step in STEPS:
            server = stack.enter_context(site.fresh())
            server.start()
            sized.append((server.subject, around(server.subject, step)))
        for words, make in works.items():
            costs = in_turns([(subject, make(subject, size, stack)) for subject, size in sized], site)
            for (_, size), cost in zip(sized, costs, strict=True):
                figures.append(Figure(f"{words.format(size)}: broker CPU", "s/100k", cost))
            name = f"{words.format(sized[-1][1])}: growth from 1x to 100x"
            figures.append(Figure(name, "x", costs[-1] / costs[0]))
    return figures


def in_turns(works: Sequence[tuple[Subject, Work]], site: Site) -> list[float]:
    """Seconds of each broker's CPU per 100,000 requests, the median of its turns."""
    rounds = site.work(REQUESTS_A_TURN / DEPTH, at_least=10)

    def turn(subject: Subject, work: Work) -> float:
        def repeat() -> None:
            for number in range(rounds):
                work(number)

        return cost_of(subject, repeat).cpu_seconds / (rounds * DEPTH) * 1e5

    for _ in range(max(1, WARM_REQUESTS // REQUESTS_A_TURN)):
        for subject, work in works:
            turn(subject, work)
    samples: list[list[float]] = [[] for _ in works]
    for _ in range(TURNS):
        for (subject, work), costs in zip(works, samples, strict=True):
            costs.append(turn(subject, work))
    return [statistics.median(costs) for costs in samples]
