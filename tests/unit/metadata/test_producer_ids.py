from __future__ import annotations

from typing import Any

from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.protocol.stored.metadata import ProducerIdsRecord

UNKNOWN_SERVER_ERROR = -1
STALE_BROKER_EPOCH = 77


def allocate(cluster: Any, broker: int = 1, epoch: int | None = None) -> Any:
    epoch = cluster.image.brokers[broker].epoch if epoch is None else epoch
    return cluster.do(AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch))


def test_every_block_is_new(cluster: Any) -> None:
    blocks = [allocate(cluster, broker) for broker in (1, 2, 1)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    assert cluster.image.next_producer_id == 3000


def test_a_broker_of_another_epoch_gets_none(cluster: Any) -> None:
    assert allocate(cluster, epoch=4711).error_code == STALE_BROKER_EPOCH
    assert cluster.last == []


def test_ids_do_not_start_over(cluster: Any) -> None:
    cluster.apply([ProducerIdsRecord(broker_id=1, next_producer_id=2**63 - 500)])
    assert allocate(cluster).error_code == UNKNOWN_SERVER_ERROR
