"""Producer ids for this broker to hand out, taken from the controller in blocks.

A block is in the metadata log before this broker hears of it, and what is left of it when the broker stops,
cleanly or not, is never used: so no id is handed out twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.protocol.errors import CoordinatorLoadInProgress, KafkaError, error_class
from ottla.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

logger = logging.getLogger("ottla.producer_ids")

ALLOCATE_VERSION: Final = 0
# The next block is asked for when this share of the current one is used up, so that nobody waits for it.
PREFETCH_AT: Final = 0.9


class Controller(Protocol):
    async def submit(self, request: Any, version: int) -> Any: ...


class ProducerIds:
    """`broker_epoch` is asked each time, since a broker that registers again has another."""

    def __init__(self, controller: Controller, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._current = range(0)
        self._prefetch_from = 0
        self._next = range(0)
        self._asking: asyncio.Task[bool] | None = None

    async def take(self) -> int:
        """An id nobody was given before. Waits for a block when there is none at hand.

        Raises `CoordinatorLoadInProgress`, on which clients try again, when the controller gives none.
        """
        while not self._current:
            if self._next:
                self._current, self._next = self._next, range(0)
                self._prefetch_from = self._current.start + int(len(self._current) * PREFETCH_AT)
            # Shielded, since others may wait for the same block after this caller has gone.
            elif not await asyncio.shield(self._ask()):
                raise CoordinatorLoadInProgress("No block of producer ids is available yet.")
        taken, self._current = self._current[0], self._current[1:]
        if taken >= self._prefetch_from and not self._next:
            self._ask()
        return taken

    def close(self) -> None:
        """Stop asking. Whoever still waits is cancelled with the connection it waits for."""
        if self._asking is not None:
            self._asking.cancel()

    def _ask(self) -> asyncio.Task[bool]:
        """Whether the next block came, once the controller has answered. One question at a time."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._fetch())
        return self._asking

    async def _fetch(self) -> bool:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            response: AllocateProducerIdsResponse = await self._controller.submit(request, ALLOCATE_VERSION)
            if response.error_code:
                raise error_class(response.error_code)
        except KafkaError as error:
            logger.warning("no block of producer ids: %s", error)
            return False
        start = response.producer_id_start
        self._next = range(start, start + response.producer_id_len)
        return True
