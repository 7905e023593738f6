"""Transactions whose parts may be in different processes: one writes and leaves it open, another ends it.

A broker of `transaction.version` 2 (Kafka 4) adds partitions to a transaction when records come for them; an
older one has to be told first. Which it is, its ApiVersions response says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.blocking.offsets import by_topic, position_of
from ottla.client.blocking.producer import IdempotentProducer
from ottla.client.errors import check
from ottla.client.exchange import TRANSACTION_VERSION
from ottla.client.topology import GROUP, TRANSACTION
from ottla.core.types import TopicPartition
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

__all__ = ["IdempotentProducer", "TransactionHandle", "TransactionalProducer", "end_transaction"]

# The newest versions whose meaning is that of `transaction.version` 1.
_PRODUCE_V1: Final = 11
_END_TXN_V1: Final = 4
_TXN_OFFSET_COMMIT_V1: Final = 4
_ADD_PARTITIONS_BY_CLIENTS: Final = 3


class TransactionHandle(NamedTuple):
    """What it takes to end a transaction, wherever it was begun."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class TransactionalProducer(IdempotentProducer):
    """`TransactionalProducer.begin(cluster, id, timeout_ms)`, `produce`, `flush`; then `end_transaction` with
    its `handle`, here or elsewhere. The transaction starts with the first batch or offset."""

    def __init__(self, cluster: BlockingCluster, handle: TransactionHandle, *, implicit: bool) -> None:
        super().__init__(cluster, handle.producer_id, handle.producer_epoch)
        self.transactional_id = handle.transactional_id
        self.handle = handle
        self.is_open = False
        """Whether there is a transaction to end."""
        self._implicit = implicit
        self._added: set[TopicPartition] = set()
        if not implicit:
            self.at_most = _PRODUCE_V1

    @classmethod
    def begin(cls, cluster: BlockingCluster, transactional_id: str, timeout_ms: int = 60_000) -> Self:
        """The producer of this id from now on: whoever was it before is fenced, and what they left open is
        aborted."""
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)

        def once() -> tuple[InitProducerIdResponse, bool]:
            connection = cluster.coordinator(transactional_id, TRANSACTION)
            response = connection.ask(request, InitProducerIdResponse)
            check(response.error_code, f"transactional id {transactional_id}")
            return response, _is_implicit(connection)

        response, implicit = cluster.persist(once)
        handle = TransactionHandle(transactional_id, response.producer_id, response.producer_epoch)
        return cls(cluster, handle, implicit=implicit)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int | tuple[int, str]]) -> None:
        """Store positions of a group as part of the transaction: they count when it is committed."""
        self._check_usable()
        self.is_open = True
        if not self._implicit:
            self._add_offsets(group)
        topics = [
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=number, committed_offset=offset, committed_metadata=metadata
                    )
                    for number in numbers
                    for offset, metadata in [position_of(offsets[TopicPartition(name, number)])]
                ],
            )
            for name, numbers in by_topic(offsets).items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self.handle.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=topics,
        )

        def once() -> None:
            response = self.cluster.coordinator(group, GROUP).ask(
                request,
                TxnOffsetCommitResponse,
                at_most=None if self._implicit else _TXN_OFFSET_COMMIT_V1,
            )
            for topic in response.topics:
                for each in topic.partitions:
                    check(each.error_code, f"group {group}, partition {topic.name}-{each.partition_index}")

        self.cluster.persist(once)

    def _before_sending(self, partitions: Iterable[TopicPartition]) -> None:
        self.is_open = True
        if self._implicit:
            return
        new = set(partitions) - self._added
        if not new:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.handle.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic(sorted(new)).items()
            ],
        )
        for name in {each.topic for each in new}:
            self.cluster.topic(name, create=True)  # the coordinator refuses partitions that do not exist

        def once() -> None:
            connection = self.cluster.coordinator(self.handle.transactional_id, TRANSACTION)
            response = connection.ask(request, AddPartitionsToTxnResponse, at_most=_ADD_PARTITIONS_BY_CLIENTS)
            for topic in response.results_by_topic_v3_and_below:
                for each in topic.results_by_partition:
                    check(each.partition_error_code, f"partition {topic.name}-{each.partition_index}")

        self.cluster.persist(once)
        self._added |= new

    def _add_offsets(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.handle.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )

        def once() -> None:
            connection = self.cluster.coordinator(self.handle.transactional_id, TRANSACTION)
            response = connection.ask(request, AddOffsetsToTxnResponse)
            check(response.error_code, f"transactional id {self.handle.transactional_id}, group {group}")

        self.cluster.persist(once)


def end_transaction(cluster: BlockingCluster, handle: TransactionHandle, commit: bool) -> None:
    """Commit or abort a transaction. To end it again in the same way is no error, as long as nobody has begun
    another one with its id."""
    request = EndTxnRequest(
        transactional_id=handle.transactional_id,
        producer_id=handle.producer_id,
        producer_epoch=handle.producer_epoch,
        committed=commit,
    )

    def once() -> None:
        connection = cluster.coordinator(handle.transactional_id, TRANSACTION)
        at_most = None if _is_implicit(connection) else _END_TXN_V1
        response = connection.ask(request, EndTxnResponse, at_most=at_most)
        check(response.error_code, f"transactional id {handle.transactional_id}")

    cluster.persist(once)


def _is_implicit(connection: BlockingConnection) -> bool:
    """Whether partitions join a transaction when records come for them (KIP-890)."""
    return connection.features.get(TRANSACTION_VERSION, 0) >= 2
