"""`python -m tests.chaos`: real nodes, real clients, and one kind of trouble after the other.

Each scenario has a cluster of its own. Producers of three libraries, transactions that move money, a consumer
group and a reader work while it goes on; at the end everything is healed, all logs are read to their end, and
the checkers look at the whole history and at the files of all replicas. `--referee` does the same to Apache
Kafka.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ottla.testing.cluster import TestCluster
from ottla.testing.history import Event, Kind, Recorder, check
from tests.chaos.links import Links
from tests.chaos.scenarios import SCENARIOS, Stage
from tests.chaos.watch import Watch
from tests.cluster.asking import committed
from tests.cluster.conftest import PROPERTIES
from tests.cluster.feeds import FEEDS, ConfluentFeed, Feed
from tests.cluster.money import Money, balance
from tests.cluster.replicas import check_replicas
from tests.interop.crew import Crew
from tests.interop.transactional import Reader, drain, seen

PARTITIONS = 3
DURABILITIES = ("durable", "kafka")


@dataclass
class Result:
    """One scenario, as it is told at the end."""

    scenario: str
    seed: int
    seconds: float = 0.0
    faults: int = 0
    acknowledged: int = 0
    refused: int = 0
    transactions: int = 0
    elections: int = 0
    longest_gap: float = 0.0
    recovery: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        return "ok" if not self.problems else f"{len(self.problems)} problems"


class Run:
    """One scenario on one cluster."""

    def __init__(self, name: str, options: argparse.Namespace, seed: int) -> None:
        self.name, self.options, self.seed = name, options, seed
        self.result = Result(name, seed)
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"  {time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def fault(self, text: str) -> None:
        self.result.faults += 1
        self.say(text)

    def go(self) -> Result:
        with ExitStack() as stack:
            links = stack.enter_context(Links())
            cluster = self.new_cluster(links)
            # Before the first connection is made, since the relay has to know whose each is.
            links.pids = lambda: {node.id: node.pid for node in cluster.nodes if node.is_running}
            stack.enter_context(cluster)
            self.say(f"a cluster of {len(cluster.nodes)} nodes at {cluster.bootstrap}")
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-chaos-")))
            try:
                self.work(cluster, links, home)
            except (AssertionError, TimeoutError, RuntimeError) as error:
                self.result.problems.append(f"{type(error).__name__}: {error}"[:2000])
            if self.result.problems and self.options.keep:
                self.keep(cluster)
        self.result.seconds = round(time.monotonic() - self.began, 1)
        return self.result

    def new_cluster(self, links: Links) -> TestCluster:
        properties = PROPERTIES | {"ottla.durability": self.options.durability}
        if not self.options.referee:
            return TestCluster(self.options.nodes, properties, route=links.route)
        from tools.kafka.cluster import KafkaCluster

        return KafkaCluster(self.options.nodes, properties, route=links.route)

    def work(self, cluster: TestCluster, links: Links, home: Path) -> None:
        topics = {
            name: cluster.topic(f"chaos-{name}", partitions=PARTITIONS, min_insync_replicas=2)
            for name in (*FEEDS, "money")
        }
        accounts = [f"{topics['money']}-{number}" for number in range(PARTITIONS)]
        watched = topics["confluent"]
        chance = random.Random(self.seed)
        settings = {"group.protocol": "consumer"} if chance.random() < 0.5 else {"session.timeout.ms": 10_000}
        with ExitStack() as stack:
            feeds: list[Feed] = [
                stack.enter_context(kind(cluster.bootstrap, topics[name], PARTITIONS, per_second=40))
                for name, kind in FEEDS.items()
            ]
            everything = [name for feed in feeds for name in feed.names()]
            reader = stack.enter_context(
                Reader(cluster.bootstrap, everything, committed=False, name="reader")
            )
            bank = stack.enter_context(Money(cluster.bootstrap, accounts, "bank", self.seed))
            crew = stack.enter_context(
                Crew(home, cluster.bootstrap, "crew", [watched], client="confluent", settings=settings)
            )
            for name in ("one", "two"):
                crew.member(name)
            watch = stack.enter_context(Watch(cluster, watched, PARTITIONS))
            for feed in feeds:
                feed.more(10)
            bank.more(1)
            stage = Stage(
                cluster, links, chance, self.fault, watched, PARTITIONS, crew.group, bank.transactional_id
            )
            self.trouble(stage)
            self.heal(cluster, links)
            for feed in feeds:
                feed.more(5)
            bank.more(1)
            self.recovered()
            for feed in feeds:
                feed.stop()
            self.read_to_the_end(feeds, reader, crew, cluster)
        self.judge(cluster, feeds, reader, bank, crew, watch, accounts)

    def trouble(self, stage: Stage) -> None:
        deadline = time.monotonic() + 60 * self.options.minutes
        scenario = SCENARIOS[self.name](stage)
        for pause in scenario:
            time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
            if time.monotonic() >= deadline:
                break

    def heal(self, cluster: TestCluster, links: Links) -> None:
        self.say("healing")
        self.healed = time.monotonic()
        links.heal()
        for node in cluster.nodes:
            if node.is_paused:
                node.resume()
        cluster.start()
        cluster.wait_until_stable()

    def recovered(self) -> None:
        self.result.recovery = round(time.monotonic() - self.healed, 1)
        self.say(f"all is well after {self.result.recovery} s")

    def read_to_the_end(
        self, feeds: Sequence[Feed], reader: Reader, crew: Crew, cluster: TestCluster
    ) -> None:
        for feed in feeds:
            if not feed.failed:
                reader.sees(feed.values)
        first = next(feed for feed in feeds if isinstance(feed, ConfluentFeed))
        if not first.failed:
            crew.has_polled(first.values)
        committed(crew.recorder, cluster, crew.group, first.names())
        for member in crew.members:
            member.leave()

    def judge(
        self,
        cluster: TestCluster,
        feeds: Sequence[Feed],
        reader: Reader,
        bank: Money,
        crew: Crew,
        watch: Watch,
        accounts: list[str],
    ) -> None:
        result = self.result
        result.acknowledged = sum(feed.acknowledged for feed in feeds)
        result.refused = sum(len(feed.failed) for feed in feeds)
        result.longest_gap = round(max(feed.longest_gap for feed in feeds), 1)
        result.transactions, result.elections = bank.committed, watch.epochs
        everything = [name for feed in feeds for name in feed.names()]
        logs = drain(cluster.bootstrap, everything, committed=False, name="drain")
        money = drain(cluster.bootstrap, accounts, committed=True, name="drain-money")
        result.problems += watch.problems
        if rest := balance(seen(money)):
            result.problems.append(f"the accounts hold {rest}, not nothing")
        history = events(*(feed.recorder for feed in feeds), reader.recorder, bank.recorder, logs, money)
        history += crew.history()
        lost = set().union(*(feed.taken for feed in feeds)) - seen(logs)
        result.problems += [f"lost write: {value} was acknowledged" for value in sorted(lost)]
        result.problems += map(str, check(history, drained=True, allow=ALLOWED))
        check_replicas(cluster)

    def keep(self, cluster: TestCluster) -> None:
        kept = Path(tempfile.mkdtemp(prefix=f"ottla-chaos-{self.name}-"))
        cluster.keep(kept)
        self.say(f"logs and data are in {kept}")


# A member that was away longer than its session may read again what it had not committed.
ALLOWED: tuple[Kind, ...] = ()


def events(*recorders: Recorder) -> list[Event]:
    return [event for recorder in recorders for event in recorder.events]


def table(results: Sequence[Result]) -> str:
    head = (
        "scenario",
        "seed",
        "faults",
        "acked",
        "refused",
        "txns",
        "controllers",
        "gap s",
        "heal s",
        "verdict",
    )
    rows = [
        (
            each.scenario,
            each.seed,
            each.faults,
            each.acknowledged,
            each.refused,
            each.transactions,
            each.elections,
            each.longest_gap,
            each.recovery,
            each.verdict,
        )
        for each in results
    ]
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="of trouble in each scenario [1]")
    parser.add_argument("--seed", type=int, default=None, help="of chance; one is drawn if none is given")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this; may be repeated")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--durability", choices=DURABILITIES, default="durable")
    parser.add_argument("--referee", action="store_true", help="trouble Apache Kafka instead")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the results there too")
    parser.add_argument("--keep", action="store_true", help="keep logs and data where something was wrong")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # client libraries tell of every connection that they lose
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    results: list[Result] = []
    for name in options.scenario or SCENARIOS:
        print(f"{name} (--seed {seed}): {(SCENARIOS[name].__doc__ or '').strip()}", flush=True)
        results.append(Run(name, options, seed).go())
        for problem in results[-1].problems[:20]:
            print(f"  PROBLEM  {problem}", flush=True)
        print(f"  {results[-1].verdict} after {results[-1].seconds} s\n", flush=True)
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in results], indent=2) + "\n")
    return int(any(each.problems for each in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
