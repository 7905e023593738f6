from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    InvalidRequest,
    NotController,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.runtime.producer_ids import ProducerIds
from ottla.server.handlers.init_producer_id import init_producer_id


def idempotent(**fields: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1, **fields)


def refused(response: InitProducerIdResponse) -> int:
    assert (response.producer_id, response.producer_epoch) == (-1, -1)
    return response.error_code


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(cluster: Any, version: int) -> None:
    answers = [cluster.call(init_producer_id, idempotent(), version) for _ in range(3)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 2, 0),
    ]


def test_an_id_is_never_handed_out_again_after_a_restart(cluster: Any) -> None:
    assert cluster.call(init_producer_id, idempotent()).producer_id == 0
    # A broker that comes back knows nothing but the metadata log.
    cluster.producer_ids = ProducerIds(cluster.quorum, cluster.node_id, lambda: cluster.broker_epoch)
    assert cluster.call(init_producer_id, idempotent()).producer_id == 1000


def test_a_producer_that_had_an_id_gets_a_new_one(cluster: Any) -> None:
    answer = cluster.call(init_producer_id, idempotent(producer_id=77, producer_epoch=3))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 0)


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_an_id_without_its_epoch_is_refused(cluster: Any, half: dict[str, int]) -> None:
    assert refused(cluster.call(init_producer_id, idempotent(**half))) == InvalidRequest.code


def test_a_client_is_to_try_again_while_there_is_no_controller(node: Any) -> None:
    class NoLeader:
        is_active = True

        async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
            raise NotController

    node.producer_ids = ProducerIds(NoLeader(), node.node_id, lambda: node.broker_epoch)
    assert refused(node.call(init_producer_id, idempotent())) == CoordinatorLoadInProgress.code
