"""The markers that end transactions, as the leader of a partition writes them (WriteTxnMarkers, key 27)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.protocol.errors import KafkaError, NotLeaderOrFollower, RequestTimedOut, UnknownTopicOrPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.replication.partition import Partition
from ottla.storage.log import Origin

if TYPE_CHECKING:
    from ottla.runtime.node import Node


async def write_markers(request: WriteTxnMarkersRequest, node: Node) -> WriteTxnMarkersResponse:
    """Write markers to partitions that this broker leads; answers when they are committed."""
    response = WriteTxnMarkersResponse()
    waiting: list[tuple[WritableTxnMarkerPartitionResult, asyncio.Future[None]]] = []
    for marker in request.markers:
        of_producer = WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[])
        for topic in marker.topics:
            results = []
            for index in topic.partition_indexes:
                result = WritableTxnMarkerPartitionResult(partition_index=index)
                try:
                    waits = _write_marker(_led(node, topic.name, index), marker, node)
                    waiting += [(result, wait) for wait in waits]
                except KafkaError as error:
                    result.error_code = error.code
                results.append(result)
            of_producer.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
        response.markers.append(of_producer)
    if waiting:
        await asyncio.wait({wait for _, wait in waiting}, timeout=node.settings.request_timeout_ms / 1000)
        for result, wait in waiting:
            result.error_code = result.error_code or _outcome(wait)
    return response


def _led(node: Node, topic: str, index: int) -> Partition:
    partition = node.replicas.find(topic, index)
    if partition is not None:
        return partition
    known = node.image.topics.get(topic)
    if known is not None and index in known.partitions:
        raise NotLeaderOrFollower
    raise UnknownTopicOrPartition


def _write_marker(partition: Partition, marker: WritableTxnMarker, node: Node) -> list[asyncio.Future[None]]:
    """Append a marker; what there is to wait for until it is committed."""
    end = EndTransactionMarker(
        marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result
    )
    now_ms = node.clock.wall_ms()
    appended = partition.append(
        end_transaction_batch(end, timestamp=now_ms),
        now_ms,
        origin=Origin.COORDINATOR,
        transaction_version=marker.transaction_version,
    )
    if not node.is_durable:
        node.replicas.write_now(partition)  # otherwise the sync does
    node.coordinators.marker_appended(partition, end)
    waits = (partition.committed(appended.last_offset), node.synced(partition, appended.last_offset))
    return [wait for wait in waits if wait is not None]


def _outcome(wait: asyncio.Future[None]) -> int:
    if not wait.done():
        wait.cancel()
        return RequestTimedOut.code
    error = wait.exception()
    if error is None:
        return 0
    if isinstance(error, KafkaError):
        return error.code
    raise error
