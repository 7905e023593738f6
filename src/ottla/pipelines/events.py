"""Event time made short: windows and deduplication, by Spark's own watermarks.

    once = events.deduplicated(orders, ["id"], time="at", within="1 hour")
    events.windowed(orders, time="at", every="1 minute", late="10 minutes", by=["customer"]).agg(...)

Both bound the state that Spark keeps: what is later than was allowed is left out. A stream has one watermark,
so what comes second leaves its own out: `events.windowed(once, time="at", every="1 minute")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData

# Where Spark notes a column's watermark, in milliseconds.
_WATERMARK = "spark.watermarkDelayMs"


def windowed(
    rows: DataFrame,
    *,
    time: str,
    every: str,
    late: str | None = None,
    by: Sequence[str] = (),
    slide: str | None = None,
) -> GroupedData:
    """Rows grouped by windows of event time, and by further columns: call `.agg(...)` on it.

    every: how long a window is. slide: how far apart windows start, if they overlap. late: how long a window
    waits for late rows before it is final; only the mode `complete` can do without.
    """
    from pyspark.sql import functions as F

    window = F.window(F.col(time), every, slide) if slide else F.window(F.col(time), every)
    return _watermarked(rows, time, late, "late").groupBy(window, *by)


def deduplicated(
    rows: DataFrame, columns: Sequence[str], *, time: str, within: str | None = None
) -> DataFrame:
    """Of rows that are equal in these columns, only the first within this much event time."""
    return _watermarked(rows, time, within, "within").dropDuplicatesWithinWatermark(list(columns))


def _watermarked(rows: DataFrame, time: str, delay: str | None, argument: str) -> DataFrame:
    if delay is None:
        return rows
    known = next((each.metadata.get(_WATERMARK) for each in rows.schema if each.name == time), None)
    if known is not None:
        raise PipelineError(
            f"{time} has a watermark of {known / 1000:g} seconds already, and a stream has one: "
            f"leave {argument}= out"
        )
    return rows.withWatermark(time, delay)


def flat_window(rows: DataFrame) -> DataFrame:
    """The column `window` as two, `window_start` and `window_end`, which sinks and people like better."""
    from pyspark.sql import functions as F

    others = [name for name in rows.columns if name != "window"]
    return rows.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), *others
    )
