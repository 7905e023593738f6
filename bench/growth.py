"""Growth: the same work, with ten and a hundred times as many partitions, connections or bytes around it.

The work is small requests to twenty partitions over ten connections. What should not matter is how much else
there is; how much it does is the last figure of each.
"""

from __future__ import annotations

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
DEPTH = 10
REQUESTS = 5_000
# A JVM is warm after tens of thousands; before that the first size would pay for what the others have.
WARM_REQUESTS = 40_000
MOST_REPEATS = 12


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
    with site.fresh() as server:
        server.start()
        subject = server.subject
        create_topic(subject.address, "work", PARTITIONS)
        warm(subject, site)
        costs = []
        have = PARTITIONS
        for step in STEPS:
            want = site.sized(PARTITIONS * step, at_least=PARTITIONS)
            while have < want:
                more = min(200, want - have)
                create_topic(subject.address, f"ballast-{have}", more)
                have += more
            costs.append((have, work_over_few(subject, site)))
    return grown("produce among {:,} partitions", costs)


def connections(site: Site) -> list[Figure]:
    """All of them are used in turn; the number of requests is the same."""
    costs = []
    with site.fresh() as server, ExitStack() as stack:
        server.start()
        subject = server.subject
        create_topic(subject.address, "work", PARTITIONS)
        warm(subject, site)
        opened: list[Connection] = []
        for step in STEPS:
            count = site.sized(CONNECTIONS * step, at_least=CONNECTIONS)
            while len(opened) < count:
                opened.append(stack.enter_context(Connection(subject.address)))
            produce_over(opened, 1)
            costs.append((len(opened), requests_cost(subject, opened, site)))
    return grown("produce over {:,} connections", costs)


def log_size(site: Site) -> list[Figure]:
    """Fetches of one batch anywhere in the log of one partition, and of the newest."""
    anywhere, newest = [], []
    records = batch_of(payloads(1_000, 16))
    with site.fresh() as server:
        server.start()
        subject = server.subject
        create_topic(subject.address, "log")
        request = produce_frame("log", records)
        have = 0
        with Connection(subject.address) as connection:
            for step in STEPS:
                megabytes = site.sized(LOG_MEGABYTES * step)
                while have * len(records) < megabytes * 1e6:
                    connection.pipeline(request * 10, 10)
                    have += 10
                end = 1 + 16 * have
                places = [1 + 16 * (number * 7919 % have) for number in range(1_000)]
                if step == 1:
                    turns = fetches(places)
                    for number in range(site.work(WARM_REQUESTS / DEPTH)):
                        connection.pipeline(turns[number % len(turns)], DEPTH)
                anywhere.append((megabytes, fetch_cost(subject, connection, places, site)))
                newest.append((megabytes, fetch_cost(subject, connection, [end - 16], site)))
    return [
        *grown("fetch 16 KB anywhere in {:,} MB", anywhere),
        *grown("fetch the newest 16 KB of {:,} MB", newest),
    ]


def fetch_cost(subject: Subject, connection: Connection, offsets: Sequence[int], site: Site) -> float:
    turns = fetches(offsets)
    return per_request(
        subject, lambda number: connection.pipeline(turns[number % len(turns)], DEPTH), site, 2_500
    )


def fetches(offsets: Sequence[int]) -> list[bytes]:
    """Requests for one batch each, as many at a time as are sent together."""
    frames = [fetch_frame("log", offset, partition_max_bytes=1_000) for offset in offsets]
    frames *= -(-DEPTH // len(frames))
    return [b"".join(frames[start : start + DEPTH]) for start in range(0, len(frames), DEPTH)]


def warm(subject: Subject, site: Site) -> None:
    with ExitStack() as stack:
        few = [stack.enter_context(Connection(subject.address)) for _ in range(CONNECTIONS)]
        for _ in range(site.work(WARM_REQUESTS / CONNECTIONS)):
            produce_over(few, 1)


def work_over_few(subject: Subject, site: Site) -> float:
    with ExitStack() as stack:
        few = [stack.enter_context(Connection(subject.address)) for _ in range(CONNECTIONS)]
        return requests_cost(subject, few, site)


def requests_cost(subject: Subject, opened: list[Connection], site: Site) -> float:
    """Seconds of the broker's CPU per 100,000 requests; groups of ten connections take turns."""
    groups = [opened[start : start + CONNECTIONS] for start in range(0, len(opened), CONNECTIONS)]
    return per_request(subject, lambda number: produce_over(groups[number % len(groups)], 1), site, REQUESTS)


def produce_over(opened: list[Connection], count: int) -> None:
    """One request over each, to one partition after the other."""
    for number, connection in enumerate(opened):
        connection.socket.sendall(REQUEST_OF[number % PARTITIONS] * count)
    for connection in opened:
        for _ in range(count):
            connection.receive()


REQUEST_OF = [produce_frame("work", batch(1, 100), partition=number) for number in range(PARTITIONS)]


def per_request(subject: Subject, work: Callable[[int], object], site: Site, count: int) -> float:
    rounds = site.work(count / 10, at_least=10)

    def repeat(rounds: int) -> None:
        for number in range(rounds):
            work(number)

    least = float("inf")
    for _ in range(MOST_REPEATS):
        cost = cost_of(subject, lambda: repeat(rounds)).cpu_seconds / (rounds * 10) * 1e5
        # A JVM gets better for a while, which has nothing to do with size: until it no longer does.
        if cost > least * 0.95:
            return min(cost, least)
        least = cost
    return least


def grown(words: str, costs: list[tuple[int, float]]) -> list[Figure]:
    figures = [Figure(f"{words.format(size)}: broker CPU", "s/100k", cost) for size, cost in costs]
    (_, least), (size, most) = costs[0], costs[-1]
    # What gets cheaper has warmed up meanwhile: size did not matter.
    return [*figures, Figure(f"{words.format(size)}: growth from 1x to 100x", "x", max(most / least, 1.0))]
