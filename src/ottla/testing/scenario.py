"""Transcripts: what is said to a machine, and what comes of it, as text that people review.

    # A comment belongs to what follows.
    commit a t-0=40
    ----
    a: error 22 ILLEGAL_GENERATION

A block is a line that is said, a line of dashes, and the lines that come of it; a blank line ends it. Played
with `rewrite`, the transcript is brought up to date, to be reviewed as a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Final, NamedTuple

DASHES: Final = "----"


class Block(NamedTuple):
    """What stands before it (comments, blank lines), what is said, and what is expected to come of it."""

    before: list[str]
    said: list[str]
    expected: list[str]
    line: int


def play(path: Path, run: Callable[[str], list[str]], *, rewrite: bool = False) -> None:
    """Say every line of a transcript to `run`, and compare what it answers. AssertionError shows a diff."""
    text = path.read_text()
    blocks, rest = parse(text)
    played: list[str] = []
    for block in blocks:
        came: list[str] = []
        for said in block.said:
            try:
                came += run(said)
            except Exception as error:
                raise AssertionError(f"{path.name}:{block.line}: {said}: {error!r}") from error
        played += [*block.before, *block.said, DASHES, *came]
    now = "\n".join([*played, *rest]).rstrip() + "\n"
    if rewrite:
        path.write_text(now)
    elif now != text.rstrip() + "\n":
        diff = unified_diff(text.splitlines(), now.splitlines(), f"{path.name} (expected)", "played", n=6)
        raise AssertionError("\n".join(["the transcript has changed; --rewrite brings it up to date", *diff]))


def parse(text: str) -> tuple[list[Block], list[str]]:
    """The blocks of a transcript, and what stands after the last."""
    blocks: list[Block] = []
    before: list[str] = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            before.append(line)
            continue
        said = [line, *_until(lines, DASHES)]
        expected = list(_until(lines, ""))
        blocks.append(Block(before, said, expected, number))
        before = [""]
    return blocks, before


def _until(lines: Iterator[tuple[int, str]], end: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == end:
            return
        yield line
