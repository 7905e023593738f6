"""Asking other brokers for what they lead: a coordinator about its transactions, a leader to write markers.

Whoever asks has looked up in the image who leads. While the answer is on its way that may change, by an
election because that very broker is not well; then there is nothing to wait for any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.errors import ClientError
from ottla.protocol.errors import NetworkException

if TYPE_CHECKING:
    from ottla.runtime.node import Node

R = TypeVar("R")


class Elsewhere:
    def __init__(self, node: Node) -> None:
        self._node = node
        # As many as there are requests of ours without an answer; who makes them bounds them.
        self._asking: dict[asyncio.Task[Any], Callable[[], bool]] = {}

    async def ask(
        self,
        broker_id: int,
        request: Any,
        response: type[R],
        *,
        purpose: str,
        within: float,
        still_leads: Callable[[], bool],
        version: int | None = None,
    ) -> R:
        """What that broker answers. Raises `NetworkException` if it does not, or is no longer the one to ask:
        what was asked for may have been done all the same."""
        channels = self._node.channels
        asking = asyncio.get_running_loop().create_task(
            channels.ask_broker(broker_id, request, response, purpose=purpose, within=within, version=version)
        )
        self._asking[asking] = still_leads
        try:
            await asyncio.wait((asking,))
        finally:
            del self._asking[asking]
            asking.cancel()
        if asking.cancelled():
            raise NetworkException(f"broker {broker_id} leads it no longer")
        try:
            return asking.result()
        except ClientError as error:
            raise NetworkException(f"broker {broker_id}: {error}") from error

    def leaders_changed(self) -> None:
        """Give up what has become useless to wait for."""
        for asking, still_leads in list(self._asking.items()):
            if not still_leads():
                asking.cancel()
