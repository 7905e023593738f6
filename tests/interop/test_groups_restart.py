"""Groups whose coordinator goes away and comes back, stopped or killed, while members go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.crew import Crew, fetch_offsets
from tests.interop.feed import Feed
from tests.interop.nodes import QUICK, Node, new_node
from tests.interop.topics import create_topic, eventually

PARTITIONS = 4
PATIENT = {"session.timeout.ms": 45_000}
CLIENTS = {
    "classic": {"client": "confluent", "settings": {"partition.assignment.strategy": "range", **PATIENT}},
    "consumer": {"client": "confluent", "settings": {"group.protocol": "consumer"}},
    "python": {"client": "kafka-python", "settings": {"assignor": "range", "session_timeout_ms": 45_000}},
}
GO_DOWN: list[Callable[[Node], object]] = [lambda node: node.stop(), lambda node: node.kill()]


@pytest.fixture
def patient_node(referee: bool) -> Iterator[Node]:
    """A broker that may be away for longer than a test of crashing members would have patience for."""
    node = new_node(referee, QUICK | {"group.consumer.session.timeout.ms": "45000"})
    try:
        node.start()
        yield node
    finally:
        node.kill()
        node.remove()


@pytest.mark.parametrize("go_down", GO_DOWN, ids=["stopped", "killed"])
def test_members_go_on_as_if_nothing_had_happened(
    patient_node: Node, tmp_path: Path, go_down: Callable[[Node], object]
) -> None:
    """Three groups at once, of both protocols and two clients. No offset is forgotten, and nobody rejoins."""
    bootstrap = patient_node.bootstrap
    create_topic(bootstrap, "followed", PARTITIONS)
    with ExitStack() as stack:
        crews = []
        for group, options in CLIENTS.items():
            home = tmp_path / group
            home.mkdir()
            crews.append(stack.enter_context(Crew(home, bootstrap, group, ["followed"], **options)))
        with Feed(bootstrap, "followed", PARTITIONS, per_second=100) as feed:
            for crew in crews:
                first, second = crew.member(f"{crew.group}-1"), crew.member(f"{crew.group}-2")
                crew.settles({first: 2, second: 2})
                crew.has_polled(feed.values[:])
            members = [member for crew in crews for member in crew.members]
            before = {member.name: member.count("assigned") for member in members}
            go_down(patient_node)
            patient_node.start()
            for crew in crews:
                fetch_offsets(crew.recorder, bootstrap, crew.group, feed.names())
            sent = len(feed.values)
            eventually(lambda: len(feed.values) > sent + 50)
            for crew in crews:
                crew.has_polled(feed.values[:])
            assert {member.name: member.count("assigned") for member in members} == before
        for crew in crews:
            crew.finishes(feed)
