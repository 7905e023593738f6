"""How a controller makes itself known: so that features are raised only when every controller can follow."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.metadata.versions import METADATA_VERSION, MV_CONTROLLER_REGISTRATION, SUPPORTED_FEATURES
from ottla.protocol.errors import KafkaError, error_class
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)
from ottla.runtime.quorum_start import controller_address
from ottla.storage.log_directory import new_uuid

if TYPE_CHECKING:
    from ottla.runtime.quorum import Home, Quorum

PAUSE_S: Final = 1.0

logger = logging.getLogger("ottla.quorum")


class ControllerMembership:
    """Registers this process as a controller, until the metadata log says so. A leader does it by itself."""

    def __init__(self, quorum: Quorum, home: Home) -> None:
        self._quorum = quorum
        self._home = home
        self._incarnation_id = new_uuid()
        self._registering: asyncio.Task[None] | None = None

    def request(self) -> ControllerRegistrationRequest:
        address = controller_address(self._home)
        return ControllerRegistrationRequest(
            controller_id=self._home.node_id,
            incarnation_id=self._incarnation_id,
            listeners=[Listener(name=address.name, host=address.host, port=address.port)],
            features=[
                Feature(name=name, min_supported_version=first, max_supported_version=last)
                for name, (first, last) in SUPPORTED_FEATURES.items()
            ],
        )

    def check(self) -> None:
        """The image has moved on: register if it does not have this process."""
        if self._registering is None and self._is_wanted():
            self._registering = asyncio.get_running_loop().create_task(self._register())

    async def close(self) -> None:
        if self._registering is not None:
            self._registering.cancel()
            await asyncio.gather(self._registering, return_exceptions=True)

    def _is_wanted(self) -> bool:
        image = self._quorum.image
        if self._quorum.is_active or image.features.get(METADATA_VERSION, 0) < MV_CONTROLLER_REGISTRATION:
            return False
        known = image.controllers.get(self._home.node_id)
        return known is None or known.incarnation_id != self._incarnation_id

    async def _register(self) -> None:
        try:
            while self._is_wanted():
                try:
                    response: ControllerRegistrationResponse = await self._quorum.submit(self.request(), 0)
                    if response.error_code:
                        raise error_class(response.error_code)(response.error_message or "")
                except KafkaError as error:
                    logger.warning("could not register this controller error=%s", error)
                await asyncio.sleep(PAUSE_S)
        finally:
            self._registering = None
