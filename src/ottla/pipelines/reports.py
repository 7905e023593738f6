"""Telling how a run goes: as a live table, as plain lines where nobody looks at a terminal, or as JSON.

Batches that flows print (`sinks.console`) go through here too. They come from other threads.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.core.plain_table import plain_table
from ottla.pipelines.failures import Failure
from ottla.pipelines.progress import Batch, FlowProgress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Cells = list[list[Any]]
WIDE: Final = 110
"""Columns of a terminal on which all of a table is shown; on a narrower one, what matters most, uncut."""


class Report(Protocol):
    """Where a run tells what happens."""

    def started(self, flows: Sequence[FlowProgress]) -> None: ...
    def note(self, text: str) -> None: ...
    def batch(self, batch: Batch) -> None: ...
    def refresh(self) -> None: ...
    def rows(self, flow: str, batch: int, columns: list[str], rows: Cells) -> None: ...
    def failed(self, failure: Failure) -> None: ...
    def finished(self) -> None: ...


class JsonReport:
    """One JSON object per line on stdout: a `batch` for each batch, `rows`, `failed`, and `finished` at the
    end."""

    def __init__(self) -> None:
        self._flows: Sequence[FlowProgress] = ()
        self._lock = threading.Lock()

    def started(self, flows: Sequence[FlowProgress]) -> None:
        self._flows = flows

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def batch(self, batch: Batch) -> None:
        self._print(batch.as_json())

    def refresh(self) -> None:
        return None

    def rows(self, flow: str, batch: int, columns: list[str], rows: Cells) -> None:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        self._print({"event": "rows", "flow": flow, "batch": batch, "rows": named})

    def failed(self, failure: Failure) -> None:
        self._print(failure.as_json())

    def finished(self) -> None:
        self._print({"event": "finished", "flows": [each.as_json() for each in self._flows]})

    def _print(self, value: Mapping[str, object]) -> None:
        with self._lock:
            print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


class LineReport:
    """A plain line for each batch that had something to do, and a table at the end."""

    def __init__(self) -> None:
        self._flows: Sequence[FlowProgress] = ()
        self._lock = threading.Lock()

    def started(self, flows: Sequence[FlowProgress]) -> None:
        self._flows = flows
        for each in flows:
            self.note(f"flow {each.flow} -> {each.sink}")

    def note(self, text: str) -> None:
        with self._lock:
            print(text, flush=True)

    def batch(self, batch: Batch) -> None:
        if not batch.rows_in and not batch.rows_out:
            return
        out = "" if batch.rows_out is None else f", {batch.rows_out:,} out"
        lag = "".join(f", {topic} {behind:,} behind" for topic, behind in sorted(batch.lag.items()))
        state = f", {batch.state_rows:,} rows of state" if batch.state_rows else ""
        self.note(
            f"{batch.flow} batch {batch.batch}: {batch.rows_in:,} in{out}, "
            f"{batch.rows_in_per_second:,.0f} rows/s, {batch.duration_ms:,} ms{lag}{state}"
        )

    def refresh(self) -> None:
        return None

    def rows(self, flow: str, batch: int, columns: list[str], rows: Cells) -> None:
        self.note("\n".join([f"{flow} batch {batch}", *plain_table(columns, _texts(rows))]))

    def failed(self, failure: Failure) -> None:
        return None

    def finished(self) -> None:
        if self._flows:
            left, right, rows = summary(self._flows)
            self.note("\n".join(plain_table([heading.upper() for heading in left + right], rows)))


class LiveReport(LineReport):
    """A table on a terminal that changes in place."""

    def __init__(self) -> None:
        super().__init__()
        from rich.live import Live

        self._live: Any = Live(console=_console(), auto_refresh=False, transient=True)

    def started(self, flows: Sequence[FlowProgress]) -> None:
        self._flows = flows
        self._live.start()
        self.refresh()

    def note(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False)

    def batch(self, batch: Batch) -> None:
        self.refresh()

    def refresh(self) -> None:
        with self._lock:
            self._live.update(live_table(self._flows, self._live.console.width), refresh=True)

    def rows(self, flow: str, batch: int, columns: list[str], rows: Cells) -> None:
        self._live.console.print(rows_table(flow, batch, columns, rows))

    def finished(self) -> None:
        self._live.stop()
        if self._flows:
            console = self._live.console
            console.print(summary_table(self._flows, console.width))


def report_for(*, as_json: bool, on_terminal: bool) -> Report:
    if as_json:
        return JsonReport()
    return LiveReport() if on_terminal else LineReport()


def live_table(flows: Iterable[FlowProgress], width: int = WIDE) -> Table:
    """A line per flow, as of its last batch."""
    is_wide = width >= WIDE
    more = ["rows/s out", "duration", "state rows"] if is_wide else []
    table = _table(["flow", "state"], ["batch", "rows/s in", "lag", "rows in", *more])
    for each in flows:
        last = each.last
        if last is None:
            table.add_row(each.flow, each.state, *["-"] * (4 + len(more)))
            continue
        lag = ", ".join(f"{topic} {behind:,}" for topic, behind in sorted(last.lag.items()))
        cells = [
            each.flow,
            each.state,
            str(last.batch),
            f"{last.rows_in_per_second:,.0f}",
            (lag or "-") if is_wide else f"{sum(last.lag.values()):,}",
            f"{each.rows_in:,}",
        ]
        if is_wide:
            cells += [
                _number(last.rows_out_per_second),
                f"{last.duration_ms:,} ms",
                f"{last.state_rows:,}" if last.state_rows else "-",
            ]
        table.add_row(*cells)
    return table


def summary_table(flows: Iterable[FlowProgress], width: int = WIDE) -> Table:
    left, right, rows = summary(flows, is_wide=width >= WIDE)
    table = _table(left, right)
    for row in rows:
        table.add_row(*row)
    return table


def summary(
    flows: Iterable[FlowProgress], *, is_wide: bool = True
) -> tuple[list[str], list[str], list[list[str]]]:
    """What a run has done in all: headings of text, headings of numbers, and rows."""
    left = ["flow", *(["to"] if is_wide else []), "state"]
    right = [*(["batches"] if is_wide else []), "rows in", "rows out", "rows/s", "lag"]
    rows = []
    for each in flows:
        lag = sum(each.last.lag.values()) if each.last and each.last.lag else None
        rate = each.rows_in * 1000 / each.duration_ms if each.duration_ms else None
        rows.append(
            [
                each.flow,
                *([each.sink] if is_wide else []),
                each.state,
                *([str(each.batches)] if is_wide else []),
                f"{each.rows_in:,}",
                _number(each.rows_out),
                _number(rate),
                _number(lag),
            ]
        )
    return left, right, rows


def rows_table(flow: str, batch: int, columns: list[str], rows: Cells) -> Table:
    from rich.text import Text

    table = _table(columns, [])
    table.title = f"{flow} batch {batch}"
    for row in _texts(rows):
        table.add_row(*map(Text, row))
    return table


def _texts(rows: Cells) -> list[list[str]]:
    return [["null" if cell is None else str(cell) for cell in row] for row in rows]


def _table(left: Sequence[str], right: Sequence[str]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, header_style="bold cyan", pad_edge=False)
    for number, heading in enumerate(left):
        # On a narrow terminal the name in front stays whole, and the rest is folded.
        table.add_column(heading, overflow="fold", no_wrap=number == 0)
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def _console() -> Console:
    from rich.console import Console

    # Where there is no terminal to be as wide as, a table is as wide as it has to be.
    return Console() if sys.stdout.isatty() else Console(width=200)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
