"""Transactional batches: which are appended at once, which wait for the coordinator, and which not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.core.types import TRANSACTION_STATE, TopicPartition
from ottla.protocol import errors
from ottla.protocol.batch import iter_batches
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.server.context import Disconnect
from ottla.server.handlers.add_partitions_to_txn import add_partitions_to_txn
from ottla.server.handlers.fetch import fetch
from ottla.server.handlers.write_txn_markers import write_txn_markers
from tests.unit.server.transactions.serving import LONG_S, GatedFiles, Producer, ServingNode, run, until

OLD, VERIFIED, ADDED = 7, 11, 12


async def add(producer: Producer, topic: str, *numbers: int) -> None:
    """What a client of version 1 says before it writes to a partition."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(numbers))],
    )
    response = await producer.serving.call(add_partitions_to_txn, request, 3)
    codes = [
        partition.partition_error_code
        for result in response.results_by_topic_v3_and_below
        for partition in result.results_by_partition
    ]
    assert not any(codes), codes


def start_marker(producer: Producer, topic: str) -> asyncio.Future[WriteTxnMarkersResponse]:
    """A marker out of nowhere, as an administrator or another coordinator would write it."""
    marker = WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        coordinator_epoch=0,
    )
    return producer.serving.start(write_txn_markers, WriteTxnMarkersRequest(markers=[marker]), 1)


def waiting_for_markers(producer: Producer) -> set[asyncio.Future[None]]:
    markers = producer.serving.node.coordinators._markers
    assert markers is not None
    return markers._current[producer.transactional_id].waiters


@pytest.mark.parametrize("version", [OLD, VERIFIED])
def test_a_partition_that_was_added_takes_the_batch(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        producer = await Producer(serving, version=version).init()
        await add(producer, "t", 0)
        assert (await producer.send("t", b"a")).error_code == 0
        assert (await producer.send("t", b"b")).base_offset == 1
        assert await serving.values("t") == []
        await producer.finish(commit=True)
        assert await serving.values("t") == [b"a", b"b"]

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize(
    ("version", "error"),
    [(OLD, errors.InvalidTxnState), (10, errors.InvalidTxnState), (VERIFIED, errors.TransactionAbortable)],
)
def test_a_partition_that_was_not_added_does_not(
    tmp_path: Path, version: int, error: type[errors.KafkaError]
) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        producer = await Producer(serving, version=version).init()
        await add(producer, "t", 1)
        assert (await producer.send("t", b"a")).error_code == error.code
        assert serving.partition("t").log.end_offset == 0

    run(ServingNode(tmp_path), story)


def test_a_new_client_has_its_partitions_added_by_writing_to_them(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        producer = await Producer(serving, version=ADDED).init()
        assert (await producer.send("t", b"a", index=1)).error_code == 0
        state = await serving.describe("tx")
        assert state.transaction_state == "Ongoing"
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", [1])]
        await producer.finish(commit=False)
        assert await serving.values("t", index=1) == []
        assert producer.epoch == 1
        await producer.send("t", b"b", index=1)
        await producer.finish(commit=True)
        assert await serving.values("t", index=1) == [b"b"]

    run(ServingNode(tmp_path), story)


def test_one_request_adds_all_its_partitions(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 3)
        producer = await Producer(serving).init()
        records = {TopicPartition("t", index): producer.batch(b"%d" % index) for index in range(3)}
        response = await producer.start_records(records)
        assert [p.error_code for t in response.responses for p in t.partition_responses] == [0, 0, 0]
        log = serving.partition(TRANSACTION_STATE, serving.node.transactions.partition_for("tx")).log
        assert log.end_offset == 2  # Empty, Ongoing

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize("version", [OLD, VERIFIED, ADDED])
def test_who_may_not_write(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=version).init()
        await add(producer, "t", 0)
        nobody = await producer.send("t", b"a", sequence=0, transactional_id=None)
        assert nobody.error_code == errors.TransactionalIdAuthorizationFailed.code
        unknown = await producer.send("t", b"a", sequence=0, transactional_id="other")
        assert unknown.error_code == errors.InvalidProducerIdMapping.code
        producer.epoch += 1
        assert (await producer.send("t", b"a", sequence=0)).error_code == errors.InvalidProducerEpoch.code
        producer.id += 1
        assert (await producer.send("t", b"a", sequence=0)).error_code == errors.InvalidProducerIdMapping.code
        assert serving.partition("t").log.end_offset == 0
        assert not serving.partition("t").turns

    run(ServingNode(tmp_path), story)


def test_nothing_is_written_outside_of_an_open_transaction(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        await producer.send("t", b"a")
        refused = await producer.send("t", b"b", transactional=False)
        assert refused.error_code == errors.InvalidTxnState.code

    run(ServingNode(tmp_path), story)


def test_a_fenced_producer_cannot_write(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        zombie = await Producer(serving).init()
        await zombie.send("t", b"a")
        await zombie.end(commit=False)
        zombie.epoch -= 1
        await serving.reaches("tx", "CompleteAbort")
        assert (await zombie.send("t", b"b")).error_code == errors.InvalidProducerEpoch.code

    run(ServingNode(tmp_path), story)


def test_a_batch_of_an_open_transaction_asks_nobody(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        await producer.send("t", b"a", acks=1)
        await serving.node.transactions.close()
        assert producer.start("t", b"b", acks=1).done()
        assert serving.partition("t").log.end_offset == 2

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize("version", [OLD, VERIFIED, ADDED])
def test_a_coordinator_that_is_not_there_is_tried_again(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=version).init()
        await serving.node.transactions.close()
        answer = await producer.send("t", b"a")
        assert answer.error_code == errors.NotEnoughReplicas.code
        if version >= 8:
            assert answer.error_message is not None
            assert answer.error_message.endswith("Underlying error: NOT_COORDINATOR")

    run(ServingNode(tmp_path), story)


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=OLD).init()
        assert (await producer.send("t", b"a")).error_code == 0

    run(ServingNode(tmp_path, transaction_partition_verification_enable="false"), story)


def test_acks_0_hangs_up_when_the_coordinator_refuses(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        assert await producer.start("t", b"a", acks=0) is None
        assert serving.partition("t").log.end_offset == 1
        producer.epoch += 1
        with pytest.raises(Disconnect):
            await producer.start("t", b"a", acks=0)

    run(ServingNode(tmp_path), story)


# --- order ---------------------------------------------------------------------------------------


def test_batches_keep_their_order_while_the_first_is_verified(tmp_path: Path) -> None:
    files = GatedFiles(TRANSACTION_STATE)

    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        producer = await Producer(serving).init()
        files.shut()
        sent = [producer.start("t", b"%d" % number) for number in range(3)]
        other = producer.start("t", b"other", index=1)
        await files.somebody_syncs()
        assert not any(answer.done() for answer in [*sent, other])
        assert serving.partition("t").log.end_offset == 0
        files.lift()
        answers = [(await answer).responses[0].partition_responses[0] for answer in sent]
        assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 1), (0, 2)]
        await other
        assert not serving.partition("t").turns
        await producer.finish(commit=True)
        assert await serving.values("t") == [b"0", b"1", b"2"]

    run(ServingNode(tmp_path, files), story)


def test_what_comes_when_the_first_is_appended_still_waits_for_the_second(tmp_path: Path) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        first = producer.start("t", b"0", acks=1)
        second = producer.start("t", b"1", acks=1)
        await until(lambda: serving.partition("t").log.end_offset > 0)
        third = producer.start("t", b"2", acks=1)
        for answer in (first, second, third):
            assert (await answer).responses[0].partition_responses[0].error_code == 0

    run(ServingNode(tmp_path, files), story)


def test_a_client_that_hangs_up_leaves_its_turn(tmp_path: Path) -> None:
    files = GatedFiles(TRANSACTION_STATE)

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        files.shut()
        first, second = producer.start("t", b"a"), producer.start("t", b"a", sequence=0)
        await files.somebody_syncs()
        first.cancel()
        files.lift()
        assert (await second).responses[0].partition_responses[0].error_code == 0
        assert not serving.partition("t").turns
        assert serving.partition("t").log.end_offset == 1

    run(ServingNode(tmp_path, files), story)


def test_the_same_partition_twice_in_a_request_does_not_wait_for_itself(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        request = producer.start_records({TopicPartition("t", 0): producer.batch(b"a")})
        await request
        await producer.finish(commit=True)

        from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
        from ottla.server.handlers.produce import produce

        twice = [
            PartitionProduceData(index=0, records=producer.batch(b"b", sequence=number))
            for number in range(2)
        ]
        topic_id = serving.node.image.topics["t"].id
        response = await serving.start(
            produce,
            ProduceRequest(
                transactional_id="tx",
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(topic_id=topic_id, partition_data=twice)],
            ),
            13,
        )
        assert [answer.error_code for answer in response.responses[0].partition_responses] == [0, 0]

    run(ServingNode(tmp_path), story)


def test_a_later_batch_does_not_overtake_one_that_is_to_be_sent_again(tmp_path: Path) -> None:
    """Otherwise the first would be out of order for ever."""

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=OLD).init()
        assert (await producer.send("t", b"0", sequence=0)).error_code == errors.InvalidTxnState.code
        await add(producer, "t", 0)
        later = await producer.send("t", b"1", sequence=1)
        assert later.error_code == errors.OutOfOrderSequenceNumber.code
        assert (await producer.send("t", b"0", sequence=0)).error_code == 0
        assert (await producer.send("t", b"1", sequence=1)).error_code == 0

    run(ServingNode(tmp_path), story)


def test_a_new_client_begins_each_transaction_with_sequence_0(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        answer = await producer.send("t", b"a", sequence=5)
        assert answer.error_code == errors.OutOfOrderSequenceNumber.code
        old = await Producer(serving, "old", version=OLD).init()
        await add(old, "t", 0)
        assert (await old.send("t", b"a", sequence=5)).error_code == 0

    run(ServingNode(tmp_path), story)


# --- the end of one transaction and the begin of the next --------------------------------------------


def test_an_answer_that_comes_after_the_end_of_the_transaction_is_too_late(tmp_path: Path) -> None:
    """Otherwise the batch would open a transaction that nobody ends."""
    files = GatedFiles(TRANSACTION_STATE)

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        files.shut()
        sent = producer.start("t", b"a")
        await files.somebody_syncs()
        marker = start_marker(producer, "t")
        files.lift()
        assert (await marker).markers[0].topics[0].partitions[0].error_code == 0
        answer = (await sent).responses[0].partition_responses[0]
        assert answer.error_code == errors.InvalidTxnState.code
        log = serving.partition("t").log
        assert log.last_stable_offset == log.end_offset == 1

    run(ServingNode(tmp_path, files), story)


def test_the_next_transaction_waits_a_little_for_the_markers_of_the_last(tmp_path: Path) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        await producer.send("t", b"a")
        files.shut()
        await producer.end(commit=True)
        await files.somebody_syncs()
        sent = producer.start("t", b"b", acks=1)
        assert not sent.done()
        files.lift()
        assert (await sent).responses[0].partition_responses[0].error_code == 0
        await producer.finish(commit=True)
        assert await serving.values("t") == [b"a", b"b"]

    patient = {"add_partitions_to_txn_retry_backoff_max_ms": "30000"}
    run(ServingNode(tmp_path, files, **patient), story)


async def held_up(serving: ServingNode, files: GatedFiles) -> tuple[Producer, asyncio.Future[Any]]:
    """A producer whose next transaction waits for the markers of the last, which the gate holds up."""
    await serving.create("t")
    producer = await Producer(serving).init()
    await producer.send("t", b"a")
    files.shut()
    await producer.end(commit=True)
    await files.somebody_syncs()
    sent = producer.start("t", b"b", acks=1)
    await until(lambda: bool(waiting_for_markers(producer)))
    await asyncio.sleep(0)  # a handler's wait passes from the connection's turn to its task
    return producer, sent


def test_the_end_of_a_transaction_and_the_beginning_of_the_next_share_a_sync(tmp_path: Path) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        _, sent = await held_up(serving, files)
        files.synced.clear()
        files.lift()
        assert (await sent).responses[0].partition_responses[0].error_code == 0
        assert [TRANSACTION_STATE in path for path in files.synced].count(True) == 1

    run(ServingNode(tmp_path, files, add_partitions_to_txn_retry_backoff_max_ms="30000"), story)


def test_a_client_that_hangs_up_does_not_wait_for_the_last_transaction(tmp_path: Path) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        producer, sent = await held_up(serving, files)
        sent.cancel()
        await until(sent.done)
        await until(lambda: not waiting_for_markers(producer))
        files.lift()
        await serving.reaches("tx", "CompleteCommit")
        assert await serving.values("t") == [b"a"]

    run(ServingNode(tmp_path, files, add_partitions_to_txn_retry_backoff_max_ms="30000"), story)


def test_who_has_waited_long_enough_leaves_nothing_behind(tmp_path: Path) -> None:
    """Markers may take for ever, and a client asks again and again."""
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        producer, sent = await held_up(serving, files)
        for _ in range(3):
            answer = (await sent).responses[0].partition_responses[0]
            assert answer.error_code == errors.ConcurrentTransactions.code
            assert not waiting_for_markers(producer)
            sent = producer.start("t", b"b", acks=1)
        await sent
        files.lift()

    run(ServingNode(tmp_path, files, add_partitions_to_txn_retry_backoff_max_ms="20"), story)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (OLD, errors.NotEnoughReplicas),
        (VERIFIED, errors.NotEnoughReplicas),
        (ADDED, errors.ConcurrentTransactions),
    ],
)
def test_in_the_end_the_client_is_told_that_the_last_transaction_is_not_over(
    tmp_path: Path, version: int, error: type[errors.KafkaError]
) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=version).init()
        await add(producer, "t", 0)
        await producer.send("t", b"a")
        files.shut()
        await producer.end(commit=True)
        await files.somebody_syncs()
        assert (await producer.send("t", b"b", acks=1)).error_code == error.code
        files.lift()

    run(ServingNode(tmp_path, files, add_partitions_to_txn_retry_backoff_max_ms="0"), story)


def test_a_delayed_batch_of_the_last_transaction_is_refused(tmp_path: Path) -> None:
    """C17: it must neither join the next transaction nor open one that hangs."""

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        await producer.send("t", b"a")
        delayed = producer.batch(b"late", sequence=1)
        await producer.finish(commit=True)
        for next_is_open in (False, True):
            if next_is_open:
                await producer.send("t", b"b")
            response = await producer.start_records({TopicPartition("t", 0): bytearray(delayed)})
            answer = response.responses[0].partition_responses[0]
            assert answer.error_code == errors.InvalidProducerEpoch.code
        await producer.finish(commit=True)
        assert await serving.values("t") == [b"a", b"b"]

    run(ServingNode(tmp_path), story)


def test_a_batch_is_copied_before_its_handler_waits(tmp_path: Path) -> None:
    """The bytes it came in are used again by then, as the node of these tests does."""

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        await producer.send("t", b"precious")
        data = await serving.read("t", committed=False)
        ((header, _),) = iter_batches(data.records or b"")
        assert header.producer_id == producer.id
        await producer.finish(commit=True)
        assert await serving.values("t") == [b"precious"]

    run(ServingNode(tmp_path), story)


def test_a_waiting_reader_of_committed_records_is_woken_by_the_commit(tmp_path: Path) -> None:
    """The marker is small, but what it sets free is what the reader waits for."""

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        await producer.send("t", b"a" * 2_000)
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=1000 * LONG_S,
            min_bytes=1_500,
            isolation_level=1,
            topics=[FetchTopic(topic="t", partitions=[wanted])],
        )
        waiting = serving.start(fetch, request, 12)
        await producer.send("t", b"b")
        assert not waiting.done()
        await producer.end(commit=True)
        data = (await waiting).responses[0].partitions[0]
        assert [header.record_count for header, _ in iter_batches(data.records)] == [1, 1, 1]

    run(ServingNode(tmp_path), story)
