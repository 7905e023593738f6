"""A broker and its controller when things do not go as they should."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ottla.config.broker import broker_settings
from ottla.config.listeners import Listeners
from ottla.core.ids import Uuid
from ottla.metadata.image import Image
from ottla.protocol.errors import DuplicateBrokerRegistration, KafkaStorageError, StaleBrokerEpoch
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationResponse
from ottla.runtime.channels import Channels
from ottla.runtime.forwarding import FIRST_PAUSE_S, Forwarding
from ottla.runtime.lifecycle import Lifecycle
from ottla.runtime.node import Node


class Usurped:
    """A controller that has another process in the broker's place from its first heartbeat on."""

    def __init__(self) -> None:
        self.image = Image()
        self._has_registered = False

    async def submit(self, request: Any, version: int, *, within: float | None = None) -> Any:
        if isinstance(request, BrokerHeartbeatRequest):
            return BrokerHeartbeatResponse(error_code=StaleBrokerEpoch.code)
        if self._has_registered:
            return BrokerRegistrationResponse(error_code=DuplicateBrokerRegistration.code)
        self._has_registered = True
        return BrokerRegistrationResponse(broker_epoch=7)


def test_a_broker_that_was_replaced_before_it_served_does_not_wait_for_ever() -> None:
    reasons: list[str] = []
    life = Lifecycle(
        Usurped(),
        node_id=1,
        cluster_id="cluster",
        rack=None,
        heartbeat_interval_ms=100,
        metadata_offset=lambda: 0,
        superseded=reasons.append,
    )

    async def join() -> None:
        await life.register([], [Uuid(b"d" * 16)], -1)
        await asyncio.wait_for(life.become_active(), 5)

    with pytest.raises(DuplicateBrokerRegistration, match="another process"):
        asyncio.run(join())
    assert len(reasons) == 1


def test_whoever_is_refused_pauses_even_if_there_is_news_all_the_time() -> None:
    async def news() -> None:
        await asyncio.sleep(0)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        forwarding = Forwarding(cast(Channels, None), lambda: None, news)
        began = loop.time()
        for attempt in range(10):
            await forwarding.pause(attempt, remaining=5.0)
        return loop.time() - began

    assert asyncio.run(run()) >= 5 * FIRST_PAUSE_S


def test_a_node_that_dies_does_not_wait_for_its_registration() -> None:
    async def run() -> None:
        properties = {"node.id": "1", "log.dirs": "/nowhere"}
        settings = broker_settings(properties)
        node = Node(properties, settings, Listeners.parse(settings))
        node.die("the metadata log has failed")
        with pytest.raises(KafkaStorageError, match="the metadata log has failed"):
            await asyncio.wait_for(node._registration_seen(7), 5)

    asyncio.run(run())
