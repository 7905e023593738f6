"""Clusters to try commands on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.metadata.cluster import Cluster


@pytest.fixture
def make_cluster() -> Callable[..., Cluster]:
    return Cluster


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers that serve, with eligible leader replicas tracked."""
    made = Cluster()
    made.start(1, 2, 3)
    return made
