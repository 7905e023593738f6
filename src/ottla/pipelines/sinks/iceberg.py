"""The sink that writes an Iceberg table, with the pyiceberg library: no jar, no Spark extension.

Each batch is one transaction whose snapshots carry the query's id and the batch's number. A batch that is
replayed finds its own number among the table's snapshots and does nothing, so every row counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.pipelines.errors import require
from ottla.pipelines.sinks.sink import Attachment, Sink, collected, query_id
from ottla.pipelines.sinks.upserts import DELETED, Upsert

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.pipelines.context import Surroundings

QUERY, BATCH = "ottla.query-id", "ottla.batch-id"


@dataclass(frozen=True)
class IcebergSink(Sink):
    """A table of a catalog: one named in .pyiceberg.yaml, one by its properties, or the project's own."""

    table: str
    upsert: Upsert | None = None
    partition_by: Sequence[str] = ()
    catalog: str | Mapping[str, str] | None = None
    collects: ClassVar[bool] = True
    modes: ClassVar[tuple[str, ...]] = ("append", "update")

    def describe(self) -> str:
        return f"iceberg {self.table}"

    def check(self) -> None:
        require("pyiceberg", "iceberg")

    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        surroundings = attachment.surroundings

        def write(batch: DataFrame, batch_id: int) -> None:
            catalog = self._catalog(surroundings)
            try:
                self.write(catalog, batch, batch_id)
            finally:
                catalog.close()

        return rows.writeStream.foreachBatch(write)

    def write(self, catalog: Any, batch: DataFrame, batch_id: int) -> None:
        """Add a batch to the table, unless it is there already."""
        query = query_id(batch)
        table = self._table(catalog)
        if table is not None and _last_batch(table, query) >= batch_id:
            return
        rows = collected(self.upsert.last(batch) if self.upsert else batch)
        stored = rows.drop_columns([DELETED]) if self.upsert else rows
        if table is None:
            table = self._create(catalog, stored.schema)
        if rows.num_rows == 0:
            return
        mark = {QUERY: query, BATCH: str(batch_id)}
        with table.transaction() as transaction:
            with transaction.update_schema() as update:
                update.union_by_name(stored.schema)
            if self.upsert is None:
                transaction.append(stored, snapshot_properties=mark)
            else:
                _merge(table, transaction, rows, self.upsert, mark)

    def holds(self, surroundings: Surroundings) -> str | None:
        catalog = self._catalog(surroundings)
        try:
            return None if self._table(catalog) is None else f"the rows of the Iceberg table {self.table}"
        finally:
            catalog.close()

    def clear(self, surroundings: Surroundings) -> None:
        """Delete the rows; older snapshots keep them until they expire."""
        catalog = self._catalog(surroundings)
        try:
            table = self._table(catalog)
            if table is not None and table.current_snapshot() is not None:
                from pyiceberg.expressions import AlwaysTrue

                table.delete(AlwaysTrue())
        finally:
            catalog.close()

    def _catalog(self, surroundings: Surroundings) -> Any:
        from pyiceberg.catalog import load_catalog

        if isinstance(self.catalog, str):
            return load_catalog(self.catalog)
        if self.catalog is not None:
            return load_catalog("ottla", **self.catalog)
        own = surroundings.root / ".ottla"
        own.mkdir(parents=True, exist_ok=True)
        warehouse = surroundings.root / "warehouse"
        return load_catalog(
            "ottla", type="sql", uri=f"sqlite:///{own / 'iceberg.db'}", warehouse=warehouse.as_uri()
        )

    def _identifier(self) -> str:
        return self.table if "." in self.table else f"default.{self.table}"

    def _table(self, catalog: Any) -> Any:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return catalog.load_table(self._identifier())
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _create(self, catalog: Any, schema: pa.Schema) -> Any:
        catalog.create_namespace_if_not_exists(self._identifier().rpartition(".")[0])
        table = catalog.create_table(self._identifier(), schema)
        if self.partition_by:
            with table.update_spec() as update:
                for name in self.partition_by:
                    update.add_identity(name)
        return table


def _last_batch(table: Any, query: str) -> int:
    batches = (
        int(snapshot.summary[BATCH])
        for snapshot in table.snapshots()
        if snapshot.summary is not None and snapshot.summary[QUERY] == query
    )
    return max(batches, default=-1)


def _merge(table: Any, transaction: Any, rows: pa.Table, upsert: Upsert, mark: dict[str, str]) -> None:
    """Replace what the table has of these keys, except where that is newer."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyiceberg.table.upsert_util import create_match_filter

    key, order = list(upsert.key), upsert.order_by
    there = table.scan(create_match_filter(rows, key), selected_fields=(*key, order)).to_arrow()
    if there.num_rows:
        there = there.rename_columns([*key, "_ottla_there"]).append_column(
            "_ottla_known", pa.repeat(True, there.num_rows)
        )
        rows = rows.join(there.cast(_like(there.schema, rows.schema)), key, join_type="left outer")
        stale = pc.and_kleene(
            pc.fill_null(rows["_ottla_known"], False),
            pc.fill_null(pc.less(rows[order], rows["_ottla_there"]), False),
        )
        rows = rows.filter(pc.invert(stale))
        known = rows.filter(pc.fill_null(rows["_ottla_known"], False))
        if known.num_rows:
            transaction.delete(create_match_filter(known, key), snapshot_properties=mark)
        rows = rows.drop_columns(["_ottla_there", "_ottla_known"])
    kept = rows.filter(pc.invert(rows[DELETED])).drop_columns([DELETED])
    if kept.num_rows:
        transaction.append(kept, snapshot_properties=mark)


def _like(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The schema with the types that columns of the same name have in the other; pyiceberg may read large
    ones."""
    import pyarrow as pa

    return pa.schema(
        [each.with_type(other.field(each.name).type) if each.name in other.names else each for each in schema]
    )
