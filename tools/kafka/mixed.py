"""One cluster of Ottla and Apache Kafka: two nodes of ours and one of theirs vote, replicate and take over.

Nobody is asked to run such a cluster. It is the strictest referee there is: every message between nodes is
read by the other side, and what each of them wrote is compared byte by byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.testing import cluster_state
from ottla.testing.cluster import TestCluster, TestNode
from ottla.testing.history import check
from tests.cluster.asking import GROUP, TRANSACTION, coordinator
from tests.cluster.conftest import PROPERTIES
from tests.cluster.feeds import ConfluentFeed
from tests.cluster.money import Money, balance
from tests.cluster.replicas import check_replicas
from tests.interop.transactional import drain, seen
from tools.kafka.cluster import KafkaMember, MixedCluster
from tools.kafka.node import complaints

SECONDS = 90.0
PARTITIONS = 6


def run_mixed() -> bool:
    """Prints every step; true if all of them held."""
    with MixedCluster(3, PROPERTIES, kafka={3}) as cluster:
        print(f"nodes 1 and 2 are Ottla's, 3 is Apache Kafka's: {cluster.bootstrap}", flush=True)
        steps: list[tuple[str, Callable[[TestCluster], None]]] = [
            ("all three vote and know each other", know_each_other),
            ("each of them leads partitions, and all have the same bytes", replicate),
            ("Apache Kafka's controller leads, Ottla's follow", lambda it: controlled_by(it, {3})),
            ("Ottla's controller leads, Apache Kafka's follows", lambda it: controlled_by(it, {1, 2})),
            ("leaders of both kinds are killed, and nothing is lost", leaders_die),
            ("both kinds are restarted in turn", restart_in_turn),
            ("transactions and groups move between coordinators of both kinds", coordinators_die),
            ("Apache Kafka found nothing to complain about", no_complaints),
        ]
        held = [step(title, cluster, act) for title, act in steps]
    return all(held)


def step(title: str, cluster: TestCluster, act: Callable[[TestCluster], None]) -> bool:
    began = time.monotonic()
    problem = ""
    try:
        cluster.start()
        cluster.wait_until_stable(SECONDS)
        act(cluster)
    except (AssertionError, TimeoutError, RuntimeError) as error:
        problem = f"{type(error).__name__}: {error}"
    print(f"{'FAILED' if problem else 'ok':>6}  {title} ({time.monotonic() - began:.1f} s)", flush=True)
    for line in problem.splitlines()[:20]:
        print(f"        {line[:300]}", flush=True)
    return not problem


def know_each_other(cluster: TestCluster) -> None:
    for node in cluster.nodes:
        found = cluster_state.quorum(node.bootstrap)
        assert set(found.voters) == {1, 2, 3}, f"{node}: {found}"
        assert cluster_state.state(node.bootstrap).brokers == {1, 2, 3}


@contextmanager
def feeding(cluster: TestCluster) -> Iterator[ConfluentFeed]:
    topic = cluster.topic(cluster.unique("mixed"), partitions=PARTITIONS, min_insync_replicas=2)
    with ConfluentFeed(cluster.bootstrap, topic, PARTITIONS) as feed:
        feed.more(20)
        yield feed
    last = drain(cluster.bootstrap, feed.names(), committed=False)
    anomalies = check([*feed.recorder.events, *last.events], drained=True)
    assert not anomalies, "\n".join(map(str, anomalies[:10]))
    assert feed.taken <= seen(last), f"{len(feed.taken - seen(last))} acknowledged records are lost"
    assert not feed.failed, feed.failed[:5]
    cluster.wait_until_stable(SECONDS)
    check_replicas(cluster)


def replicate(cluster: TestCluster) -> None:
    with feeding(cluster) as feed:
        leaders = {cluster.state().partitions[name].leader for name in feed.names()}
        assert leaders == {1, 2, 3}, leaders
        feed.more(100)


def controlled_by(cluster: TestCluster, wanted: set[int]) -> None:
    """Others are killed until one of these is the active controller; then topics are made."""
    deadline = time.monotonic() + SECONDS
    while (leader := cluster.controller).id not in wanted:
        assert time.monotonic() < deadline, f"none of {wanted} is elected"
        leader.kill()
        cluster.wait_until_stable(SECONDS)
        leader.start()
        cluster.wait_until_stable(SECONDS)
    with feeding(cluster) as feed:
        feed.more(20)
        assert cluster.controller.id in wanted
    found = cluster.quorum()
    ends = cluster_ends(cluster)
    assert min(ends.values()) >= found.high_watermark - 1, f"{found}, but {ends}"


def cluster_ends(cluster: TestCluster) -> dict[int, int]:
    return cluster.quorum().voters


def leaders_die(cluster: TestCluster) -> None:
    with feeding(cluster) as feed:
        for wanted in (KafkaMember, TestNode):
            dead = next(node for node in cluster.nodes if type(node) is wanted)
            dead.kill()
            feed.more(40)
            dead.start()
            cluster.wait_until_stable(SECONDS)


def restart_in_turn(cluster: TestCluster) -> None:
    with feeding(cluster) as feed:
        for node in cluster.nodes:
            node.restart()
            cluster.wait_until_stable(SECONDS)
            feed.more(10)


def coordinators_die(cluster: TestCluster) -> None:
    topic = cluster.topic(cluster.unique("money"), partitions=3, min_insync_replicas=2)
    accounts = [f"{topic}-{number}" for number in range(3)]
    with Money(cluster.bootstrap, accounts, cluster.unique("bank")) as bank:
        bank.more(5)
        for _ in range(2):
            dead = coordinator(cluster, bank.transactional_id, TRANSACTION)
            dead.kill()
            bank.more(5)
            dead.start()
            cluster.wait_until_stable(SECONDS)
        coordinator(cluster, "anybody", GROUP)
    last = drain(cluster.bootstrap, accounts, committed=True)
    assert balance(seen(last)) == 0
    bank.check(last)
    cluster.wait_until_stable(SECONDS)
    check_replicas(cluster)


# What Apache Kafka says to its own brokers as well, while a controller takes over on a busy machine.
HARMLESS = ("Disconnect", "NotControllerException", "processExpiredBrokerHeartbeat")


def no_complaints(cluster: TestCluster) -> None:
    for node in cluster.nodes:
        if isinstance(node, KafkaMember):
            found = [
                text for text in complaints(node.log_text) if not any(words in text for words in HARMLESS)
            ]
            assert not found, "\n".join(found[:10])
