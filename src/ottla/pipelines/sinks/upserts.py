"""Upserts: of several rows of one key the last counts, whether they come in one batch or in many.

"Last" is by a column of the rows, not by arrival, so that the outcome does not depend on where batches end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELETED = "_ottla_deleted"


@dataclass(frozen=True)
class Upsert:
    """How rows replace each other.

    delete_when: a condition in SQL for rows that delete their key. If it is just the name of a column, that
    column is a mark and not stored.
    """

    key: Sequence[str]
    order_by: str
    delete_when: str | None = None

    def last(self, batch: DataFrame) -> DataFrame:
        """One row per key, with a column that says whether it deletes the key."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        for name in (*self.key, self.order_by):
            if name not in batch.columns:
                raise PipelineError(f"the rows have no column {name}; they have {', '.join(batch.columns)}")
        order = Window.partitionBy(*self.key).orderBy(F.col(self.order_by).desc_nulls_last())
        ranked = batch.withColumn("_ottla_rank", F.row_number().over(order))
        rows = ranked.filter("_ottla_rank = 1").drop("_ottla_rank")
        deletes = F.coalesce(F.expr(self.delete_when), F.lit(False)) if self.delete_when else F.lit(False)
        rows = rows.withColumn(DELETED, deletes)
        return rows.drop(self.delete_when) if self.delete_when in batch.columns else rows


def upsert_of(key: str | Sequence[str], order_by: str | None, delete_when: str | None) -> Upsert | None:
    """The upsert that these arguments of a sink ask for; None for rows that are only added."""
    names = [key] if isinstance(key, str) else list(key)
    if not names:
        if order_by or delete_when:
            raise PipelineError("order_by= and delete_when= go with key=")
        return None
    if order_by is None:
        raise PipelineError(
            "key= wants order_by=: the column that says which of two rows of a key is the later one"
        )
    return Upsert(tuple(names), order_by, delete_when)
