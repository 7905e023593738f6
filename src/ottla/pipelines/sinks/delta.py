"""The sink that writes a Delta table, with the deltalake library: no jar, no Spark extension.

Each batch is one commit that carries the query's id and the batch's number as an application transaction. A
batch that is replayed finds its own number in the table and does nothing, so every row counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.pipelines.errors import require
from ottla.pipelines.sinks.sink import Attachment, Sink, collected, query_id
from ottla.pipelines.sinks.upserts import DELETED, Upsert

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.pipelines.context import Surroundings


@dataclass(frozen=True)
class DeltaSink(Sink):
    """A table at a path or an address that deltalake understands (s3://, abfss://, gs://)."""

    path: str
    upsert: Upsert | None = None
    partition_by: Sequence[str] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict)
    collects: ClassVar[bool] = True
    modes: ClassVar[tuple[str, ...]] = ("append", "update")

    def describe(self) -> str:
        return f"delta {self.path}"

    def check(self) -> None:
        require("deltalake", "delta")

    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        path = attachment.surroundings.path(self.path)

        def write(batch: DataFrame, batch_id: int) -> None:
            self.write(path, batch, batch_id)

        return rows.writeStream.foreachBatch(write)

    def write(self, path: str, batch: DataFrame, batch_id: int) -> None:
        """Add a batch to the table, unless it is there already."""
        from deltalake import CommitProperties, Transaction

        application = query_id(batch)
        table = self._table(path)
        if table is not None:
            written = table.transaction_version(application)
            if written is not None and written >= batch_id:
                return
        rows = collected(self.upsert.last(batch) if self.upsert else batch)
        if rows.num_rows == 0 and table is not None:
            return
        once = CommitProperties(app_transactions=[Transaction(application, batch_id)])
        if self.upsert is None:
            self._append(path, rows, once)
        else:
            self._merge(path, table, rows, self.upsert, once)

    def _append(self, path: str, rows: pa.Table, once: Any) -> None:
        from deltalake import write_deltalake

        write_deltalake(
            path,
            rows,
            mode="append",
            schema_mode="merge",
            partition_by=list(self.partition_by) or None,
            storage_options=dict(self.storage_options) or None,
            commit_properties=once,
        )

    def _merge(self, path: str, table: Any, rows: pa.Table, upsert: Upsert, once: Any) -> None:
        from deltalake import DeltaTable

        if table is None:
            table = DeltaTable.create(
                path,
                rows.schema.remove(rows.schema.get_field_index(DELETED)),
                partition_by=list(self.partition_by) or None,
                storage_options=dict(self.storage_options) or None,
            )
        same = " AND ".join(f'target."{name}" = source."{name}"' for name in upsert.key)
        order = upsert.order_by
        newer = f'(target."{order}" IS NULL OR source."{order}" >= target."{order}")'
        merge = table.merge(
            rows,
            same,
            source_alias="source",
            target_alias="target",
            merge_schema=True,
            commit_properties=once,
        )
        merge.when_matched_delete(f"source.{DELETED} AND {newer}").when_matched_update_all(
            f"NOT source.{DELETED} AND {newer}", except_cols=[DELETED]
        ).when_not_matched_insert_all(f"NOT source.{DELETED}", except_cols=[DELETED]).execute()

    def holds(self, surroundings: Surroundings) -> str | None:
        path = surroundings.path(self.path)
        return None if self._table(path) is None else f"the rows of the Delta table {path}"

    def clear(self, surroundings: Surroundings) -> None:
        """Delete the rows; older versions of the table keep them until it is vacuumed."""
        table = self._table(surroundings.path(self.path))
        if table is not None:
            table.delete()

    def _table(self, path: str) -> Any:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(path, storage_options=dict(self.storage_options) or None)
        except TableNotFoundError:
            return None
