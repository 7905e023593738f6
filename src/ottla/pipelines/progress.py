"""The progress of flows, in numbers that people ask for: from what Spark reports after each batch.

Pure: Spark's report as parsed JSON in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ottla.pipelines.checkpoints import Offsets, merge_offsets

OBSERVATION = "ottla"
"""The name under which the runner counts the rows that go to a sink; Spark itself does not know for most."""


@dataclass(frozen=True)
class Batch:
    """One batch of a flow. `rows_out` is None where nobody counts, `lag` is by topic and after the batch."""

    flow: str
    batch: int
    timestamp: str
    rows_in: int
    rows_out: int | None
    duration_ms: int
    lag: Mapping[str, int]
    state_rows: int
    state_bytes: int
    watermark: str | None
    offsets: Offsets

    @property
    def rows_in_per_second(self) -> float:
        return self.rows_in * 1000 / max(1, self.duration_ms)

    @property
    def rows_out_per_second(self) -> float | None:
        return None if self.rows_out is None else self.rows_out * 1000 / max(1, self.duration_ms)

    def as_json(self) -> dict[str, Any]:
        rates = {
            "rows_in_per_second": round(self.rows_in_per_second, 1),
            "rows_out_per_second": _rounded(self.rows_out_per_second),
        }
        return {"event": "batch", **asdict(self), **rates}


def batch_of(flow: str, report: Mapping[str, Any]) -> Batch:
    """What Spark's report of a batch says."""
    states = report.get("stateOperators") or ()
    watermark = (report.get("eventTime") or {}).get("watermark")
    sources = report.get("sources") or ()
    ends: dict[str, dict[int, int]] = {}
    for source in sources:
        merge_offsets(ends, source.get("endOffset"))
    return Batch(
        flow=flow,
        batch=int(report["batchId"]),
        timestamp=str(report.get("timestamp", "")),
        rows_in=int(report.get("numInputRows") or 0),
        rows_out=_rows_out(report),
        duration_ms=int((report.get("durationMs") or {}).get("triggerExecution") or 0),
        lag=lag_of(sources),
        state_rows=sum(int(each.get("numRowsTotal") or 0) for each in states),
        state_bytes=sum(int(each.get("memoryUsedBytes") or 0) for each in states),
        # Before the first event Spark gives the epoch, which is no watermark.
        watermark=None if watermark is None or watermark.startswith("1970-01-01T00:00:00") else watermark,
        offsets=ends,
    )


def _rows_out(report: Mapping[str, Any]) -> int | None:
    observed = (report.get("observedMetrics") or {}).get(OBSERVATION)
    if isinstance(observed, Mapping) and "rows" in observed:
        return int(observed["rows"] or 0)
    reported = int((report.get("sink") or {}).get("numOutputRows", -1))
    return reported if reported >= 0 else None


def lag_of(sources: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many offsets each topic is ahead of what was read; of a topic that is read twice, the larger
    lag."""
    lag: dict[str, int] = {}
    for source in sources:
        latest: dict[str, dict[int, int]] = {}
        merge_offsets(latest, source.get("latestOffset"))
        ends: dict[str, dict[int, int]] = {}
        merge_offsets(ends, source.get("endOffset"))
        for topic, partitions in latest.items():
            behind = sum(
                max(0, newest - ends.get(topic, {}).get(partition, 0))
                for partition, newest in partitions.items()
            )
            lag[topic] = max(behind, lag.get(topic, 0))
    return lag


@dataclass
class FlowProgress:
    """A flow since it was started: its last batch and its sums."""

    flow: str
    sink: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int | None = None
    duration_ms: int = 0
    last: Batch | None = None
    state: str = "starting"
    _seen: int = field(default=-1, repr=False)

    def add(self, batch: Batch) -> bool:
        """Count a batch in; False if it was counted before, or was only a look at nothing new."""
        if batch.batch <= self._seen:
            return False
        self._seen = batch.batch
        self.batches += 1
        self.rows_in += batch.rows_in
        if batch.rows_out is not None:
            self.rows_out = (self.rows_out or 0) + batch.rows_out
        self.duration_ms += batch.duration_ms
        self.last = batch
        return True

    def as_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "sink": self.sink,
            "state": self.state,
            "batches": self.batches,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "duration_ms": self.duration_ms,
            "lag": dict(self.last.lag) if self.last else {},
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
