"""How a broker becomes part of its cluster, stays in it, and leaves: registration, heartbeats, farewell.

All of it goes through the controller's requests, wherever the controller is.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from typing import Final

from ottla.core.ids import Uuid
from ottla.metadata.versions import SUPPORTED_FEATURES
from ottla.protocol.errors import KafkaError, StaleBrokerEpoch, error_class
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from ottla.runtime.quorum import Quorum

logger = logging.getLogger("ottla.lifecycle")

REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 2
# A farewell that nobody answers ends after this long; the clean-shutdown file still tells the tale.
SHUTDOWN_STEPS_MAX: Final = 20


class Lifecycle:
    """One broker's membership."""

    def __init__(
        self,
        quorum: Quorum,
        *,
        node_id: int,
        cluster_id: str,
        rack: str | None,
        heartbeat_interval_ms: int,
        metadata_offset: Callable[[], int],
    ) -> None:
        self._quorum = quorum
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._rack = rack
        self._interval = heartbeat_interval_ms / 1000
        self._metadata_offset = metadata_offset
        self.incarnation_id = Uuid.from_random(os.urandom(16))
        self.broker_epoch = -1
        self.offline_directories: list[Uuid] = []
        self._heartbeats: asyncio.Task[None] | None = None

    async def register(
        self, listeners: Sequence[Listener], directories: Sequence[Uuid], previous_broker_epoch: int
    ) -> None:
        response: BrokerRegistrationResponse = await self._quorum.submit(
            BrokerRegistrationRequest(
                broker_id=self._node_id,
                cluster_id=self._cluster_id,
                incarnation_id=self.incarnation_id,
                listeners=list(listeners),
                features=[
                    Feature(name=name, min_supported_version=first, max_supported_version=last)
                    for name, (first, last) in SUPPORTED_FEATURES.items()
                ],
                rack=self._rack,
                log_dirs=list(directories),
                previous_broker_epoch=previous_broker_epoch,
            ),
            REGISTRATION_VERSION,
        )
        if response.error_code:
            raise error_class(response.error_code)(f"broker {self._node_id} could not register")
        self.broker_epoch = response.broker_epoch

    async def become_active(self) -> None:
        """Heartbeat until the controller lets us serve, then keep on doing so in the background."""
        while (await self._heartbeat()).is_fenced:  # noqa: ASYNC110 (the controller is asked, nobody tells us)
            await asyncio.sleep(self._interval / 10)
        self._heartbeats = asyncio.get_running_loop().create_task(self._keep_alive())

    async def leave(self) -> None:
        """Controlled shutdown: hand leaderships over first, so that clients find the new leader at once."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None
        try:
            for step in range(SHUTDOWN_STEPS_MAX):
                if (await self._heartbeat(want_shut_down=True)).should_shut_down:
                    return
                # The first answer comes with our leaderships moved; alone, we may go at the second.
                await asyncio.sleep(self._interval / 10 if step else 0)
        except KafkaError as error:
            logger.warning("leaving without the controller's consent error=%s", error)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self._heartbeat()
            except StaleBrokerEpoch:
                logger.error("another process has registered as broker %d", self._node_id)
            except KafkaError as error:
                logger.warning("heartbeat failed error=%s", error)
            except Exception:
                logger.exception("heartbeat failed")

    async def _heartbeat(self, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        response: BrokerHeartbeatResponse = await self._quorum.submit(
            BrokerHeartbeatRequest(
                broker_id=self._node_id,
                broker_epoch=self.broker_epoch,
                current_metadata_offset=self._metadata_offset(),
                want_fence=False,
                want_shut_down=want_shut_down,
                offline_log_dirs=self.offline_directories,
                cordoned_log_dirs=[],
            ),
            HEARTBEAT_VERSION,
        )
        if response.error_code:
            raise error_class(response.error_code)("heartbeat refused")
        return response
