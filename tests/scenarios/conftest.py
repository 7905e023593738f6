"""`pytest tests/scenarios --rewrite` brings the transcripts up to date; review the diff."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.testing.scenario import play


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="bring the transcripts up to date")


@pytest.fixture
def play_transcript(request: pytest.FixtureRequest) -> Callable[[Path, Callable[[str], list[str]]], None]:
    rewrite = bool(request.config.getoption("--rewrite", default=False))
    return lambda path, run: play(path, run, rewrite=rewrite)
