"""What the batch writer and the stream writer have in common: rows into a producer, transactions looked
after."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.blocking.cluster import TRANSACTION, BlockingCluster, cached_cluster
from ottla.client.blocking.transaction import (
    IdempotentProducer,
    TransactionalProducer,
    TransactionHandle,
    end_transaction,
)
from ottla.client.errors import ClientError, check
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.spark.heap import freeze_imports
from ottla.spark.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.routing import Router

ONGOING: Final = "Ongoing"
COMMITTING: Final = "PrepareCommit"
VISIBLE_SECONDS: Final = 10.0
STRAGGLER_SECONDS: Final = 3.0
FIRST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.1


class TransactionLost(Exception):
    """A transaction that was to be committed is no longer open."""


class Described(NamedTuple):
    """What a coordinator knows of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int


class Written(NamedTuple):
    rows: int
    topics: tuple[str, ...]


def connect(options: WriteOptions) -> BlockingCluster:
    """The cluster, with connections that this process keeps from task to task."""
    return cached_cluster(
        options.bootstrap,
        options.security,
        options.client_id,
        timeout=options.delivery_timeout_ms / 1000,
    )


def write_rows(producer: IdempotentProducer, router: Router, batches: Iterable[pa.RecordBatch]) -> Written:
    """Write all rows and wait until they are stored."""
    freeze_imports()
    rows = 0
    try:
        for batch in batches:
            for wave in router.route(batch):
                producer.produce(wave)
            rows += batch.num_rows
        producer.flush()
    finally:
        producer.close()
    return Written(rows, tuple(router.topics))


def write_in_transaction(
    producer: TransactionalProducer, router: Router, batches: Iterable[pa.RecordBatch]
) -> Written:
    """As `write_rows`. What fails is aborted at once: readers of committed records wait for open ones."""
    try:
        return write_rows(producer, router, batches)
    except BaseException:
        if producer.is_open:
            abort_quietly(producer.cluster, producer.handle)
        raise


def with_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def abort_quietly(cluster: BlockingCluster, handle: TransactionHandle) -> bool:
    """Abort a transaction if it is still open; whether it was. What cannot be reached times out by itself."""
    try:
        end_transaction(cluster, handle, False)
    except (KafkaError, ClientError):
        return False
    return True


def require_open(cluster: BlockingCluster, handles: Iterable[TransactionHandle], timeout_ms: int) -> None:
    """Raises `TransactionLost` unless all of these transactions can be committed."""
    for handle in handles:
        if _describe(cluster, handle) != (ONGOING, handle.producer_id, handle.producer_epoch):
            raise lost(handle, timeout_ms)


def wait_until_visible(cluster: BlockingCluster, handles: Iterable[TransactionHandle]) -> None:
    """A broker answers that a transaction is committed once that cannot change any more, and only then tells
    the partitions. Who reads after us should find what we wrote, so the little while until then is ours. It
    is a courtesy: what takes too long, or cannot be asked, is committed all the same."""
    deadline, pause = time.monotonic() + VISIBLE_SECONDS, FIRST_PAUSE
    try:
        for handle in handles:
            while _describe(cluster, handle).state == COMMITTING and time.monotonic() < deadline:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
    except (KafkaError, ClientError):
        return


def _describe(cluster: BlockingCluster, handle: TransactionHandle) -> Described:
    request = DescribeTransactionsRequest(transactional_ids=[handle.transactional_id])

    def once() -> Described:
        connection = cluster.coordinator(handle.transactional_id, TRANSACTION)
        (found,) = connection.ask(request, DescribeTransactionsResponse).transaction_states
        check(found.error_code, f"transactional id {handle.transactional_id}")
        return Described(found.transaction_state, found.producer_id, found.producer_epoch)

    return cluster.persist(once)


def lost(handle: TransactionHandle, timeout_ms: int) -> TransactionLost:
    return TransactionLost(
        f"the transaction of {handle.transactional_id} is no longer open: either the job took longer than "
        f"kafka.transaction.timeout.ms ({timeout_ms} ms; the broker allows up to its "
        "transaction.max.timeout.ms), or another attempt of the task has taken its place. "
        "Nothing of it was committed"
    )


def abort_stragglers(cluster: BlockingCluster, prefix: str, timeout_ms: int) -> None:
    """As `abort_open`, for a job that has just failed: Spark tells its other tasks to stop, does not wait for
    that, and lets a Python process go on for two seconds more (spark.python.task.killTimeout). One that opens
    a transaction in that time would hold up every reader of committed records until it times out."""
    deadline = time.monotonic() + STRAGGLER_SECONDS
    while abort_open(cluster, prefix, timeout_ms) and time.monotonic() < deadline:
        time.sleep(STRAGGLER_SECONDS / 10)


def abort_open(cluster: BlockingCluster, prefix: str, timeout_ms: int, *, but: Collection[str] = ()) -> bool:
    """Abort what is open under transactional ids with this prefix, and fence who may still write there: tasks
    that were killed leave their transactions behind, and nobody knows their handles. Whether that was done;
    what was not times out by itself."""
    request = ListTransactionsRequest(state_filters=[ONGOING])
    try:
        cluster.refresh()
        for broker in list(cluster.brokers):
            response = cluster.ask(request, ListTransactionsResponse, broker=broker)
            for each in response.transaction_states:
                name = each.transactional_id
                if name.startswith(prefix) and name not in but:
                    TransactionalProducer.begin(cluster, name, timeout_ms)
    except (KafkaError, ClientError):
        return False
    return True
