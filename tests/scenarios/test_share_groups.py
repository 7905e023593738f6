"""Transcripts of share groups, their members, their records and their state: `share/*.txt`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.testing.share_scenario import ShareScenario

TRANSCRIPTS = sorted((Path(__file__).parent / "share").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_transcript_still_holds(
    path: Path, play_transcript: Callable[[Path, Callable[[str], list[str]]], None]
) -> None:
    play_transcript(path, ShareScenario().run)
