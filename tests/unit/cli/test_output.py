"""Tables for people and for programs, and numbers in words."""

from __future__ import annotations

import pytest

from ottla.cli.measuring import Measured, percentile, report, summary
from ottla.cli.output import in_bytes, plural, print_facts, print_table
from ottla.cli.running import Refused, explain
from ottla.client.errors import NoAnswer, Unreachable
from ottla.protocol.errors import InvalidConfig, UnknownTopicOrPartition


@pytest.fixture(autouse=True)
def no_colour_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_elsewhere_than_on_a_terminal_columns_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["topic", "lag"], [["a", 7], ["longer", 1234], ["none", None]])

    assert capsys.readouterr().out == "TOPIC    LAG\na          7\nlonger  1234\nnone       -\n"


def test_colour_can_be_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table(["topic"], [["[red]a[/red]"]])
    print_facts([("topic", "a")])

    shown = capsys.readouterr().out
    assert "\x1b[" in shown
    assert "[red]a[/red]" in shown  # what a user named is no markup


def test_nothing_to_show_is_said_where_it_does_not_disturb(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["topic"], [], empty="there are no topics")

    assert capsys.readouterr() == ("", "there are no topics\n")


def test_facts_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts([("id", 1), ("longer", None)])

    assert capsys.readouterr().out == "id:     1\nlonger: -\n"


def test_numbers_in_words() -> None:
    assert [in_bytes(n) for n in (0, 1023, 1024, 5 * 2**20, 3 * 2**40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]
    assert (plural(1, "record"), plural(2000, "record")) == ("1 record", "2,000 records")


def test_percentiles_are_values_that_occurred() -> None:
    ordered = [float(n) for n in range(1, 101)]

    assert [percentile(ordered, p) for p in (0, 1, 50, 99, 99.9, 100)] == [1, 1, 50, 99, 100, 100]
    assert percentile([7.0], 50) == 7.0
    assert summary([]) == {}
    assert summary([3.0, 1.0]) == {
        "average": 2.0,
        "p50": 1.0,
        "p95": 3.0,
        "p99": 3.0,
        "p99.9": 3.0,
        "max": 3.0,
    }


def test_a_measurement_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    report(Measured(1000, 2048, 2.0, {"end_to_end": [0.001]}), as_json=False)

    shown = capsys.readouterr().out
    assert "1,000 in 2.00 s" in shown
    assert "500 records/s, 1.0 KiB/s" in shown
    assert "end to end: average 1.00, p50 1.00" in shown


def test_errors_are_one_line_with_what_to_do() -> None:
    nobody = Unreachable("cannot connect to localhost:9092: connection refused")

    assert explain(nobody, "localhost:9092") == (
        "cannot connect to localhost:9092: connection refused; "
        "start a broker with `ottla serve`, or name another with --bootstrap"
    )
    assert explain(nobody, "kafka:9092") == f"{nobody}; name another with --bootstrap"
    assert explain(UnknownTopicOrPartition("topic x: not here.")) == (
        "topic x: not here (UNKNOWN_TOPIC_OR_PARTITION); `ottla topic list` shows the topics there are, "
        "`ottla topic create` makes one"
    )
    assert explain(InvalidConfig("topic x: no")) == "topic x: no (INVALID_CONFIG)"
    assert explain(NoAnswer("nothing came")) == "nothing came"
    assert explain(ExceptionGroup("", [Refused("no")])) == "no"
    assert explain(FileNotFoundError(2, "No such file", "x.txt")) == "x.txt: No such file"
    assert explain(ZeroDivisionError()) is None
