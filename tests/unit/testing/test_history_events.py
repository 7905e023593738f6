"""Histories as lines of JSON, and how they are read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.testing.history import Kind, Recorder, check, load
from ottla.testing.history.events import event
from tests.unit.testing.histories import Clients


def test_an_event_is_one_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        recorder = Recorder("p1", file, clock=iter(range(10)).__next__)
        recorder.send("t-0", "a").ok(offset=7)
        recorder.polled([("t-0", 7, "a")], committed=True)
    assert path.read_text().splitlines() == [
        '{"t":0,"proc":"p1","op":0,"f":"send","type":"invoke","partition":"t-0","value":"a","transaction":null}',
        '{"t":1,"proc":"p1","op":0,"f":"send","type":"ok","offset":7}',
        '{"t":2,"proc":"p1","op":1,"f":"poll","type":"ok","records":[["t-0",7,"a"]],"committed":true}',
    ]
    assert load(path) == recorder.events


def test_histories_of_several_processes_are_merged_by_time(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, times in zip(paths, ([0, 3, 4, 7], [1, 2, 5, 6]), strict=True):
        with path.open("w") as file:
            recorder = Recorder(path.stem, file, clock=iter(times).__next__)
            for number in range(2):
                recorder.send("t-0", f"{path.stem}{number}").ok(offset=number)
    assert [found.process for found in load(*paths)] == ["a", "b", "b", "a", "a", "b", "b", "a"]


def test_a_line_that_a_killed_process_did_not_finish_did_not_happen(tmp_path: Path) -> None:
    path = tmp_path / "killed.jsonl"
    with path.open("w") as file:
        recorder = Recorder("p1", file)
        recorder.send("t-0", "a").ok(offset=0)
        file.write('{"t":99,"proc":"p1","op":1,"f":"se')
    assert load(path) == recorder.events


def test_an_event_of_no_known_type_is_refused() -> None:
    with pytest.raises(ValueError, match="not 'maybe'"):
        event('{"t":0,"proc":"p","op":0,"f":"send","type":"maybe"}')


def test_an_operation_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no operation 'fly'"):
        check([event('{"t":0,"proc":"p","op":0,"f":"fly","type":"invoke"}')])
    with pytest.raises(ValueError, match="'send' ended without having begun"):
        check([event('{"t":0,"proc":"p","op":0,"f":"send","type":"ok","offset":1}')])


def test_what_a_client_may_do_is_left_out_of_the_answer() -> None:
    clients = Clients()
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "a")])
    assert [anomaly.kind for anomaly in check(clients.events())] == [Kind.DUPLICATE]
    assert check(clients.events(), allow={Kind.DUPLICATE}) == []


def test_an_anomaly_says_what_happened() -> None:
    clients = Clients()
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "a")])
    assert [str(anomaly) for anomaly in check(clients.events())] == ["duplicate: t-0 has 'a' at 0 and at 1"]
