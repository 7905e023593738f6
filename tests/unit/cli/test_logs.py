"""One line per event."""

from __future__ import annotations

import logging
import re
import sys

from ottla.cli.logs import LineFormatter


def record(message: str, *arguments: object, error: bool = False) -> logging.LogRecord:
    return logging.LogRecord(
        "ottla.broker", logging.INFO, __file__, 1, message, arguments, sys.exc_info() if error else None
    )


def test_a_line_has_time_level_logger_and_event() -> None:
    line = LineFormatter().format(record("listening address=%s", "127.0.0.1:9092"))

    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    ottla\.broker listening address=127\.0\.0\.1:9092",
        line,
    )


def test_what_a_client_sent_cannot_fake_a_line() -> None:
    line = LineFormatter().format(record("refused client=%s", "x\n2026-01-01 INFO fake\x1b[2J"))

    assert "\n" not in line
    assert "\x1b" not in line
    assert r"x\n2026-01-01 INFO fake\x1b[2J" in line


def test_a_traceback_is_indented_under_its_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        first, *rest = LineFormatter().format(record("handler failed", error=True)).splitlines()

    assert first.endswith("handler failed")
    assert rest[-1] == "    ValueError: broken"
    assert all(line.startswith("    ") for line in rest)
