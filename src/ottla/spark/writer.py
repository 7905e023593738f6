"""`df.write.format("ottla").mode("append").save()`: all rows of a job, or none.

Each task writes in a transaction of its own and leaves it open; when all tasks are done, the driver ends them
all. A task that is tried again takes the place of its earlier attempt, whose transaction is aborted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ottla.client.blocking.transaction import (
    IdempotentProducer,
    TransactionalProducer,
    TransactionHandle,
    end_transaction,
)
from ottla.client.errors import ClientError
from ottla.protocol.errors import KafkaError
from ottla.spark import sink
from ottla.spark.exactly_once import transactional_id
from ottla.spark.heap import freeze_imports
from ottla.spark.properties import BadOption
from ottla.spark.write_options import WriteOptions, parse_write
from ottla.spark.write_schema import check_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class PartlyCommitted(Exception):
    """The rows of some tasks are committed and those of others are not: the broker went away in between."""


@dataclass
class TaskDone(WriterCommitMessage):
    """What a task did. There is no handle where there were no rows, or no transaction was wanted."""

    task: int
    rows: int
    handle: TransactionHandle | None = None


class OttlaWriter(DataSourceArrowWriter):
    """The writer of one job; a copy of it does the work of each task."""

    def __init__(self, options: WriteOptions, job_id: str) -> None:
        self.options, self.job_id = options, job_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "not in a task of Spark"
        return self.write_task(context.partitionId(), iterator)

    def write_task(self, task: int, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Write what a task has."""
        from ottla.spark.routing import Router

        batches = sink.with_rows(iterator)
        first = next(batches, None)
        if first is None:
            return TaskDone(task, 0)
        cluster = sink.connect(self.options)
        router = Router(self.options, cluster, turn=task)
        if not self.options.exactly_once:
            written = sink.write_rows(IdempotentProducer.start(cluster), router, chain([first], batches))
            return TaskDone(task, written.rows)
        producer = TransactionalProducer.begin(
            cluster, transactional_id(self.job_id, task), self.options.transaction_timeout_ms
        )
        written = sink.write_in_transaction(producer, router, chain([first], batches))
        return TaskDone(task, written.rows, producer.handle)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        handles = _handles(messages)
        if not handles:
            return
        cluster = sink.connect(self.options)
        # All of them before any: a transaction that is lost should be found while nothing is committed.
        sink.require_open(cluster, handles, self.options.transaction_timeout_ms)
        for ended, handle in enumerate(handles):
            try:
                end_transaction(cluster, handle, True)
            except (KafkaError, ClientError) as error:
                if not ended:
                    raise
                raise PartlyCommitted(
                    f"{ended} of {len(handles)} transactions are committed, then: {error}"
                ) from None
        sink.wait_until_visible(cluster, handles)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if not self.options.exactly_once:
            return
        cluster = sink.connect(self.options)
        for handle in _handles(messages):
            sink.abort_quietly(cluster, handle)
        if None in messages:
            sink.abort_stragglers(cluster, f"ottla-{self.job_id}-", self.options.transaction_timeout_ms)


def _handles(messages: Sequence[WriterCommitMessage | None]) -> list[TransactionHandle]:
    return [each.handle for each in messages if isinstance(each, TaskDone) and each.handle is not None]


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> OttlaWriter:
    """The writer that Spark asks the data source for. Raises `BadOption` and `BadSchema`."""
    if overwrite:
        raise BadOption(
            "Save mode Overwrite not allowed for Kafka: a topic is only appended to. Use .mode('append')"
        )
    freeze_imports()
    parsed = parse_write(options)
    check_schema(schema, parsed.topic, include_timestamp=parsed.include_timestamp)
    return OttlaWriter(parsed, uuid.uuid4().hex)
