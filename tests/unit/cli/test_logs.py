"""One line per event."""

from __future__ import annotations

import logging
import re
import sys

import pytest
from typer.testing import CliRunner

from ottla.cli.logs import LineFormatter, configured
from ottla.cli.main import app


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


def test_a_command_that_is_over_logs_nowhere_and_nothing_is_lost_of_what_was_configured() -> None:
    root, of_asyncio = logging.getLogger(), logging.getLogger("asyncio")
    before = root.handlers[:], root.level, of_asyncio.level
    assert CliRunner().invoke(app, ["serve", "--set", "num.partition=1"]).exit_code == 2
    assert (root.handlers, root.level, of_asyncio.level) == before


def test_a_command_logs_to_stderr_from_its_level_up(capsys: pytest.CaptureFixture[str]) -> None:
    with configured("warning"):
        logging.getLogger("ottla.broker").info("quiet")
        logging.getLogger("ottla.broker").warning("loud")
        logging.getLogger("asyncio").info("quiet")
    said = capsys.readouterr().err
    assert said.endswith("WARNING ottla.broker loud\n")
    assert "quiet" not in said
