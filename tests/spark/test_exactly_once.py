"""The exactly-once sink without Spark: its tasks and its driver, run and broken off at every step.

`Sink.run` does what Spark does with a micro-batch: `write_share` for each task, then `commit`, and `abort` if
that fails. A run that is broken off in between is a driver that died there; the same batch is then run again.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from ottla.client.errors import ClientError
from ottla.core.types import TopicPartition
from ottla.protocol.errors import InvalidProducerEpoch, ProducerFenced, UnknownServerError
from ottla.spark import stream_writer
from ottla.spark.exactly_once import Open, ReplayDiffers
from ottla.spark.progress import finish, handle_of, read_progress
from ottla.spark.sink import TransactionLost, connect, require_open
from ottla.spark.stream_writer import OttlaStreamWriter, ShareDone
from ottla.spark.write_options import WriteOptions
from ottla.testing.broker import TestBroker
from tests.spark.committed import values

Rows = Sequence[str]

# Transactions that are to be given up: not before a batch is written, however busy the machine is.
SOON_MS = 4_000


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "50"}) as broker:
        yield broker


def batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    for row in rows:
        yield pa.record_batch({"value": pa.array([row.encode()])})


class Sink:
    """A streaming query that writes to one topic."""

    def __init__(self, broker: TestBroker, *, partitions: int = 2, timeout_ms: int = 60_000) -> None:
        self.broker = broker
        self.topic = broker.topic(partitions=partitions)
        self.query_id = str(uuid.uuid4())
        options = WriteOptions(broker.bootstrap, self.topic, transaction_timeout_ms=timeout_ms)
        self.writer = OttlaStreamWriter(options)

    def write(self, batch_id: int, *tasks: Rows) -> list[ShareDone | None]:
        """The tasks of a batch, one after the other."""
        return [
            self.writer.write_share(task, batch_id, self.query_id, batches(rows))
            for task, rows in enumerate(tasks)
        ]

    def commit(self, batch_id: int, messages: list[ShareDone | None]) -> None:
        self.writer.commit([*messages], batch_id)

    def run(self, batch_id: int, *tasks: Rows) -> None:
        messages: list[ShareDone | None] = []
        try:
            for task, rows in enumerate(tasks):
                messages.append(self.writer.write_share(task, batch_id, self.query_id, batches(rows)))
            self.commit(batch_id, messages)
        except Exception:
            missing = [None] * (len(tasks) - len(messages))
            self.writer.abort([*messages, *missing], batch_id)
            raise

    def restart_driver(self) -> None:
        """What a new process does not know."""
        stream_writer._committed.clear()

    def committed(self) -> Counter[str]:
        return Counter(values(self.broker.bootstrap, self.topic))

    def stored(self) -> Counter[str]:
        return Counter(values(self.broker.bootstrap, self.topic, committed=False))


def once(*tasks: Rows) -> Counter[str]:
    return Counter(row for rows in tasks for row in rows)


FIRST = (["a", "b"], [], ["c"], ["d", "e"])
SECOND = (["f"], ["g", "h"], [], [])


def test_rows_are_there_for_readers_of_committed_records_when_the_driver_has_committed(
    broker: TestBroker,
) -> None:
    sink = Sink(broker)
    messages = sink.write(0, *FIRST)
    assert sink.stored() == once(*FIRST)
    assert not sink.committed()
    sink.commit(0, messages)
    assert sink.committed() == once(*FIRST)
    sink.run(1, *SECOND)
    assert sink.committed() == once(*FIRST, *SECOND)


def test_a_batch_that_fails_leaves_nothing_behind(broker: TestBroker) -> None:
    sink = Sink(broker)
    messages = sink.write(0, *FIRST)
    messages[2] = None  # as Spark has it for a task that failed
    sink.writer.abort([*messages], 0)
    assert not sink.committed()
    sink.run(0, *FIRST)
    assert sink.committed() == once(*FIRST)


def test_the_transaction_of_a_task_that_was_killed_does_not_hold_up_readers(broker: TestBroker) -> None:
    sink = Sink(broker)
    messages = sink.write(0, *FIRST)
    messages[0] = None
    sink.writer.abort([*messages], 0)
    with connect(sink.writer.options) as cluster:
        wanted = {TopicPartition(sink.topic, number): -1 for number in range(2)}
        assert cluster.list_offsets(wanted, isolation_level=1) == cluster.list_offsets(wanted)


@pytest.mark.parametrize("replay", [FIRST, (["a", "b", "c", "d", "e"],)], ids=["same tasks", "other tasks"])
def test_a_committed_batch_that_is_run_again_writes_nothing(
    broker: TestBroker, replay: tuple[Rows, ...]
) -> None:
    sink = Sink(broker)
    sink.run(0, *FIRST)
    stored = sink.stored()
    sink.run(0, *replay)
    assert sink.committed() == once(*FIRST)
    assert sink.stored() == stored
    sink.run(1, *SECOND)
    assert sink.committed() == once(*FIRST, *SECOND)


def test_a_driver_that_died_before_it_committed_anything_is_as_if_it_had_not_been(broker: TestBroker) -> None:
    sink = Sink(broker)
    sink.write(0, *FIRST)
    sink.run(0, *SECOND)  # other rows are no matter: nothing of the first run counts
    assert sink.committed() == once(*SECOND)


def die_at(sink: Sink, api: str, number: int, batch_id: int, *tasks: Rows) -> None:
    """Run a batch with a driver that does not get beyond its nth request of a kind."""
    messages = sink.write(batch_id, *tasks)
    with (
        sink.broker.fail(api, error="UNKNOWN_SERVER_ERROR", times=None, skip=number),
        pytest.raises(UnknownServerError),
    ):
        sink.commit(batch_id, messages)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("api", ["TxnOffsetCommit", "EndTxn"])
def test_a_driver_may_die_between_any_two_of_its_requests(broker: TestBroker, api: str, number: int) -> None:
    sink = Sink(broker)
    die_at(sink, api, number, 0, *FIRST)
    sink.run(0, *FIRST)
    assert sink.committed() == once(*FIRST)
    sink.run(1, *SECOND)
    assert sink.committed() == once(*FIRST, *SECOND)


@pytest.mark.parametrize("batch_id", [0, 1])
@pytest.mark.parametrize("api", ["TxnOffsetCommit", "EndTxn"])
def test_what_a_run_with_more_tasks_left_open_is_aborted(broker: TestBroker, api: str, batch_id: int) -> None:
    sink = Sink(broker)
    before = [SECOND] * batch_id
    for number, tasks in enumerate(before):
        sink.run(number, *tasks)
    die_at(sink, api, 0 if api == "EndTxn" else 2, batch_id, *FIRST)
    sink.run(batch_id, ["a", "b", "c", "d", "e"])
    assert sink.committed() == once(*FIRST) + sum((once(*tasks) for tasks in before), Counter())


def test_a_decided_batch_is_finished_and_not_written_again(broker: TestBroker) -> None:
    sink = Sink(broker)
    die_at(sink, "EndTxn", 1, 0, *FIRST)
    assert sink.committed() == once(FIRST[0])
    stored = sink.stored()
    sink.run(0, *FIRST)
    assert sink.committed() == once(*FIRST)
    assert sink.stored() == stored


def test_a_decided_batch_is_finished_whatever_tasks_it_has_when_it_is_run_again(broker: TestBroker) -> None:
    sink = Sink(broker)
    die_at(sink, "EndTxn", 1, 0, *FIRST)
    sink.run(0, ["a", "c", "e"], ["b", "d"])
    assert sink.committed() == once(*FIRST)


def test_a_commit_that_fails_halfway_is_not_undone(broker: TestBroker) -> None:
    sink = Sink(broker)
    with (
        broker.fail("EndTxn", error="UNKNOWN_SERVER_ERROR", skip=1),
        pytest.raises(UnknownServerError),
    ):
        sink.run(0, *FIRST)
    assert sink.committed() == once(FIRST[0])
    sink.run(0, *FIRST)
    assert sink.committed() == once(*FIRST)


@pytest.mark.parametrize("api", ["TxnOffsetCommit", "EndTxn", "InitProducerId", "Produce", "OffsetFetch"])
def test_answers_that_get_lost_do_no_harm(broker: TestBroker, api: str) -> None:
    sink = Sink(broker)
    with broker.disconnect(api, handled=True) as fault:
        sink.run(0, *FIRST)
        assert fault.hits == 1
    assert sink.committed() == once(*FIRST)


def wait_until_given_up(sink: Sink, transactions: Iterable[Open]) -> None:
    with connect(sink.writer.options) as cluster:
        for transaction in transactions:
            with suppress(TransactionLost):
                while True:
                    require_open(cluster, [handle_of(sink.query_id, transaction)], 0)


def lose_the_rest(sink: Sink, batch_id: int) -> None:
    """Wait until the broker has given up what a decided batch left open."""
    with connect(sink.writer.options) as cluster:
        progress = read_progress(cluster, sink.query_id, batch_id)
    assert progress.is_decided
    wait_until_given_up(sink, progress.unfinished())


def test_what_the_broker_gave_up_of_a_decided_batch_is_written_again(broker: TestBroker) -> None:
    sink = Sink(broker, timeout_ms=SOON_MS)
    die_at(sink, "EndTxn", 1, 0, *FIRST)
    lose_the_rest(sink, 0)
    sink.run(0, *FIRST)
    assert sink.committed() == once(*FIRST)
    sink.run(1, *SECOND)
    assert sink.committed() == once(*FIRST, *SECOND)


@pytest.mark.parametrize(
    ("replay", "words"),
    [
        ((["a", "b"], ["c", "d", "e"]), "with 4 tasks and now has 2"),
        ((["a", "b"], ["c"], ["d"], ["e"]), "rows in 3 tasks and now has rows in 4"),
        ((["a", "b", "c"], [], ["d"], ["e"]), "task 0 had 2 rows and now has 3"),
        (([], ["a", "b"], ["c"], ["d", "e"]), "task 0 had 2 rows and now has 0"),
    ],
)
def test_a_batch_whose_rows_are_split_otherwise_is_refused_when_a_part_of_it_is_committed_and_a_part_is_lost(
    broker: TestBroker, replay: tuple[Rows, ...], words: str
) -> None:
    sink = Sink(broker, timeout_ms=SOON_MS)
    die_at(sink, "EndTxn", 1, 0, *FIRST)
    lose_the_rest(sink, 0)
    with pytest.raises(ReplayDiffers, match=words):
        sink.run(0, *replay)
    assert sink.committed() == once(FIRST[0])


def test_a_batch_that_takes_longer_than_its_transactions_may_is_not_committed_at_all(
    broker: TestBroker,
) -> None:
    sink = Sink(broker, timeout_ms=SOON_MS)
    messages = sink.write(0, *FIRST)
    wait_until_given_up(sink, [each.share.open for each in messages if each and each.share.open])
    with pytest.raises(TransactionLost, match=rf"transaction\.timeout\.ms \({SOON_MS} ms"):
        sink.commit(0, messages)
    sink.writer.abort([*messages], 0)
    assert not sink.committed()


def test_an_attempt_that_was_overtaken_cannot_write_any_more(broker: TestBroker) -> None:
    sink = Sink(broker)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from batches(["a", "b"])
        sink.run(0, ["a", "b"])
        yield from batches(["c"])

    with pytest.raises((ProducerFenced, InvalidProducerEpoch)):
        sink.writer.write_share(0, 0, sink.query_id, overtaken())
    assert sink.committed() == once(["a", "b"])


def test_a_driver_that_was_taken_for_dead_cannot_commit_what_has_been_written_again(
    broker: TestBroker,
) -> None:
    sink = Sink(broker)
    zombie = sink.write(0, *FIRST)
    messages = sink.write(0, *FIRST)
    with pytest.raises(TransactionLost):
        sink.commit(0, zombie)
    sink.writer.abort([*zombie], 0)
    sink.commit(0, messages)
    assert sink.committed() == once(*FIRST)


def test_a_driver_that_was_taken_for_dead_may_commit_while_its_batch_is_about_to_be_written_again(
    broker: TestBroker,
) -> None:
    sink = Sink(broker)
    zombie = sink.write(0, *FIRST)

    def too_late() -> Iterator[pa.RecordBatch]:
        sink.commit(0, zombie)  # after this task has looked, and before it has fenced anybody
        yield from batches(FIRST[0])

    messages = [sink.writer.write_share(0, 0, sink.query_id, too_late()), *sink.write(0, *FIRST)[1:]]
    sink.commit(0, messages)
    assert sink.committed() == once(*FIRST)


def test_there_may_be_more_tasks_than_partitions(broker: TestBroker) -> None:
    sink = Sink(broker, partitions=2)
    tasks = [[f"{task}-{row}" for row in range(3)] for task in range(7)]
    die_at(sink, "EndTxn", 4, 0, *tasks)
    with connect(sink.writer.options) as cluster:
        progress = finish(cluster, sink.query_id, read_progress(cluster, sink.query_id, 0))
        assert progress.is_complete
        assert sorted(progress.markers) == list(range(7))
    sink.run(0, *tasks)
    assert sink.committed() == once(*tasks)


def test_rows_for_several_topics_are_committed_together(broker: TestBroker) -> None:
    sink = Sink(broker)
    other = broker.topic()
    sink.writer = OttlaStreamWriter(WriteOptions(broker.bootstrap))
    rows = pa.record_batch({"topic": [sink.topic, other, sink.topic], "value": [b"a", b"b", b"c"]})
    for _ in range(2):
        messages = [sink.writer.write_share(task, 0, sink.query_id, iter([rows])) for task in range(2)]
        sink.commit(0, [*messages])
    assert sink.committed() == Counter(a=2, c=2)
    assert Counter(values(broker.bootstrap, other)) == Counter(b=2)


def test_a_broker_may_be_killed_between_writing_and_committing() -> None:
    with TestBroker() as broker:
        sink = Sink(broker)
        messages = sink.write(0, *FIRST)
        broker.restart(kill=True)
        sink.commit(0, messages)
        assert sink.committed() == once(*FIRST)
        messages = sink.write(1, *SECOND)
        broker.kill()
        options = sink.writer.options
        sink.writer = OttlaStreamWriter(replace(options, delivery_timeout_ms=200))
        with pytest.raises(ClientError):
            sink.commit(1, messages)
        sink.writer.abort([*messages], 1)
        broker.start()
        sink.writer = OttlaStreamWriter(options)
        sink.run(1, *SECOND)
        assert sink.committed() == once(*FIRST, *SECOND)


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_there_once_whatever_goes_wrong(broker: TestBroker, seed: int) -> None:
    """Batches that are run again until they are through, with a fault for each of their first runs."""
    chance = random.Random(seed)
    sink = Sink(broker, partitions=chance.randint(1, 3))
    wanted: Counter[str] = Counter()
    for batch_id in range(6):
        rows = [f"{batch_id}-{number}" for number in range(chance.randint(0, 8))]
        wanted += once(rows)
        for _ in range(chance.randint(1, 4)):
            tasks = chance.randint(1, 5)  # as when the cluster has another size each time
            shares = [rows[task::tasks] for task in range(tasks)]
            api = chance.choice(["InitProducerId", "Produce", "OffsetFetch", "TxnOffsetCommit", "EndTxn"])
            skip = chance.randint(0, 4)
            if chance.random() < 0.5:
                fault = broker.fail(api, error="UNKNOWN_SERVER_ERROR", skip=skip, times=None)
            else:
                fault = broker.disconnect(api, handled=chance.random() < 0.5, skip=skip)
            with fault, suppress(UnknownServerError):
                if chance.random() < 0.5:
                    sink.run(batch_id, *shares)
                    continue
                # This driver is gone before it can abort anything.
                sink.commit(batch_id, sink.write(batch_id, *shares))
            sink.restart_driver()
        sink.run(batch_id, *(rows[task::3] for task in range(3)))
        assert sink.committed() == wanted
