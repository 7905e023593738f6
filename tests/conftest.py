"""What every test may use. The interop fixtures live in tests/interop."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis
import pytest

# Tests share a few modules with bench/ and tools/, which are not installed packages.
PROJECT = str(Path(__file__).resolve().parents[1])
if PROJECT not in sys.path:
    sys.path.insert(0, PROJECT)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interop")
    group.addoption(
        "--referee",
        action="store_true",
        help="run the interop tests against Apache Kafka, to prove that they ask for what Kafka does",
    )
    group.addoption(
        "--bootstrap", default=None, help="run the interop tests against this running broker (host:port)"
    )
    group.addoption("--heavy", action="store_true", help="run the tests that take long as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--heavy"):
        left_out = [item for item in items if item.get_closest_marker("heavy")]
        items[:] = [item for item in items if not item.get_closest_marker("heavy")]
        config.hook.pytest_deselected(items=left_out)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "heavy: takes long; runs with --heavy only")
    # No test is about time, and a busy machine must not fail one.
    hypothesis.settings.register_profile("patient", deadline=None)
    hypothesis.settings.load_profile("patient")
    # Warnings are errors, but not those that client libraries cause among themselves.
    config.addinivalue_line("filterwarnings", "ignore:(read_text|open_text) is deprecated:DeprecationWarning")
