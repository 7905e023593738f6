"""`df.writeStream.format("ottla")`: every row of every micro-batch exactly once.

The tasks of a batch write in transactions and leave them open; the driver ends them. What makes a batch that
Spark runs again harmless is in `exactly_once`; here it is carried out, the tasks' side in `write`, the
driver's in `commit` and `abort`, each in whatever process Spark does these in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.blocking.transaction import IdempotentProducer, TransactionalProducer
from ottla.client.errors import ClientError
from ottla.protocol.errors import KafkaError
from ottla.spark import sink
from ottla.spark.exactly_once import Open, Share, plan_commit, transactional_id
from ottla.spark.heap import freeze_imports
from ottla.spark.progress import commit_in_order, finish, handle_of, read_progress, settle
from ottla.spark.write_options import WriteOptions, parse_write
from ottla.spark.write_schema import check_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.client.blocking.cluster import BlockingCluster

BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"
_committed: dict[str, int] = {}
"""The batch of each query that this process has committed last, after which nothing of an earlier run is
open."""


@dataclass
class ShareDone(WriterCommitMessage):
    """What a task did of a batch, and of which query: the driver's side is not told that."""

    share: Share
    query_id: str
    topics: tuple[str, ...] = ()


class OttlaStreamWriter(DataSourceStreamArrowWriter):
    """The writer of a query; Spark makes a new one for each batch, and one more to commit it."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options

    # --- a task --------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "not in a task of Spark"
        batch_id, query_id = context.getLocalProperty(BATCH_ID), context.getLocalProperty(QUERY_ID)
        assert batch_id is not None and query_id is not None, "not in a task of a streaming query"
        return self.write_share(context.partitionId(), int(batch_id), query_id, iterator)

    def write_share(
        self, task: int, batch_id: int, query_id: str, iterator: Iterator[pa.RecordBatch]
    ) -> ShareDone:
        """Write what a task has of a batch, unless that is committed already."""
        from ottla.spark.routing import Router

        cluster = sink.connect(self.options)
        batches = sink.with_rows(iterator)
        if not self.options.exactly_once:
            first = next(batches, None)
            if first is not None:
                router = Router(self.options, cluster, turn=task)
                sink.write_rows(IdempotentProducer.start(cluster), router, chain([first], batches))
            return ShareDone(Share(task), query_id)
        progress = read_progress(cluster, query_id, batch_id)
        if progress.is_decided:
            progress = finish(cluster, query_id, progress)
        if progress.is_complete or progress.marker_of(task) is not None:
            return _recorded(task, query_id, batches)
        first = next(batches, None)
        if first is None:
            return ShareDone(Share(task), query_id)
        name = transactional_id(query_id, task)
        producer = TransactionalProducer.begin(cluster, name, self.options.transaction_timeout_ms)
        # Only now is it certain how an earlier run ended the transaction of this task: a driver that was
        # taken for dead may have committed it a moment ago, and cannot any more.
        if read_progress(cluster, query_id, batch_id).marker_of(task) is not None:
            return _recorded(task, query_id, chain([first], batches))
        router = Router(self.options, cluster, turn=task + batch_id)
        written = sink.write_in_transaction(producer, router, chain([first], batches))
        opened = Open(task, producer.handle.producer_id, producer.handle.producer_epoch)
        return ShareDone(Share(task, written.rows, opened), query_id, written.topics)

    # --- the driver ----------------------------------------------------------------------

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        done = [each for each in messages if isinstance(each, ShareDone)]
        writers = [each for each in done if each.share.open or each.share.is_recorded]
        if not writers:
            return
        query_id = writers[0].query_id
        cluster = sink.connect(self.options)
        goes_on = _committed.pop(query_id, None) == batchId - 1
        self._commit(cluster, query_id, batchId, done, writers)
        # An earlier run may have had more tasks: what they left open holds up readers.
        if goes_on or sink.abort_open(cluster, f"ottla-{query_id}-", self.options.transaction_timeout_ms):
            _committed[query_id] = batchId

    def _commit(
        self,
        cluster: BlockingCluster,
        query_id: str,
        batch_id: int,
        done: list[ShareDone],
        writers: list[ShareDone],
    ) -> None:
        timeout_ms = self.options.transaction_timeout_ms
        topics = [topic for each in writers for topic in each.topics]
        topic = self.options.topic or (topics[0] if topics else "")
        keep = {transactional_id(query_id, each.share.task) for each in writers if each.share.open}
        progress = settle(cluster, query_id, batch_id, topic=topic, keep=keep, timeout_ms=timeout_ms)
        if progress.is_complete and not keep:
            return
        topic = progress.topic or topic
        slots = len(cluster.topic(topic).partitions)
        plan = plan_commit(progress, [each.share for each in done], slots)
        for stray in plan.stray:
            sink.abort_quietly(cluster, handle_of(query_id, stray))
        commit_in_order(cluster, query_id, topic, plan.ends, timeout_ms)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        done = [each for each in messages if isinstance(each, ShareDone)]
        if not done or not self.options.exactly_once:
            return
        query_id = done[0].query_id
        cluster = sink.connect(self.options)
        opened = [each.share.open for each in done if each.share.open is not None]
        for number, transaction in enumerate(opened):
            aborted = sink.abort_quietly(cluster, handle_of(query_id, transaction))
            if number == 0 and not aborted and _may_be_decided(cluster, query_id, batchId):
                # The commit failed after the batch was decided. The next run finishes it: what is open must
                # stay open for that.
                return
        if None in messages and not _may_be_decided(cluster, query_id, batchId):
            sink.abort_stragglers(cluster, f"ottla-{query_id}-", self.options.transaction_timeout_ms)


def _recorded(task: int, query_id: str, batches: Iterator[pa.RecordBatch]) -> ShareDone:
    """Nothing to write; the rows are counted, to be compared with those of the run that wrote them."""
    rows = sum(batch.num_rows for batch in batches)
    return ShareDone(Share(task, rows, is_recorded=True), query_id)


def _may_be_decided(cluster: BlockingCluster, query_id: str, batch_id: int) -> bool:
    try:
        return read_progress(cluster, query_id, batch_id).is_decided
    except (KafkaError, ClientError):
        return True


def stream_writer(options: Mapping[str, str], schema: StructType) -> OttlaStreamWriter:
    """The writer that Spark asks the data source for. Raises `BadOption` and `BadSchema`."""
    freeze_imports()
    parsed = parse_write(options)
    check_schema(schema, parsed.topic, include_timestamp=parsed.include_timestamp)
    return OttlaStreamWriter(parsed)
