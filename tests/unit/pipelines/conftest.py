"""A schema registry for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.pipelines.registry_server import RegistryServer, registry_server


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server
