from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.pipelines.progress import FlowProgress, batch_of, lag_of
from ottla.pipelines.reports import JsonReport, LineReport, LiveReport, live_table, summary_table

REPORT: dict[str, Any] = {
    "id": "61af9c0a-6dd2-482a-a015-b486ce4cc939",
    "name": "orders",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "batchId": 4,
    "numInputRows": 1000,
    "durationMs": {"addBatch": 254, "triggerExecution": 500},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 7, "memoryUsedBytes": 100},
        {"numRowsTotal": 3, "memoryUsedBytes": 1},
    ],
    "sources": [
        {
            "startOffset": {"orders": {"0": 0}},
            "endOffset": {"orders": {"0": 1000}},
            "latestOffset": {"orders": {"0": 1500, "1": 10}},
        }
    ],
    "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
    "observedMetrics": {"ottla": {"rows": 900}},
}


def test_a_report_of_spark_becomes_the_numbers_people_ask_for() -> None:
    batch = batch_of("orders", REPORT)
    assert (batch.batch, batch.rows_in, batch.rows_out, batch.duration_ms) == (4, 1000, 900, 500)
    assert (batch.rows_in_per_second, batch.rows_out_per_second) == (2000, 1800)
    assert batch.lag == {"orders": 510}
    assert (batch.state_rows, batch.state_bytes) == (10, 101)
    assert batch.watermark == "2026-01-01T00:00:00.000Z"
    assert batch.offsets == {"orders": {0: 1000}}
    json.dumps(batch.as_json())


def test_a_report_with_little_in_it_is_read_too() -> None:
    batch = batch_of("x", {"batchId": 0, "sources": [{"endOffset": {"offset": 3}, "latestOffset": None}]})
    assert (batch.rows_in, batch.rows_out, batch.rows_out_per_second, batch.lag) == (0, None, None, {})
    assert batch_of("x", {"batchId": 0, "sink": {"numOutputRows": 3}}).rows_out == 3
    assert (
        batch_of("x", {"batchId": 0, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}).watermark
        is None
    )


def test_a_topic_that_is_read_twice_has_the_larger_lag() -> None:
    def source(end: int) -> dict[str, Any]:
        return {"endOffset": {"orders": {"0": end}}, "latestOffset": {"orders": {"0": 10}}}

    assert lag_of([source(10), source(4)]) == {"orders": 6}


def test_a_batch_is_counted_once() -> None:
    flow = FlowProgress("orders", "console")
    assert flow.add(batch_of("orders", REPORT))
    assert not flow.add(batch_of("orders", REPORT))
    assert flow.add(batch_of("orders", {**REPORT, "batchId": 5}))
    assert (flow.batches, flow.rows_in, flow.rows_out) == (2, 2000, 1800)
    assert flow.as_json()["lag"] == {"orders": 510}


def test_lines_are_for_pipes_and_name_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    report, flow = LineReport(), FlowProgress("orders", "topic out")
    report.started([flow])
    batch = batch_of("orders", REPORT)
    flow.add(batch)
    report.batch(batch)
    report.batch(batch_of("orders", {"batchId": 5}))
    report.rows("orders", 4, ["a", "b"], [[1, None]])
    report.finished()
    said = capsys.readouterr().out
    assert "flow orders -> topic out\n" in said
    assert (
        "orders batch 4: 1,000 in, 900 out, 2,000 rows/s, 500 ms, orders 510 behind, 10 rows of state\n"
        in said
    )
    assert "batch 5" not in said
    rows, summary = said.splitlines()[2:5], said.splitlines()[5:]
    assert rows == ["orders batch 4", "a  b", "1  null"]
    assert summary == [
        "FLOW    TO         STATE     BATCHES  ROWS IN  ROWS OUT  ROWS/S  LAG",
        "orders  topic out  starting        1    1,000       900   2,000  510",
    ]


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    from ottla.pipelines.failures import Failure

    report, flow = JsonReport(), FlowProgress("orders", "topic out")
    report.started([flow])
    report.note("for people")
    report.batch(batch_of("orders", REPORT))
    report.rows("orders", 4, ["a"], [[1]])
    report.failed(Failure("orders", "boom", 5, "orders-0 1 to 2"))
    report.finished()
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [line["event"] for line in lines] == ["batch", "rows", "failed", "finished"]
    assert lines[0]["lag"] == {"orders": 510}
    assert lines[1]["rows"] == [{"a": 1}]
    assert lines[2]["offsets"] == "orders-0 1 to 2"
    assert lines[3]["flows"][0]["flow"] == "orders"
    assert said.err == "for people\n"


def test_tables_have_a_line_for_each_flow(capsys: pytest.CaptureFixture[str]) -> None:
    idle, busy = FlowProgress("idle", "console"), FlowProgress("busy", "topic out")
    busy.add(batch_of("busy", REPORT))
    assert live_table([idle, busy]).row_count == 2
    assert summary_table([idle, busy]).row_count == 2
    report = LiveReport()
    report.started([idle, busy])
    report.note("made a topic")
    report.batch(batch_of("busy", REPORT))
    report.finished()
    said = capsys.readouterr().out
    assert "made a topic" in said
    assert "busy" in said
