"""Nodes die and come back while clients write: nothing acknowledged is lost, doubled or moved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from ottla.testing import cluster_state
from ottla.testing.cluster import TestCluster
from ottla.testing.history import Recorder, check
from tests.cluster.feeds import FEEDS, Feed
from tests.cluster.replicas import check_replicas
from tests.interop.transactional import Reader, drain, seen

PARTITIONS = 3


@contextmanager
def feeding(cluster: TestCluster, per_second: float = 60) -> Iterator[list[Feed]]:
    """A producer of every library, each with a topic of its own. At the end all that was acknowledged is
    there once and in order, and all replicas have the same bytes."""
    topics = {name: cluster.topic(cluster.unique(name), partitions=PARTITIONS) for name in FEEDS}
    feeds: list[Feed] = []
    with ExitStack() as stack:
        for name, kind in FEEDS.items():
            feed = kind(cluster.bootstrap, topics[name], PARTITIONS, per_second=per_second)
            feeds.append(stack.enter_context(feed))
        everything = [name for feed in feeds for name in feed.names()]
        reader = stack.enter_context(Reader(cluster.bootstrap, everything, committed=False, name="reader"))
        for feed in feeds:
            feed.more(10)
        yield feeds
        for feed in feeds:
            feed.stop()
        reader.sees([value for feed in feeds for value in feed.values if not feed.failed])
    last = drain(cluster.bootstrap, everything, committed=False)
    sound([feed.recorder for feed in feeds] + [reader.recorder, last])
    lost = set().union(*(feed.taken for feed in feeds)) - seen(last)
    assert not lost, f"{len(lost)} acknowledged records are not there: {sorted(lost)[:5]}"
    check_replicas(cluster)


def sound(recorders: list[Recorder]) -> None:
    events = [event for recorder in recorders for event in recorder.events]
    anomalies = check(events, drained=True)
    assert not anomalies, "\n".join(map(str, anomalies[:10]))


def no_errors(feeds: list[Feed]) -> None:
    failed = {feed.recorder.process: feed.failed[:3] for feed in feeds if feed.failed}
    assert not failed, failed


def test_a_leader_is_killed_while_clients_write(cluster: TestCluster) -> None:
    with feeding(cluster) as feeds:
        dead = cluster.leader(feeds[0].topic, 0)
        dead.kill()
        assert cluster.leader(feeds[0].topic, 0) is not dead
        for feed in feeds:
            feed.more(30)
        dead.start()
        cluster.wait_until_stable()
        assert set(cluster.state().partitions[f"{feeds[0].topic}-0"].isr) == {1, 2, 3}
        for feed in feeds:
            feed.more(10)
    no_errors(feeds)


def test_nodes_are_restarted_one_after_the_other(cluster: TestCluster) -> None:
    with feeding(cluster) as feeds:
        for node in cluster.nodes:
            node.stop()
            for feed in feeds:
                feed.more(5)
            node.start()
            cluster.wait_until_stable()
    no_errors(feeds)


def test_all_nodes_are_killed_at_once(cluster: TestCluster) -> None:
    with feeding(cluster) as feeds:
        cluster.restart(kill=True)
        cluster.wait_until_stable()
        for feed in feeds:
            feed.more(20)


def test_the_active_controller_is_killed(cluster: TestCluster) -> None:
    before = cluster.quorum()
    dead = cluster.controller
    dead.kill()
    successor = cluster.controller
    assert successor is not dead
    cluster_state.eventually("there is a newer epoch", lambda: cluster.quorum().epoch > before.epoch, 30)
    cluster.wait_until_stable()
    topic = cluster.topic(partitions=2, replication_factor=2)
    assert dead.id not in cluster.state().partitions[f"{topic}-0"].isr
    dead.start()
    cluster.wait_until_stable()
    found = cluster.quorum()
    assert set(found.voters) == {1, 2, 3}
    assert found.high_watermark > before.high_watermark


@pytest.mark.heavy
def test_a_follower_catches_up_and_is_in_sync_again(cluster: TestCluster) -> None:
    with feeding(cluster) as feeds:
        topic = feeds[0].topic
        leader = cluster.leader(topic, 0)
        away = next(node for node in cluster.nodes if node is not leader)
        away.kill()
        cluster.wait_until_stable()
        assert away.id not in cluster.state().partitions[f"{topic}-0"].isr
        for feed in feeds:
            feed.more(30)
        away.start()
        cluster.wait_until_stable()
        assert set(cluster.state().partitions[f"{topic}-0"].isr) == {1, 2, 3}
    no_errors(feeds)


@pytest.mark.heavy
def test_a_leader_sleeps_longer_than_its_session_and_wakes(cluster: TestCluster) -> None:
    """It believes that it leads until somebody tells it otherwise; what it then takes must not count."""
    with feeding(cluster) as feeds:
        asleep = cluster.leader(feeds[0].topic, 0)
        asleep.pause()
        for feed in feeds:
            feed.more(20)
        asleep.resume()
        for feed in feeds:
            feed.more(20)
        cluster.wait_until_stable()


@pytest.mark.heavy
def test_leaders_are_killed_again_and_again(cluster: TestCluster) -> None:
    with feeding(cluster) as feeds:
        for _ in range(4):
            dead = cluster.leader(feeds[1].topic, 1)
            dead.kill()
            for feed in feeds:
                feed.more(10)
            dead.start()
            cluster.wait_until_stable()
