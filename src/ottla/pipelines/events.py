"""Event time made short: windows and deduplication, by Spark's own watermarks.

    events.windowed(orders, time="at", every="1 minute", late="10 minutes",
    by=["customer"]).agg(F.sum("amount")) events.deduplicated(orders, ["id"], time="at", within="1 hour")

Both bound the state that Spark keeps: what is later than was allowed is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData


def windowed(
    rows: DataFrame,
    *,
    time: str,
    every: str,
    late: str,
    by: Sequence[str] = (),
    slide: str | None = None,
) -> GroupedData:
    """Rows grouped by windows of event time, and by further columns: call `.agg(...)` on it.

    every: how long a window is. slide: how far apart windows start, if they overlap. late: how long a window
    waits for late rows before it is final.
    """
    from pyspark.sql import functions as F

    window = F.window(F.col(time), every, slide) if slide else F.window(F.col(time), every)
    return rows.withWatermark(time, late).groupBy(window, *by)


def deduplicated(rows: DataFrame, columns: Sequence[str], *, time: str, within: str) -> DataFrame:
    """Of rows that are equal in these columns, only the first within this much event time."""
    return rows.withWatermark(time, within).dropDuplicatesWithinWatermark(list(columns))


def flat_window(rows: DataFrame) -> DataFrame:
    """The column `window` as two, `window_start` and `window_end`, which sinks and people like better."""
    from pyspark.sql import functions as F

    others = [name for name in rows.columns if name != "window"]
    return rows.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), *others
    )
