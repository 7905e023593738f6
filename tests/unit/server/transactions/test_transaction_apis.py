"""The requests of transactions as clients and tools send them, in every version that there is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.core.types import CONSUMER_OFFSETS
from ottla.protocol import errors
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.server.handlers.add_offsets_to_txn import add_offsets_to_txn
from ottla.server.handlers.add_partitions_to_txn import add_partitions_to_txn
from ottla.server.handlers.end_txn import end_txn
from ottla.server.handlers.init_producer_id import init_producer_id
from ottla.server.handlers.list_transactions import list_transactions
from tests.unit.server.transactions.serving import GatedFiles, Producer, ServingNode, run


def older(producer: Producer, topics: dict[str, list[int]], epoch: int | None = None) -> Any:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch if epoch is None else epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=numbers) for name, numbers in topics.items()
        ],
    )


def codes(results: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, one.partition_index): one.partition_error_code
        for topic in results
        for one in topic.results_by_partition
    }


@pytest.mark.parametrize(("version", "error"), [(v, 47 if v < 4 else 90) for v in range(3, 6)])
def test_a_fenced_producer_hears_it_in_the_words_of_its_version(
    tmp_path: Path, version: int, error: int
) -> None:
    async def story(serving: ServingNode) -> None:
        producer = await Producer(serving).init()
        await Producer(serving).init()
        await Producer(serving).init()
        request = InitProducerIdRequest(
            transactional_id="tx", transaction_timeout_ms=1000, producer_id=producer.id, producer_epoch=0
        )
        response = await serving.call(init_producer_id, request, version)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, errors.InvalidRequest),
        ({"transaction_timeout_ms": 0}, errors.InvalidTransactionTimeout),
        ({"transaction_timeout_ms": 900_001}, errors.InvalidTransactionTimeout),
        ({"producer_id": 5}, errors.InvalidRequest),
        ({"producer_epoch": 5}, errors.InvalidRequest),
    ],
)
def test_what_init_producer_id_refuses(
    tmp_path: Path, fields: dict[str, Any], error: type[errors.KafkaError]
) -> None:
    async def story(serving: ServingNode) -> None:
        given = {"transactional_id": "tx", "transaction_timeout_ms": 1000} | fields
        response = await serving.call(init_producer_id, InitProducerIdRequest(**given), 5)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (error.code, -1, -1)

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize("version", range(4))
def test_a_client_adds_partitions_in_every_version(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 3)
        producer = await Producer(serving).init()
        request = older(producer, {"t": [0, 2]})
        response = await serving.call(add_partitions_to_txn, request, version)
        assert codes(response.results_by_topic_v3_and_below) == {("t", 0): 0, ("t", 2): 0}
        fenced = await serving.call(add_partitions_to_txn, older(producer, {"t": [0]}, 7), version)
        assert codes(fenced.results_by_topic_v3_and_below) == {("t", 0): 90 if version >= 2 else 47}
        topics = (await serving.describe("tx")).topics
        assert [(topic.topic, topic.partitions) for topic in topics] == [("t", [0, 2])]

    run(ServingNode(tmp_path), story)


def test_one_unknown_partition_fails_them_all(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init()
        request = older(producer, {"t": [0, 1], "missing": [0]})
        response = await serving.call(add_partitions_to_txn, request, 3)
        assert codes(response.results_by_topic_v3_and_below) == {
            ("t", 0): errors.OperationNotAttempted.code,
            ("t", 1): errors.UnknownTopicOrPartition.code,
            ("missing", 0): errors.UnknownTopicOrPartition.code,
        }
        assert (await serving.describe("tx")).transaction_state == "Empty"

    run(ServingNode(tmp_path), story)


def test_brokers_add_and_verify_for_many_transactions_at_once(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        producers = [await Producer(serving, f"tx-{number}").init() for number in range(3)]

        def batch(verify_only: bool, *numbers: int) -> AddPartitionsToTxnRequest:
            return AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id=producer.transactional_id,
                        producer_id=producer.id,
                        producer_epoch=producer.epoch,
                        verify_only=verify_only,
                        topics=[AddPartitionsToTxnTopic(name="t", partitions=list(numbers))],
                    )
                    for producer in producers
                ]
            )

        added = await serving.call(add_partitions_to_txn, batch(False, 0), 5)
        verified = await serving.call(add_partitions_to_txn, batch(True, 0, 1), 4)
        for number in range(3):
            result = added.results_by_transaction[number]
            assert (result.transactional_id, codes(result.topic_results)) == (f"tx-{number}", {("t", 0): 0})
            result = verified.results_by_transaction[number]
            assert codes(result.topic_results) == {("t", 0): 0, ("t", 1): errors.TransactionAbortable.code}

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize("version", range(5))
def test_a_groups_offsets_are_a_partition_like_any_other(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        producer = await Producer(serving).init()
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer.id, producer_epoch=0, group_id="readers"
        )
        assert (await serving.call(add_offsets_to_txn, request, version)).error_code == 0
        number = serving.node.groups.partition_for("readers")
        topics = (await serving.describe("tx")).topics
        assert [(topic.topic, topic.partitions) for topic in topics] == [(CONSUMER_OFFSETS, [number])]
        request.producer_epoch = 3
        fenced = await serving.call(add_offsets_to_txn, request, version)
        assert fenced.error_code == (90 if version >= 2 else 47)
        await producer.finish(commit=True)
        assert serving.partition(CONSUMER_OFFSETS, number).log.end_offset == 1  # the marker

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize("version", range(6))
def test_a_transaction_ends_in_every_version(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=13 if version >= 5 else 11).init()
        request = older(producer, {"t": [0]})
        await serving.call(add_partitions_to_txn, request, 3)
        fenced = EndTxnRequest(
            transactional_id="tx", producer_id=producer.id, producer_epoch=9, committed=True
        )
        answer = await serving.call(end_txn, fenced, version)
        assert answer.error_code == (90 if version >= 2 else 47)
        answer = await producer.end(commit=True, version=version)
        assert answer.error_code == 0
        assert (answer.producer_id, answer.producer_epoch) == ((producer.id, 1) if version >= 5 else (-1, -1))
        await serving.reaches("tx", "CompleteCommit")

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize("handler", [end_txn, add_offsets_to_txn])
def test_an_empty_transactional_id_is_refused(tmp_path: Path, handler: Any) -> None:
    async def story(serving: ServingNode) -> None:
        request = EndTxnRequest() if handler is end_txn else AddOffsetsToTxnRequest(group_id="g")
        assert (await serving.call(handler, request, 4)).error_code == errors.InvalidRequest.code

    run(ServingNode(tmp_path), story)


def test_a_transaction_is_described(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t", 2)
        await serving.create("s")
        producer = await Producer(serving).init(timeout_ms=12_345)
        await producer.send("t", b"a", index=1)
        await producer.send("s", b"a")
        state = await serving.describe("tx")
        assert (state.error_code, state.transactional_id, state.transaction_state) == (0, "tx", "Ongoing")
        assert (state.producer_id, state.producer_epoch) == (producer.id, 0)
        assert state.transaction_timeout_ms == 12_345
        assert 0 < state.transaction_start_time_ms <= serving.node.clock.wall_ms()
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [("s", [0]), ("t", [1])]
        assert (await serving.describe("other")).error_code == errors.TransactionalIdNotFound.code
        assert (await serving.describe("")).error_code == errors.InvalidRequest.code

    run(ServingNode(tmp_path), story)


@pytest.mark.parametrize(
    ("fields", "expected", "unknown"),
    [
        ({}, {"idle", "open", "done"}, []),
        ({"state_filters": ["Ongoing"]}, {"open"}, []),
        ({"state_filters": ["Empty", "CompleteCommit"]}, {"idle", "done"}, []),
        ({"state_filters": ["Ongoing", "Nonsense"]}, {"open"}, ["Nonsense"]),
        ({"state_filters": ["Nonsense"]}, set(), ["Nonsense"]),
        ({"producer_id_filters": [1]}, {"open"}, []),
        ({"producer_id_filters": [77]}, set(), []),
        ({"duration_filter": 3_600_000}, {"idle"}, []),  # an id that never began is older than anything
        ({"transactional_id_pattern": "o.*n|idle"}, {"idle", "open"}, []),
        ({"transactional_id_pattern": "pe"}, set(), []),
        ({"transactional_id_pattern": ""}, {"idle", "open", "done"}, []),
    ],
)
def test_transactions_are_listed(
    tmp_path: Path, fields: dict[str, Any], expected: set[str], unknown: list[str]
) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        await Producer(serving, "idle").init()
        opened = await Producer(serving, "open").init()
        await opened.send("t", b"a")
        done = await Producer(serving, "done").init()
        await done.send("t", b"b")
        await done.finish(commit=True)
        response = await serving.call(list_transactions, ListTransactionsRequest(**fields), 2)
        assert response.error_code == 0
        assert {state.transactional_id for state in response.transaction_states} == expected
        assert response.unknown_state_filters == unknown

    run(ServingNode(tmp_path), story)


def test_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        request = ListTransactionsRequest(transactional_id_pattern="(")
        response = await serving.call(list_transactions, request, 2)
        assert response.error_code == errors.InvalidRegularExpression.code

    run(ServingNode(tmp_path), story)


def test_a_hung_transaction_is_aborted_when_its_time_is_up(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving).init(timeout_ms=50)
        await producer.send("t", b"a")
        log = serving.partition("t").log
        assert log.last_stable_offset == 0
        await serving.reaches("tx", "CompleteAbort")
        assert log.last_stable_offset == log.end_offset == 2
        assert (await producer.send("t", b"b")).error_code == errors.InvalidProducerEpoch.code
        assert (await producer.end(commit=True)).error_code == errors.InvalidTxnState.code

    run(ServingNode(tmp_path), story)


def test_two_producers_of_one_id_take_turns_by_fencing(tmp_path: Path) -> None:
    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        zombie = await Producer(serving).init()
        await zombie.send("t", b"zombie")
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
        while (response := await serving.call(init_producer_id, request, 5)).error_code:
            assert response.error_code == errors.ConcurrentTransactions.code
            await asyncio.sleep(0.001)
        assert response.producer_epoch == 2
        assert (await zombie.end(commit=True)).error_code == errors.ProducerFenced.code
        assert (await zombie.send("t", b"more")).error_code == errors.InvalidProducerEpoch.code
        assert await serving.values("t") == []

    run(ServingNode(tmp_path), story)


def test_the_next_transaction_may_begin_as_soon_as_the_last_is_over(tmp_path: Path) -> None:
    """Clients ask before the markers are written, and would pause for long if they were refused."""
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=11).init()
        await serving.call(add_partitions_to_txn, older(producer, {"t": [0]}), 3)
        await producer.send("t", b"a")
        files.shut()
        await producer.end(commit=True)
        offsets = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer.id, producer_epoch=0, group_id="readers"
        )
        asked = [
            serving.start(add_partitions_to_txn, older(producer, {"t": [0]}), 3),
            serving.start(add_offsets_to_txn, offsets, 3),
        ]
        await files.somebody_syncs()
        assert not any(answer.done() for answer in asked)
        files.lift()
        assert codes((await asked[0]).results_by_topic_v3_and_below) == {("t", 0): 0}
        assert (await asked[1]).error_code == 0

    patient = {"add_partitions_to_txn_retry_backoff_max_ms": "30000"}
    run(ServingNode(tmp_path, files, **patient), story)


def test_but_not_before(tmp_path: Path) -> None:
    files = GatedFiles("t-0")

    async def story(serving: ServingNode) -> None:
        await serving.create("t")
        producer = await Producer(serving, version=11).init()
        await serving.call(add_partitions_to_txn, older(producer, {"t": [0]}), 3)
        await producer.send("t", b"a")
        files.shut()
        await producer.end(commit=True)
        await files.somebody_syncs()
        response = await serving.call(add_partitions_to_txn, older(producer, {"t": [0]}), 3)
        error = errors.ConcurrentTransactions.code
        assert codes(response.results_by_topic_v3_and_below) == {("t", 0): error}
        files.lift()

    run(ServingNode(tmp_path, files, add_partitions_to_txn_retry_backoff_max_ms="0"), story)
