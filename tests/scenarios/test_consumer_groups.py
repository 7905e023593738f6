"""Transcripts of consumer groups (KIP-848): `consumer/*.txt`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.testing.consumer_scenario import ConsumerScenario

TRANSCRIPTS = sorted((Path(__file__).parent / "consumer").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_transcript_still_holds(
    path: Path, play_transcript: Callable[[Path, Callable[[str], list[str]]], None]
) -> None:
    play_transcript(path, ConsumerScenario().run)
