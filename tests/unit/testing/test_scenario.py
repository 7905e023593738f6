"""The player of transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.testing.scenario import parse, play

TRANSCRIPT = """\
# What it is about.

say hello
----
hello

# Two lines may be said at once.
say a
say b
----
a
b

nothing
----
"""


def answer(line: str) -> list[str]:
    if line == "fail":
        raise ValueError("no such thing")
    return [line.removeprefix("say ")] if line.startswith("say ") else []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "talk.txt"
    made.write_text(TRANSCRIPT)
    return made


def test_a_transcript_that_holds_is_left_alone(path: Path) -> None:
    play(path, answer)
    play(path, answer, rewrite=True)
    assert path.read_text() == TRANSCRIPT


def test_another_answer_is_shown_as_a_difference(path: Path) -> None:
    path.write_text(TRANSCRIPT.replace("\nhello\n", "\ngoodbye\n"))
    with pytest.raises(AssertionError, match=r"(?s)-goodbye\n\+hello"):
        play(path, answer)


@pytest.mark.parametrize("changed", ["", "hello\nhello\n"])
def test_an_answer_too_few_or_too_many_is_a_difference(path: Path, changed: str) -> None:
    path.write_text(TRANSCRIPT.replace("----\nhello\n", f"----\n{changed}"))
    with pytest.raises(AssertionError):
        play(path, answer)


def test_rewriting_changes_the_answers_and_nothing_else(path: Path) -> None:
    path.write_text(TRANSCRIPT.replace("\nhello\n", "\n").replace("a\nb\n\nnothing", "b\n\nnothing"))
    play(path, answer, rewrite=True)
    assert path.read_text() == TRANSCRIPT


def test_what_fails_is_named_with_its_line(path: Path) -> None:
    path.write_text(TRANSCRIPT.replace("nothing", "fail"))
    with pytest.raises(AssertionError, match=r"talk\.txt:14: fail: ValueError"):
        play(path, answer)


def test_blocks_keep_what_stands_before_them() -> None:
    blocks, rest = parse(TRANSCRIPT)
    assert [block.said for block in blocks] == [["say hello"], ["say a", "say b"], ["nothing"]]
    assert [block.expected for block in blocks] == [["hello"], ["a", "b"], []]
    assert blocks[0].before == ["# What it is about.", ""]
    assert rest == [""]
