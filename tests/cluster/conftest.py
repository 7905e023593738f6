"""One cluster of three nodes for all tests here; each test finds it whole and leaves it as it likes."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator

import pytest

from ottla.testing.cluster import TestCluster

# As in tests/interop: what Kafka waits for by the minute, a test wants to see within seconds.
PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # A test that moves leaders wants to do it itself.
    "auto.leader.rebalance.enable": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They share one cluster, and two cores would not bear two."""
    for item in items:
        if "tests/cluster/" in str(item.path).replace("\\", "/"):
            item.add_marker(pytest.mark.xdist_group("cluster"))
            item.add_marker(pytest.mark.timeout(240))
            # kafka-python forgets to close connections to nodes that are gone.
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def referee(request: pytest.FixtureRequest) -> bool:
    """Whether Apache Kafka stands in for Ottla."""
    return bool(request.config.getoption("--referee"))


def new_cluster(referee: bool, nodes: int = 3, properties: dict[str, str] | None = None) -> TestCluster:
    chosen = PROPERTIES | (properties or {})
    if not referee:
        return TestCluster(nodes, chosen)
    from tools.kafka.cluster import KafkaCluster

    return KafkaCluster(nodes, chosen)


@pytest.fixture(scope="session")
def shared(referee: bool) -> Iterator[TestCluster]:
    with new_cluster(referee) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: TestCluster) -> TestCluster:
    """The cluster with all nodes running and every replica in sync."""
    for node in shared.nodes:
        if node.is_paused:
            node.resume()
    # All that are missing at once: two of three need each other to start.
    shared.start()
    shared.wait_until_stable()
    return shared


@pytest.fixture(autouse=True)
def forgotten_sockets() -> Iterator[None]:
    """Those that a client has left open go here, not in somebody else's test."""
    yield
    _collect(1)


def pytest_unconfigure() -> None:
    for name in ("last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)  # a test that failed holds on to its clients
    _collect(3)


def _collect(times: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(times):
            gc.collect()
