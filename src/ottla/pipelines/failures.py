"""What went wrong, in a line: the cause out of the pages that Spark and Py4J wrap around it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ottla.pipelines.checkpoints import Unfinished

_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*(?:Error|Exception|Warning|Exit)?): (.+)$")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w{5};?\s*")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
_STREAM_FAILED = re.compile(r"^\[STREAM_FAILED\] Query .*? terminated with exception: ")
_TASK_FAILED = re.compile(
    r"Job aborted due to stage failure: .*?Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): ", re.DOTALL
)
_CALL_FAILED = re.compile(r"^(?:Py4JJavaError: )?An error occurred while calling \S+\.\n: ")
_MAX_CHARACTERS = 600


@dataclass(frozen=True)
class Failure:
    """A flow that failed: in which batch, over which offsets, and why."""

    flow: str
    reason: str
    batch: int | None = None
    offsets: str = ""

    def __str__(self) -> str:
        batch = f" in batch {self.batch}" if self.batch is not None else ""
        offsets = f" ({self.offsets})" if self.offsets else ""
        return f"flow {self.flow} failed{batch}{offsets}: {self.reason}"

    def as_json(self) -> dict[str, object]:
        return {
            "event": "failed",
            "flow": self.flow,
            "batch": self.batch,
            "offsets": self.offsets,
            "reason": self.reason,
        }


def failure_of(flow: str, error: BaseException | str, unfinished: Unfinished | None = None) -> Failure:
    reason = cause(str(error)) or type(error).__name__
    if unfinished is None:
        return Failure(flow, reason)
    return Failure(flow, reason, unfinished.batch_id, unfinished.describe())


def cause(text: str) -> str:
    """The line of an error that says what is wrong.

    If Python raised it, that is the last line of its traceback; else what Spark says first, without its
    frame.
    """
    text = text.partition("\n=== Streaming Query ===")[0].partition("\nDriver stacktrace:")[0]
    text = _CALL_FAILED.sub("", text)
    text = _STREAM_FAILED.sub("", text)
    text = _TASK_FAILED.sub("", text)
    python = _raised_by_python(text)
    if python is not None:
        return _short(python)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("at ")]
    first = lines[0] if lines else ""
    # A Java exception starts with its class; the text is what follows.
    first = re.sub(r"^(?:[a-z]\w*\.)+[A-Z]\w*: ", "", first)
    return _short(first)


def _raised_by_python(text: str) -> str | None:
    """The last line of the last traceback: `ValueError: boom`, and what belongs to it."""
    _, separator, traceback = text.rpartition("Traceback (most recent call last):")
    if not separator:
        return None
    lines = traceback.splitlines()
    for index, line in enumerate(lines):
        if line and not line.startswith(" ") and _PYTHON_ERROR.match(line):
            found = _PYTHON_ERROR.match(line)
            assert found is not None
            said = [found[2]]
            for more in lines[index + 1 :]:
                if not more.strip() or more.startswith(("\tat ", "   at ", "SQLSTATE", " SQLSTATE")):
                    break
                said.append(more.strip())
            return f"{found[1]}: {' '.join(said)}"
    return None


def _short(text: str) -> str:
    text = " ".join(_CONDITION.sub("", _SQL_STATE.sub(" ", text)).split())
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 3] + "..."
