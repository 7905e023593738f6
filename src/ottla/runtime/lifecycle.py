"""How a broker becomes part of its cluster, stays in it, and leaves: registration, heartbeats, farewell.

All of it goes through the controller's requests, wherever the controller is and however often that changes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ottla.core.ids import Uuid
from ottla.metadata.image import Image
from ottla.metadata.versions import SUPPORTED_FEATURES
from ottla.protocol.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRegistration,
    KafkaError,
    KafkaStorageError,
    NotController,
    RequestTimedOut,
    StaleBrokerEpoch,
    UnsupportedVersion,
    error_class,
)
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

logger = logging.getLogger("ottla.lifecycle")

REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 2
REGISTRATION_TIMEOUT_MS: Final = 60_000
# A heartbeat that got no answer is repeated as long as it is not much too late for the next one.
HEARTBEAT_S: Final = 1.0
# While something is waited for (to be let in, to be let go), the controller is asked this often.
FIRST_PAUSE_S: Final = 0.005
LAST_PAUSE_S: Final = 0.2
# A farewell that nobody answers ends after this long; the clean-shutdown file still tells the tale.
FAREWELL_S: Final = 30.0
# Refusals that no patience will change.
FINAL: Final = (InconsistentClusterId, InvalidRegistration, UnsupportedVersion, KafkaStorageError)


class Controllers(Protocol):
    """The quorum, as far as it is spoken to here."""

    @property
    def image(self) -> Image: ...
    async def submit(self, request: Any, version: int, *, within: float | None = None) -> Any: ...


class Lifecycle:
    """One broker's membership."""

    def __init__(
        self,
        quorum: Controllers,
        *,
        node_id: int,
        cluster_id: str,
        rack: str | None,
        heartbeat_interval_ms: int,
        metadata_offset: Callable[[], int],
        registration_timeout_ms: int = REGISTRATION_TIMEOUT_MS,
        superseded: Callable[[str], None] | None = None,
    ) -> None:
        """`superseded` is called with a reason when another process has taken this broker's place."""
        self._quorum = quorum
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._rack = rack
        self._interval = heartbeat_interval_ms / 1000
        self._metadata_offset = metadata_offset
        self._registration_timeout = registration_timeout_ms / 1000
        self._superseded = superseded
        self._is_superseded = False
        self._listeners: list[Listener] = []
        self._directories: list[Uuid] = []
        self.incarnation_id = Uuid.from_random(os.urandom(16))
        self.broker_epoch = -1
        self.offline_directories: list[Uuid] = []
        self._heartbeats: asyncio.Task[None] | None = None

    async def register(
        self, listeners: Sequence[Listener], directories: Sequence[Uuid], previous_broker_epoch: int
    ) -> None:
        """Make this broker known. It is asked for until there is a controller that agrees.

        Raises what the controller last said when `initial.broker.registration.timeout.ms` is over, and
        at once what will not change: another cluster, features that do not fit.
        """
        self._listeners, self._directories = list(listeners), list(directories)
        loop = asyncio.get_running_loop()
        deadline, pauses = loop.time() + self._registration_timeout, _Pauses()
        while True:
            try:
                await self._register(previous_broker_epoch, max(deadline - loop.time(), HEARTBEAT_S))
                return
            except FINAL:
                raise
            except KafkaError as error:
                if loop.time() >= deadline:
                    raise
                # A session of our predecessor that did not run out yet is the usual reason.
                logger.info("not registered yet error=%s", error)
            await pauses.next()

    async def become_active(self) -> None:
        """Heartbeat until the controller lets us serve, then keep on doing so in the background.

        Raises what will not change, such as another process in this broker's place.
        """
        pauses = _Pauses()
        while not self._is_superseded:
            try:
                if not (await self._heartbeat()).is_fenced:
                    break
            except (NotController, RequestTimedOut) as error:
                logger.warning("heartbeat failed error=%s", error)
            except (StaleBrokerEpoch, BrokerIdNotRegistered):
                await self._register_again()
            await pauses.next()
        if self._is_superseded:
            raise DuplicateBrokerRegistration(f"another process has registered as broker {self._node_id}")
        self._heartbeats = asyncio.get_running_loop().create_task(self._keep_alive())

    async def leave(self) -> None:
        """Controlled shutdown: hand leaderships over first, so that clients find the new leader at once."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None
        pauses = _Pauses()
        try:
            async with asyncio.timeout(FAREWELL_S):
                # The first answer comes with our leaderships moved; alone, we may go at the second.
                while not (await self._heartbeat(want_shut_down=True)).should_shut_down:
                    await pauses.next()
        except (KafkaError, TimeoutError) as error:
            logger.warning("leaving without the controller's consent error=%s", error or "no answer in time")

    async def _keep_alive(self) -> None:
        pauses = _Pauses()
        while True:
            await asyncio.sleep(self._interval)
            is_fenced = True
            try:
                is_fenced = (await self._heartbeat()).is_fenced
                if is_fenced:
                    logger.warning("fenced by the controller, asking to be let in again")
            except (StaleBrokerEpoch, BrokerIdNotRegistered) as error:
                logger.warning("the controller does not know this broker's registration error=%s", error)
                await self._register_again()
            except KafkaError as error:
                logger.warning("heartbeat failed error=%s", error)
            except Exception:
                logger.exception("heartbeat failed")
            while is_fenced:
                # Whoever is fenced does not wait for the next heartbeat to be let in.
                await pauses.next()
                try:
                    is_fenced = (await self._heartbeat()).is_fenced
                except Exception:
                    break  # the next heartbeat finds out
            pauses.begin_again()

    async def _register_again(self) -> None:
        """The registration is gone: it was removed, or somebody else has one."""
        known = self._quorum.image.brokers.get(self._node_id)
        if known is not None and known.epoch == self.broker_epoch:
            return  # it will show what has become of it
        try:
            if known is not None and known.incarnation_id != self.incarnation_id:
                raise DuplicateBrokerRegistration
            await self._register(self.broker_epoch, HEARTBEAT_S)
        except DuplicateBrokerRegistration:
            reason = f"another process has registered as broker {self._node_id}"
            logger.error("%s", reason)
            self._is_superseded = True
            if self._superseded is not None:
                # It leads what we believe to lead. Whatever is written here from now on would be lost.
                self._superseded(reason)
        except KafkaError as error:
            logger.warning("could not register again error=%s", error)

    async def _register(self, previous_broker_epoch: int, within: float) -> None:
        response: BrokerRegistrationResponse = await self._quorum.submit(
            BrokerRegistrationRequest(
                broker_id=self._node_id,
                cluster_id=self._cluster_id,
                incarnation_id=self.incarnation_id,
                listeners=self._listeners,
                features=[
                    Feature(name=name, min_supported_version=first, max_supported_version=last)
                    for name, (first, last) in SUPPORTED_FEATURES.items()
                ],
                rack=self._rack,
                log_dirs=[one for one in self._directories if one not in self.offline_directories],
                previous_broker_epoch=previous_broker_epoch,
            ),
            REGISTRATION_VERSION,
            within=within,
        )
        if response.error_code:
            raise error_class(response.error_code)(f"broker {self._node_id} could not register")
        self.broker_epoch = response.broker_epoch

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
            within=max(self._interval, HEARTBEAT_S),
        )
        if response.error_code:
            raise error_class(response.error_code)("heartbeat refused")
        return response


class _Pauses:
    """Pauses that grow: what is waited for comes soon or takes a while."""

    def __init__(self) -> None:
        self._length = 0.0

    def begin_again(self) -> None:
        self._length = 0.0

    async def next(self) -> None:
        await asyncio.sleep(self._length)
        self._length = min(max(self._length * 2, FIRST_PAUSE_S), LAST_PAUSE_S)
