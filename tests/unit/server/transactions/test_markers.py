"""Markers: written by leaders, sent by coordinators, until a transaction is over everywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.core.types import TRANSACTION_STATE, TopicPartition
from ottla.protocol import errors
from ottla.protocol.control import read_end_transaction
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.runtime.markers import Markers
from ottla.runtime.write_markers import write_markers
from ottla.server.handlers.write_txn_markers import write_txn_markers
from tests.unit.server.transactions.serving import GatedFiles, Producer, ServingNode, run, until


class Leaders:
    """Brokers that are asked to write markers, and do as they are told to: an error first, then the work."""

    def __init__(self, serving: ServingNode, *refusals: dict[TopicPartition, int] | Exception) -> None:
        self._serving = serving
        self._refusals = list(refusals)
        self.asked: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.markers = serving.node.coordinators._markers = Markers(serving.node, self.send)

    async def send(self, leader: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.asked.append((leader, request))
        refusal = self._refusals.pop(0) if self._refusals else None
        if isinstance(refusal, Exception):
            raise refusal
        if refusal is None:
            return await write_markers(request, self._serving.node)
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=refusal[TopicPartition(topic.name, index)],
                                )
                                for index in topic.partition_indexes
                                if TopicPartition(topic.name, index) in refusal
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def partitions(self, number: int) -> list[tuple[str, list[int]]]:
        (marker,) = self.asked[number][1].markers
        return [(topic.name, topic.partition_indexes) for topic in marker.topics]


async def open_transaction(serving: ServingNode, *indexes: int) -> Producer:
    producer = await Producer(serving).init()
    for index in indexes:
        assert (await producer.send("t", b"a", index=index)).error_code == 0
    return producer


# --- as a leader ---------------------------------------------------------------------------------


def markers_for(producer: Producer, *indexes: int, epoch: int, **fields: Any) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=epoch,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=list(indexes))],
        **fields,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def codes(response: WriteTxnMarkersResponse) -> list[int]:
    return [
        one.error_code for marker in response.markers for topic in marker.topics for one in topic.partitions
    ]


@pytest.mark.parametrize("version", range(3))
def test_a_marker_ends_the_transaction_in_its_partition(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        producer = await open_transaction(serving, 0, 1)
        request = markers_for(producer, 0, 7, epoch=1, transaction_result=True, coordinator_epoch=5)
        response = await serving.call(write_txn_markers, request, version)
        assert codes(response) == [0, errors.UnknownTopicOrPartition.code]
        log = serving.partition("t").log
        assert (log.end_offset, log.last_stable_offset) == (2, 2)
        marker = read_end_transaction(log.read(1, 1 << 20, 2))
        assert marker == (producer.id, 1, 5, True)
        assert serving.partition("t", 1).log.last_stable_offset == 0

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize(
    ("epoch", "transaction_version", "error"),
    [
        (1, 0, errors.InvalidProducerEpoch),
        (2, 0, None),
        # Every transaction of version 2 ends with an epoch above that of its records.
        (2, 2, errors.InvalidProducerEpoch),
        (3, 2, None),
    ],
)
def test_a_marker_of_an_old_epoch_is_refused(
    tmp_path: Path, epoch: int, transaction_version: int, error: type[errors.KafkaError] | None
) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        await Producer(serving).init()
        await Producer(serving).init()
        producer = await open_transaction(serving, 0)
        assert producer.epoch == 2
        request = markers_for(producer, 0, epoch=epoch, transaction_version=transaction_version)
        response = await serving.call(write_txn_markers, request, 2)
        assert codes(response) == [0 if error is None else error.code]
        assert serving.partition("t").log.end_offset == (2 if error is None else 1)

    run(ServingNode(tmp_path), story)


def test_the_marker_of_an_old_coordinator_is_refused(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await open_transaction(serving, 0)
        for coordinator_epoch, error in ((4, 0), (3, errors.TransactionCoordinatorFenced.code), (4, 0)):
            request = markers_for(producer, 0, epoch=1, coordinator_epoch=coordinator_epoch)
            assert codes(await serving.call(write_txn_markers, request, 2)) == [error]

    run(ServingNode(tmp_path), story)


def test_a_marker_is_answered_when_it_is_safe(tmp_path: Path) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await open_transaction(serving, 0)
        files.shut()
        answer = serving.start(write_txn_markers, markers_for(producer, 0, epoch=1), 2)
        await files.somebody_syncs()
        assert not answer.done()
        files.lift()
        assert codes(await answer) == [0]

    run(ServingNode(tmp_path, files), story)


# --- as a coordinator ----------------------------------------------------------------------------


def test_markers_carry_what_partitions_need_to_know(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 3)
        leaders = Leaders(serving)
        producer = await open_transaction(serving, 0, 2)
        own = serving.partition("__transaction_state", serving.node.transactions.partition_for("tx"))
        await producer.finish(commit=True)
        ((leader, request),) = leaders.asked
        assert leader == serving.node.node_id
        (marker,) = request.markers
        assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (
            producer.id,
            1,
            True,
        )
        assert (marker.coordinator_epoch, marker.transaction_version) == (own.leader_epoch, 2)
        assert leaders.partitions(0) == [("t", [0, 2])]

    run(ServingNode(tmp_path), story)


def test_markers_of_transactions_that_end_together_travel_together(tmp_path: Path) -> None:
    files = GatedFiles("__transaction_state")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        leaders = Leaders(serving)
        producers = [await Producer(serving, f"tx-{number}").init() for number in range(20)]
        for producer in producers:
            assert (await producer.send("t", b"a")).error_code == 0
        files.shut()
        ends = [asyncio.ensure_future(producer.end(commit=True)) for producer in producers]
        await files.somebody_syncs()
        files.lift()
        await asyncio.gather(*ends)
        for producer in producers:
            await serving.reaches(producer.transactional_id, "CompleteCommit")
        assert len(leaders.asked) < 20
        assert sum(len(request.markers) for _, request in leaders.asked) == 20
        assert len(await serving.values("t")) == 20

    run(ServingNode(tmp_path, files), story)


@pytest.mark.parametrize(
    "refusal",
    [
        errors.UnknownTopicOrPartition.code,
        errors.NotLeaderOrFollower.code,
        errors.NotEnoughReplicas.code,
        errors.NotEnoughReplicasAfterAppend.code,
        errors.RequestTimedOut.code,
        errors.KafkaStorageError.code,
        errors.UnknownServerError.code,
        None,  # it says nothing about the partition
        OSError("the connection is lost"),
    ],
)
def test_a_marker_is_sent_again_until_it_is_written(tmp_path: Path, refusal: Any) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        first, second = TopicPartition("t", 0), TopicPartition("t", 1)
        answer: Any = refusal
        if not isinstance(refusal, Exception):
            answer = {first: 0} if refusal is None else {first: 0, second: refusal}
        leaders = Leaders(serving, answer, answer)
        producer = await open_transaction(serving, 0, 1)
        await producer.finish(commit=True)
        assert len(leaders.asked) == 3
        again = [("t", [0, 1])] if isinstance(refusal, Exception) else [("t", [1])]
        assert leaders.partitions(2) == again
        assert serving.partition("t", 1).log.last_stable_offset == 2

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize(
    "refusal",
    [errors.InvalidProducerEpoch, errors.UnsupportedForMessageFormat, errors.UnsupportedVersion],
)
def test_a_partition_that_needs_no_marker_does_not_hold_up_the_rest(
    tmp_path: Path, refusal: type[errors.KafkaError]
) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        leaders = Leaders(serving, {TopicPartition("t", 0): refusal.code})
        producer = await open_transaction(serving, 0)
        await producer.finish(commit=True)
        assert len(leaders.asked) == 1

    run(ServingNode(tmp_path), story)


def test_a_fenced_coordinator_leaves_the_transaction_to_the_next(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        leaders = Leaders(serving, {TopicPartition("t", 0): errors.TransactionCoordinatorFenced.code})
        producer = await open_transaction(serving, 0)
        await producer.end(commit=True)
        await until(lambda: len(leaders.asked) == 1 and not leaders.markers._tasks)
        assert not leaders.markers._paused
        assert (await serving.describe("tx")).transaction_state == "PrepareCommit"

    run(ServingNode(tmp_path), story)


def test_a_deleted_topic_needs_no_markers(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        await serving.create("doomed")
        producer = await open_transaction(serving, 0)
        assert (await producer.send("doomed", b"a")).error_code == 0
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="doomed")], timeout_ms=1000)
        await serving.node.quorum.submit(gone, 6)
        await serving.node.caught_up()
        await producer.finish(commit=True)
        assert await serving.values("t") == [b"a"]

    run(ServingNode(tmp_path), story)


def test_the_end_of_a_transaction_survives_a_restart(tmp_path: Path) -> None:
    """The decision is in the log, the markers are not: whoever comes back writes them."""

    async def before(serving: ServingNode) -> None:
        await serving.create("t", 2)
        Leaders(serving, *[OSError("nobody there")] * 1000)
        producer = await open_transaction(serving, 0, 1)
        assert (await producer.end(commit=True)).error_code == 0
        for index in range(2):
            assert serving.partition("t", index).log.last_stable_offset == 0

    async def after(serving: ServingNode) -> None:
        await serving.reaches("tx", "CompleteCommit")
        assert await serving.values("t", index=0) == [b"a"]
        assert await serving.values("t", index=1) == [b"a"]

    run(ServingNode(tmp_path), before)
    run(ServingNode(tmp_path), after)


def test_an_open_transaction_times_out_after_a_restart(tmp_path: Path) -> None:
    async def before(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init(timeout_ms=200)
        await producer.send("t", b"a")

    async def after(serving: ServingNode) -> None:
        await serving.reaches("tx", "CompleteAbort")
        log = serving.partition("t").log
        assert log.last_stable_offset == log.end_offset == 2
        assert await serving.values("t") == []

    run(ServingNode(tmp_path), before)
    run(ServingNode(tmp_path), after)


def test_a_coordinator_that_begins_anew_sends_no_marker_too_many(tmp_path: Path) -> None:
    """A marker that is sent once more when the next transaction is open would end that one."""

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        first_is_asked, let_first_go = asyncio.Event(), asyncio.Event()
        leaders = Leaders(serving)
        send, sent = leaders.send, 0

        async def slow_at_first(leader: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
            nonlocal sent
            sent += 1
            if sent == 1:
                first_is_asked.set()
                await let_first_go.wait()
                raise OSError("the answer is lost")
            return await send(leader, request)

        leaders.markers._send_to = slow_at_first
        producer = await Producer(serving, version=11).init()
        partition = serving.partition(TRANSACTION_STATE, serving.node.transactions.partition_for("tx"))
        await _add(producer)
        await producer.send("t", b"a")
        await producer.end(commit=True)
        await first_is_asked.wait()
        serving.node.transactions._lead(partition)  # as after a failed write: the same leader, from the log
        await serving.reaches("tx", "CompleteCommit")
        await _add(producer)
        await producer.send("t", b"b")
        let_first_go.set()
        await until(lambda: not leaders.markers._tasks)
        assert not leaders.markers._paused
        assert not leaders.markers._current
        assert sent == 2
        assert serving.partition("t").log.last_stable_offset == 2

    run(ServingNode(tmp_path), story)


async def _add(producer: Producer) -> None:
    outcome = await producer.serving.node.transactions.call(
        "tx",
        lambda machine, now, ticket: machine.add_partitions(
            "tx", producer.id, producer.epoch, [TopicPartition("t", 0)], now
        ),
    )
    assert outcome == {TopicPartition("t", 0): 0}
