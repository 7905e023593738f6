"""One broker for the session, and names that no other test uses."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.nodes import QUICK, Node, new_node
from tests.interop.topics import Names, NewTopic, create_topic
from tests.interop.wire import Wire


@pytest.fixture(scope="session")
def referee(request: pytest.FixtureRequest) -> bool:
    """Whether Apache Kafka stands in for Ottla."""
    return bool(request.config.getoption("--referee"))


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, referee: bool) -> Iterator[str]:
    """Address of a broker that all tests of this session share."""
    given = request.config.getoption("--bootstrap") or os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if given:
        yield str(given)
        return
    node = new_node(referee)
    try:
        node.start()
        yield node.bootstrap
        node.stop()
    finally:
        node.kill()
        node.remove()


@pytest.fixture
def node(referee: bool) -> Iterator[Node]:
    """A started broker that belongs to this test alone, to be stopped, killed and started again."""
    node = new_node(referee)
    try:
        node.start()
        yield node
    finally:
        node.kill()
        node.remove()


@pytest.fixture(scope="session")
def quick(referee: bool) -> Iterator[str]:
    """Address of a broker with short timeouts, shared by the tests of groups and transactions."""
    node = new_node(referee, QUICK)
    try:
        node.start()
        yield node.bootstrap
        node.stop()
    finally:
        node.kill()
        node.remove()


@pytest.fixture
def quick_node(referee: bool) -> Iterator[Node]:
    """A started broker with short timeouts that belongs to this test alone."""
    node = new_node(referee, QUICK)
    try:
        node.start()
        yield node
    finally:
        node.kill()
        node.remove()


@pytest.fixture
def unique() -> Names:
    """Names that no other test, worker or earlier run has used."""
    suffix, numbers = uuid.uuid4().hex[:8], itertools.count()
    return lambda stem: f"{stem}-{suffix}-{next(numbers)}"


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def new_topic(bootstrap: str, unique: Names) -> NewTopic:
    """Creates a topic of its own for the test: `new_topic(partitions=3, retention_ms=...)`."""

    def new_topic(stem: str = "topic", partitions: int = 1, **config: object) -> str:
        name = unique(stem)
        create_topic(bootstrap, name, partitions, config)
        return name

    return new_topic


@pytest.fixture
def topic(new_topic: NewTopic) -> str:
    """A topic with one partition and the broker's defaults."""
    return new_topic()


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    """A connection on which frames are sent as the test says."""
    with Wire(bootstrap) as wire:
        yield wire
