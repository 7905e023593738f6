"""What is done to a cluster: one generator for each kind of trouble.

A scenario acts, says what it did, and yields for how many seconds it lets things go on. When its time is up
it is ended wherever it is; whoever runs it then heals everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ottla.testing.cluster import TestCluster, TestNode
from tests.chaos.links import Links
from tests.cluster.asking import GROUP, TRANSACTION, coordinator

# Longer than a session of `ottla.testing.cluster.QUICK`, so that the others notice.
BEYOND_SESSION = 5.0


@dataclass
class Stage:
    """What a scenario has to work with."""

    cluster: TestCluster
    links: Links
    chance: random.Random
    say: Callable[[str], None]
    topic: str
    partitions: int
    group: str
    transactional_id: str

    @property
    def ids(self) -> list[int]:
        return [node.id for node in self.cluster.nodes]

    def a_leader(self) -> TestNode:
        return self.cluster.leader(self.topic, self.chance.randrange(self.partitions))

    def a_while(self) -> float:
        return self.chance.uniform(1.0, 4.0)


Scenario = Callable[[Stage], Iterator[float]]


def kill(stage: Stage, node: TestNode, what: str) -> Iterator[float]:
    """Killed, away for a while, back, and time to catch up."""
    stage.say(f"kill -9 node {node.id}, {what}")
    node.kill()
    yield stage.a_while()
    stage.say(f"start node {node.id}")
    node.start()
    stage.cluster.wait_until_stable()
    yield 1.0


def kill_leader(stage: Stage) -> Iterator[float]:
    """The leader of a partition is killed, every few seconds."""
    while True:
        yield from kill(stage, stage.a_leader(), "a leader")


def kill_controller(stage: Stage) -> Iterator[float]:
    """The active controller is killed, every few seconds."""
    while True:
        yield from kill(stage, stage.cluster.controller, "the controller")


def kill_coordinators(stage: Stage) -> Iterator[float]:
    """The coordinators of the group and of the transactions are killed in turn."""
    while True:
        node = coordinator(stage.cluster, stage.transactional_id, TRANSACTION)
        yield from kill(stage, node, "coordinator of the transactions")
        node = coordinator(stage.cluster, stage.group, GROUP)
        yield from kill(stage, node, "coordinator of the group")


def kill_all(stage: Stage) -> Iterator[float]:
    """All nodes are killed at once and started again."""
    while True:
        stage.say("kill -9 all nodes")
        stage.cluster.kill()
        stage.cluster.start()
        stage.cluster.wait_until_stable()
        stage.say("all are back")
        yield 4.0


def rolling_restart(stage: Stage) -> Iterator[float]:
    """Every node is stopped and started in turn."""
    while True:
        for node in stage.cluster.nodes:
            stage.say(f"restart node {node.id}")
            node.stop()
            yield stage.chance.uniform(0.0, 1.0)
            node.start()
            stage.cluster.wait_until_stable()
            yield 1.0


def sleep(stage: Stage, node: TestNode, what: str) -> Iterator[float]:
    stage.say(f"pause node {node.id}, {what}")
    node.pause()
    yield BEYOND_SESSION + stage.a_while()
    stage.say(f"resume node {node.id}")
    node.resume()
    yield 2.0
    stage.cluster.wait_until_stable()


def pause_leader(stage: Stage) -> Iterator[float]:
    """A leader sleeps longer than its session and wakes up believing that it leads."""
    while True:
        yield from sleep(stage, stage.a_leader(), "a leader")


def pause_controller(stage: Stage) -> Iterator[float]:
    """The active controller sleeps longer than its quorum waits for it."""
    while True:
        yield from sleep(stage, stage.cluster.controller, "the controller")


def cut_off(stage: Stage, act: Callable[[], None], what: str) -> Iterator[float]:
    stage.say(what)
    act()
    yield BEYOND_SESSION + stage.a_while()
    stage.say("links are whole")
    stage.links.heal()
    yield 1.0
    stage.cluster.wait_until_stable()
    yield 1.0


def isolate_leader(stage: Stage) -> Iterator[float]:
    """A leader hears nobody and nobody hears it; clients reach it all the same."""
    while True:
        node = stage.a_leader()
        yield from cut_off(
            stage, lambda id=node.id: stage.links.isolate(id, stage.ids), f"isolate node {node.id}, a leader"
        )


def isolate_controller(stage: Stage) -> Iterator[float]:
    """The active controller is alone."""
    while True:
        node = stage.cluster.controller
        yield from cut_off(
            stage,
            lambda id=node.id: stage.links.isolate(id, stage.ids),
            f"isolate node {node.id}, the controller",
        )


def one_way(stage: Stage) -> Iterator[float]:
    """One node hears the others but cannot speak to them, or the other way round."""
    while True:
        node, speaks = stage.chance.choice(stage.ids), stage.chance.random() < 0.5

        def act(node: int = node, speaks: bool = speaks) -> None:
            for other in stage.ids:
                if other != node:
                    stage.links.cut(*((other, node) if speaks else (node, other)))

        yield from cut_off(stage, act, f"node {node} is {'deaf' if speaks else 'mute'}")


def bridge(stage: Stage) -> Iterator[float]:
    """Two nodes do not hear each other, and both hear the third."""
    while True:
        one, other = stage.chance.sample(stage.ids, 2)
        yield from cut_off(
            stage,
            lambda one=one, other=other: stage.links.part(one, other),
            f"nodes {one} and {other} do not hear each other",
        )


def flapping(stage: Stage) -> Iterator[float]:
    """Links come and go faster than anybody notices."""
    while True:
        for _ in range(5):
            one, other = stage.chance.sample(stage.ids, 2)
            stage.say(f"nodes {one} and {other} do not hear each other for a moment")
            stage.links.part(one, other)
            yield stage.chance.uniform(0.2, 2.0)
            stage.links.heal()
            yield stage.chance.uniform(0.2, 1.0)
        stage.cluster.wait_until_stable()


def slow_links(stage: Stage) -> Iterator[float]:
    """Everything takes longer, each way its own time."""
    while True:
        for one in stage.ids:
            for other in stage.ids:
                if one != other:
                    stage.links.slow(one, other, stage.chance.uniform(0.0, 0.15))
        stage.say("all links are slow")
        yield 8.0
        stage.links.heal()
        yield 1.0


def everything(stage: Stage) -> Iterator[float]:
    """Any of these, drawn anew each time."""
    while True:
        choice = stage.chance.randrange(7)
        if choice == 0:
            yield from kill(stage, stage.a_leader(), "a leader")
        elif choice == 1:
            yield from kill(stage, stage.cluster.controller, "the controller")
        elif choice == 2:
            yield from sleep(stage, stage.a_leader(), "a leader")
        elif choice == 3:
            node = stage.chance.choice(stage.ids)
            yield from cut_off(
                stage, lambda id=node: stage.links.isolate(id, stage.ids), f"isolate node {node}"
            )
        elif choice == 4:
            one, other = stage.chance.sample(stage.ids, 2)
            yield from cut_off(
                stage,
                lambda one=one, other=other: stage.links.cut(one, other),
                f"node {other} does not hear node {one}",
            )
        elif choice == 5:
            node = stage.cluster.node(stage.chance.choice(stage.ids))
            stage.say(f"restart node {node.id}")
            node.restart()
            stage.cluster.wait_until_stable()
        else:
            stage.say("kill -9 all nodes")
            stage.cluster.restart(kill=True)
            stage.cluster.wait_until_stable()
        yield 1.0


SCENARIOS: dict[str, Scenario] = {
    "kill-leader": kill_leader,
    "kill-controller": kill_controller,
    "kill-coordinators": kill_coordinators,
    "kill-all": kill_all,
    "rolling-restart": rolling_restart,
    "pause-leader": pause_leader,
    "pause-controller": pause_controller,
    "isolate-leader": isolate_leader,
    "isolate-controller": isolate_controller,
    "one-way": one_way,
    "bridge": bridge,
    "flapping": flapping,
    "slow-links": slow_links,
    "everything": everything,
}
