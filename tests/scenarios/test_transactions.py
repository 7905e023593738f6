"""Transcripts of the transaction coordinator: `transactions/*.txt`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.testing.transaction_scenario import TransactionScenario

TRANSCRIPTS = sorted((Path(__file__).parent / "transactions").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_transcript_still_holds(
    path: Path, play_transcript: Callable[[Path, Callable[[str], list[str]]], None]
) -> None:
    play_transcript(path, TransactionScenario().run)
