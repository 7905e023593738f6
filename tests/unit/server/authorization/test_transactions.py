"""What transactions need: each API without a rule, with a part of it, and with the least that does.

The parts of a broker ask each other for a lot while a transaction goes on. None of that is the client's
doing, and none of it needs a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ottla.core.acl import Operation, ResourceType
from ottla.core.types import CONSUMER_OFFSETS
from ottla.protocol import errors
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.server.handlers.add_offsets_to_txn import add_offsets_to_txn
from ottla.server.handlers.add_partitions_to_txn import add_partitions_to_txn
from ottla.server.handlers.describe_transactions import describe_transactions
from ottla.server.handlers.list_transactions import list_transactions
from ottla.server.handlers.offset_fetch import offset_fetch
from ottla.server.handlers.txn_offset_commit import txn_offset_commit
from tests.unit.server.authorization.rules import (
    CLUSTER_ACTION,
    DESCRIBE_GROUP,
    DESCRIBE_ID,
    DESCRIBE_T,
    READ_GROUP,
    READ_T,
    WRITE_ID,
    WRITE_T,
    allow,
    allow_all,
    written,
)
from tests.unit.server.transactions.serving import Producer, ServingNode, run

CLUSTER = errors.ClusterAuthorizationFailed.code
GROUP = errors.GroupAuthorizationFailed.code
ID = errors.TransactionalIdAuthorizationFailed.code
TOPIC = errors.TopicAuthorizationFailed.code
NOT_ATTEMPTED = errors.OperationNotAttempted.code


def tell(path: Path, story: Callable[[ServingNode, Producer], Coroutine[Any, Any, None]]) -> None:
    """With topics `t` and `u`, and a producer `tx` that has its id from before there were rules."""
    serving = ServingNode(path, offsets_topic_num_partitions="2", transaction_state_log_num_partitions="2")

    async def begin(_: ServingNode) -> None:
        await serving.create("t")
        await serving.create("u")
        await story(serving, await Producer(serving).init())

    run(serving, begin)


async def add_partitions(serving: ServingNode, producer: Producer, *topics: str) -> dict[str, int]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
    )
    response = await serving.call(add_partitions_to_txn, request, 3)
    return {
        topic.name: topic.results_by_partition[0].partition_error_code
        for topic in response.results_by_topic_v3_and_below
    }


async def commit_offsets(
    serving: ServingNode, producer: Producer, *topics: str, version: int = 5
) -> dict[str, int]:
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id="g",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
            )
            for name in topics
        ],
    )
    response = await serving.call(txn_offset_commit, request, version)
    return {topic.name: topic.partitions[0].error_code for topic in response.topics}


async def positions(serving: ServingNode) -> dict[str, int]:
    """Those of the group, as one who may do everything reads them."""
    authorizer, serving.node.authorizer = serving.node.authorizer, None
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    (group,) = (await serving.call(offset_fetch, request, 9)).groups
    serving.node.authorizer = authorizer
    return {topic.name: topic.partitions[0].committed_offset for topic in group.topics}


def test_a_client_adds_partitions_of_topics_that_it_may_write_to(tmp_path: Path) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        before = written(serving.node)
        allow(serving.node, DESCRIBE_ID, WRITE_T)
        assert await add_partitions(serving, producer, "t", "u") == {"t": ID, "u": ID}
        allow(serving.node, WRITE_ID, DESCRIBE_T)
        assert await add_partitions(serving, producer, "t") == {"t": TOPIC}
        allow(serving.node, WRITE_ID, WRITE_T)
        # One that cannot be added fails them all, and whether it exists is not told.
        assert await add_partitions(serving, producer, "t", "u", "missing") == {
            "t": NOT_ATTEMPTED,
            "u": TOPIC,
            "missing": TOPIC,
        }
        assert written(serving.node) == before
        assert await add_partitions(serving, producer, "t") == {"t": 0}
        assert written(serving.node) == before + 1

    tell(tmp_path, story)


def test_nobody_but_a_coordinator_adds_internal_topics(tmp_path: Path) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        await serving.node.groups.prepare()
        for rules in ((), (WRITE_ID, WRITE_T, (Operation.WRITE, ResourceType.TOPIC, CONSUMER_OFFSETS))):
            if rules:
                allow(serving.node, *rules)
            assert await add_partitions(serving, producer, "t", CONSUMER_OFFSETS) == {
                "t": NOT_ATTEMPTED,
                CONSUMER_OFFSETS: TOPIC,
            }

    tell(tmp_path, story)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("verify_only", [False, True])
def test_only_brokers_add_for_others(tmp_path: Path, version: int, verify_only: bool) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id="tx",
                    producer_id=producer.id,
                    producer_epoch=producer.epoch,
                    verify_only=verify_only,
                    topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
                )
            ]
        )
        before = written(serving.node)
        allow(serving.node, WRITE_ID, WRITE_T)
        refused = await serving.call(add_partitions_to_txn, request, version)
        assert (refused.error_code, refused.results_by_transaction) == (CLUSTER, [])
        assert written(serving.node) == before
        allow(serving.node, CLUSTER_ACTION)
        done = await serving.call(add_partitions_to_txn, request, version)
        (result,) = done.results_by_transaction[0].topic_results[0].results_by_partition
        expected = errors.TransactionAbortable.code if verify_only else 0
        assert (done.error_code, result.partition_error_code) == (0, expected)

    tell(tmp_path, story)


def test_adding_a_groups_offsets_takes_the_id_and_the_group(tmp_path: Path) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
        )
        before = written(serving.node)
        for rules, error in (((READ_GROUP,), ID), ((DESCRIBE_ID, READ_GROUP), ID), ((WRITE_ID,), GROUP)):
            allow(serving.node, *rules)
            assert (await serving.call(add_offsets_to_txn, request, 4)).error_code == error
        assert (written(serving.node), CONSUMER_OFFSETS in serving.node.image.topics) == (before, False)
        allow(serving.node, WRITE_ID, READ_GROUP)
        assert (await serving.call(add_offsets_to_txn, request, 4)).error_code == 0

    tell(tmp_path, story)


@pytest.mark.parametrize("version", [0, 4, 5])
def test_ending_a_transaction_takes_its_id(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        assert await add_partitions(serving, producer, "t") == {"t": 0}
        before = written(serving.node)
        allow(serving.node, DESCRIBE_ID, WRITE_T)
        assert (await producer.end(commit=True, version=version)).error_code == ID
        assert written(serving.node) == before
        # The markers are the broker's own doing.
        allow(serving.node, WRITE_ID)
        assert (await producer.end(commit=True, version=version)).error_code == 0
        await serving.reaches("tx", "CompleteCommit")
        assert serving.partition("t").log.end_offset == 1

    tell(tmp_path, story)


@pytest.mark.parametrize("version", [3, 5])
def test_positions_in_a_transaction_take_its_id_the_group_and_the_topic(tmp_path: Path, version: int) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        if version < 5:
            request = AddOffsetsToTxnRequest(
                transactional_id="tx", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
            )
            assert (await serving.call(add_offsets_to_txn, request, 3)).error_code == 0
        before = written(serving.node)

        async def commit(*topics: str) -> dict[str, int]:
            return await commit_offsets(serving, producer, *topics, version=version)

        allow(serving.node, READ_GROUP, READ_T)
        assert await commit("t", "u") == {"t": ID, "u": ID}
        allow(serving.node, WRITE_ID, DESCRIBE_GROUP, READ_T)
        assert await commit("t", "u") == {"t": GROUP, "u": GROUP}
        allow(serving.node, WRITE_ID, READ_GROUP, DESCRIBE_T)
        assert await commit("t", "missing") == {"t": TOPIC, "missing": TOPIC}
        assert written(serving.node) == before
        allow(serving.node, WRITE_ID, READ_GROUP, READ_T)
        # What goes wrong with the others does not hide it.
        producer.epoch += 3
        assert await commit("t", "u") == {"t": errors.InvalidProducerEpoch.code, "u": TOPIC}
        producer.epoch -= 3
        assert await commit("t", "u") == {"t": 0, "u": TOPIC}
        assert (await producer.end(commit=True, version=version)).error_code == 0
        allow_all(serving.node)
        await serving.reaches("tx", "CompleteCommit")
        assert await positions(serving) == {"t": 7}

    tell(tmp_path, story)


def test_a_whole_transaction_needs_no_more_than_its_client_does(tmp_path: Path) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        # Consume from t, produce to u: the broker adds the partitions, verifies and writes markers by itself.
        allow(serving.node, WRITE_ID, READ_GROUP, READ_T, (Operation.WRITE, ResourceType.TOPIC, "u"))
        for value in (b"a", b"b"):
            assert (await producer.send("u", value)).error_code == 0
            assert await commit_offsets(serving, producer, "t") == {"t": 0}
            await producer.finish(commit=True)
        allow_all(serving.node)
        assert await serving.values("u") == [b"a", b"b"]
        assert await positions(serving) == {"t": 7}

    tell(tmp_path, story)


def test_a_transaction_is_described_with_the_topics_that_may_be(tmp_path: Path) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        assert await add_partitions(serving, producer, "t", "u") == {"t": 0, "u": 0}
        request = DescribeTransactionsRequest(transactional_ids=["tx", "missing"])

        async def described() -> list[Any]:
            states = (await serving.call(describe_transactions, request, 0)).transaction_states
            return [(each.error_code, [topic.topic for topic in each.topics]) for each in states]

        allow(serving.node, DESCRIBE_T)
        assert await described() == [(ID, []), (ID, [])]
        allow(serving.node, DESCRIBE_ID)
        assert await described() == [(0, []), (ID, [])]
        allow(serving.node, DESCRIBE_ID, DESCRIBE_T)
        assert await described() == [(0, ["t"]), (ID, [])]

    tell(tmp_path, story)


def test_transactional_ids_are_listed_that_may_be_described(tmp_path: Path) -> None:
    async def story(serving: ServingNode, producer: Producer) -> None:
        await Producer(serving, "other").init()

        async def listed() -> list[str]:
            response = await serving.call(list_transactions, ListTransactionsRequest(), 2)
            assert response.error_code == 0
            return sorted(each.transactional_id for each in response.transaction_states)

        assert await listed() == ["other", "tx"]
        allow(serving.node)
        assert await listed() == []
        allow(serving.node, WRITE_ID)
        assert await listed() == ["tx"]

    tell(tmp_path, story)
