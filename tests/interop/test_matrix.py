"""The runner of `make interop` on one client, so that it cannot rot, and how it shows what it found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.interop.brokers import Brokers, kafka_behind_a_wire, ottla_behind_a_wire
from tools.interop.cell import NotHere, run_cell
from tools.interop.clients import CLIENTS, unknown_features
from tools.interop.features import FEATURES
from tools.interop.matrix import run_row, terminal
from tools.interop.page import between, matrix
from tools.interop.results import FAILED, NOT_RUN, OK, Cell, Row, outcome
from tools.interop.suites import Suite, failures
from tools.interop.toolchains import SOURCES, NotAvailable
from tools.interop.wire import Wire
from tools.kafka.node import complaints


@pytest.fixture(scope="module")
def broker(referee: bool) -> Iterator[Wire]:
    with kafka_behind_a_wire() if referee else ottla_behind_a_wire() as wire:
        yield wire


SLICE = ("keys", "transactions", "group-consumer", "admin-offsets")


def test_one_client_passes_a_slice_of_the_matrix(broker: Wire) -> None:
    said: list[str] = []
    features = [FEATURES[name] for name in SLICE]
    row = run_row(CLIENTS["confluent-kafka"], features, Brokers(broker, None), said.append)
    assert {name: cell.outcome for name, cell in row.cells.items()} == dict.fromkeys(SLICE, OK), said
    assert not any(cell.refereed for cell in row.cells.values())


def program(folder: Path, text: str) -> list[str]:
    file = folder / "program.py"
    file.write_text(f"import json, sys\n{text}\n")
    return [sys.executable, str(file)]


def test_a_client_that_reports_something_else_fails(broker: Wire, tmp_path: Path) -> None:
    one = {"p": 0, "o": 0, "k": "key-0", "v": "value-1", "h": [], "t": 0}
    words = program(tmp_path, f"print(json.dumps({{'records': [{one!r}]}}))")
    problems, _ = run_cell(words, FEATURES["produce"], broker)
    assert any("records that were read" in problem for problem in problems)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sys.exit('no such luck')", "no such luck"),
        ("print('hello')", "no report"),
        ("print('{}')", "KeyError"),
    ],
)
def test_a_program_that_ends_badly_is_a_failed_cell(
    broker: Wire, tmp_path: Path, text: str, words: str
) -> None:
    problems, _ = run_cell(program(tmp_path, text), FEATURES["produce"], broker)
    assert len(problems) == 1 and words in problems[0]


def test_what_the_machine_lacks_is_not_run_and_never_passed(broker: Wire, tmp_path: Path) -> None:
    words = program(tmp_path, "print('no zstd here', file=sys.stderr); sys.exit(3)")
    with pytest.raises(NotHere, match="no zstd here"):
        run_cell(words, FEATURES["produce"], broker)

    def missing() -> list[str]:
        raise NotAvailable("no `cobol` on the PATH")

    client = CLIENTS["confluent-kafka"]._replace(command=missing)
    row = run_row(client, [FEATURES["produce"]], Brokers(broker, None), lambda _: None)
    assert row.cells == {"produce": Cell(NOT_RUN, reason="no `cobol` on the PATH")}
    assert "not run" in terminal({"it": row})


def test_the_referee_decides_whose_fault_it_is() -> None:
    assert outcome([], []) == OK
    assert outcome(["wrong"], []) == FAILED
    assert outcome(["wrong"], ["wrong"]) == "both"
    assert outcome([], ["wrong"]) == "only ottla"


def test_every_client_has_a_program_and_every_gap_a_feature() -> None:
    assert not unknown_features()
    assert {folder.name for folder in SOURCES.iterdir() if folder.is_dir()} >= {"kafka-clients", "franz-go"}


def test_the_page_is_rewritten_between_its_markers() -> None:
    row = Row("1.0", "Python", "2026-01-01", {"produce": Cell(FAILED, ["it | broke"])})
    table = matrix({"client": row})
    assert "| client | produce | ✗ | it \\| broke |" in table
    text = "head <!-- matrix: begin -->old<!-- matrix: end --> tail"
    assert between(text, "matrix", table) == (
        f"head <!-- matrix: begin -->\n\n{table}\n\n<!-- matrix: end --> tail"
    )


def test_a_log_that_kafka_repaired_is_a_complaint_and_a_busy_machine_is_none() -> None:
    busy = "[2026-01-01 00:00:00,000] ERROR Exceptionally slow controller event (EventPerformanceMonitor)"
    grown = (
        "[2026-01-01 00:00:00,000] ERROR Expected t-3 to exist, but it was missing. Creating it (TopicsDelta)"
    )
    repaired = "[2026-01-01 00:00:00,000] WARN Corrupted index found, recovering segment (UnifiedLog)"
    assert complaints("\n".join((busy, grown, repaired))) == [repaired]


def test_a_test_of_a_suite_that_ottla_did_not_get_to_counts_as_failed() -> None:
    suite = Suite(
        "1.0", {"first": "passed", "second": "it broke"}, dict.fromkeys(("first", "third"), "passed")
    )
    assert failures(suite) == ["third: was not run", "second: it broke"]
