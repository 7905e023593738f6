"""Consume, transform, produce: every record counts once, whoever is killed meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.interop.crew import Crew, Member, fetch_offsets
from tests.interop.feed import Feed
from tests.interop.nodes import Node
from tests.interop.topics import create_topic, eventually
from tests.interop.transactional import Reader, drain, seen

PARTITIONS = 4
PROTOCOLS: dict[str, dict[str, Any]] = {
    "classic": {"partition.assignment.strategy": "range"},
    "consumer": {"group.protocol": "consumer"},
}


class Slot:
    """A worker that is started again, with the same transactional id, whenever it is killed."""

    def __init__(self, crew: Crew, name: str, settings: dict[str, Any]) -> None:
        self.crew, self.name, self.settings = crew, name, settings
        self.lives = 0
        self.member = self.start()

    def start(self) -> Member:
        self.lives += 1
        return self.crew.member(
            f"{self.name}{self.lives}",
            module="tests.interop.worker",
            output="results",
            transactional_id=self.name,
            settings=self.settings,
        )

    def kill(self) -> None:
        self.crew.kill(self.member)
        self.member = self.start()

    def commits(self, count: int) -> None:
        """Waits for so many more transactions of this worker."""
        already = self.member.count("end_transaction")
        eventually(lambda: self.member.count("end_transaction") >= already + count)


@pytest.mark.parametrize("settings", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_record_counts_once_whoever_is_killed(
    quick_node: Node, tmp_path: Path, settings: dict[str, Any]
) -> None:
    bootstrap = quick_node.bootstrap
    create_topic(bootstrap, "sources", PARTITIONS)
    create_topic(bootstrap, "results", 2)
    results = ["results-0", "results-1"]
    with (
        Crew(tmp_path, bootstrap, "workers", ["sources"]) as crew,
        Reader(bootstrap, results, committed=True, name="reader") as reader,
    ):
        with Feed(bootstrap, "sources", PARTITIONS) as feed:
            first, second = Slot(crew, "one", settings), Slot(crew, "two", settings)
            first.commits(3)
            second.commits(3)
            first.kill()
            second.commits(3)
            quick_node.kill()
            quick_node.start()
            first.commits(3)
            second.kill()
            first.kill()
            quick_node.kill()
            quick_node.start()
            second.commits(3)
        eventually(lambda: {source(value) for value in reader.values} == set(feed.values), 60)
        for slot in (first, second):
            slot.member.leave()
        found = fetch_offsets(crew.recorder, bootstrap, "workers", feed.names(), stable=True)
        assert sum(offset or 0 for offset in found.values()) == len(feed.values)
    last = drain(bootstrap, results, committed=True)
    counts = Counter(source(value) for value in seen(last))
    assert counts == Counter(feed.values)
    sources = drain(bootstrap, feed.names(), committed=True, name="sources")
    crew.check(feed.recorder, reader.recorder, last, sources)


def source(value: str) -> str:
    """What a result was made from."""
    return value.partition("#")[0]
