"""The pytest plugin: fixtures that give a test a broker of its own.

It is loaded into every test run of an environment that has Ottla installed, so it imports nothing until a
test asks for a broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import TestBroker
    from ottla.testing.cluster import TestCluster


@pytest.fixture(scope="session")
def ottla_properties() -> dict[str, str]:
    """Broker properties for the fixtures below; a project overrides this fixture to set its own."""
    return {}


@pytest.fixture
def ottla(ottla_properties: dict[str, str]) -> Iterator[TestBroker]:
    """A broker of this test's own: a free port, an empty directory, gone when the test is over."""
    from ottla.testing.broker import TestBroker

    with TestBroker(ottla_properties) as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_session(ottla_properties: dict[str, str]) -> Iterator[TestBroker]:
    """One broker for all tests of a run, or of an xdist worker: `topic()` and `unique()` keep them apart."""
    from ottla.testing.broker import TestBroker

    with TestBroker(ottla_properties) as broker:
        yield broker


@pytest.fixture
def ottla_cluster(ottla_properties: dict[str, str]) -> Iterator[TestCluster]:
    """Three nodes of this test's own, that keep copies for each other."""
    from ottla.testing.cluster import TestCluster

    with TestCluster(properties=ottla_properties) as cluster:
        yield cluster
