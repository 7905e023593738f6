"""Asking a handler in this process, as a client would over a connection.

The other doors speak through this: the same handlers, the same limits on records, the same counters, and the
same `Context`, which says through which connection the question came.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    RequestTimedOut,
    UnknownServerError,
    UnsupportedVersion,
)
from ottla.server import failures
from ottla.server.api import SERVED
from ottla.server.context import Context, Disconnect
from ottla.server.stepping import carry_on

if TYPE_CHECKING:
    from ottla.runtime.node import Node
    from ottla.server.connection import Connection
    from ottla.server.routes import Routes

logger = logging.getLogger("ottla.local")

# How long a handler may take when the caller gives no time of its own. Each handler has its own, shorter
# bounds; this one is for what they forgot.
ANSWER_SECONDS: Final = 60.0


class Local:
    """One who asks: through which connection, and under which client id."""

    __slots__ = ("_routes", "client_id", "connection", "node")

    def __init__(self, node: Node, routes: Routes, connection: Connection, client_id: str) -> None:
        self.node = node
        self._routes = routes
        self.connection = connection
        self.client_id = client_id

    async def ask(self, request: Any, version: int | None = None, *, seconds: float = ANSWER_SECONDS) -> Any:
        """The response message to a request message. Errors that a response can hold are in the response.

        Raises the Kafka error of one that cannot, `RequestTimedOut` when time is up, `InvalidRequest` where
        Kafka would hang up, and `UnknownServerError` when the handler failed, which is in the log. The
        handler runs up to its first wait before this suspends, so calls made one after the other append in
        that order.
        """
        key = request.api_key
        if version is None:
            version = SERVED[key].last
        route = self._routes.find(key, version)
        if route is None:
            raise UnsupportedVersion(f"API key {key} version {version} is not served")
        route.requests += 1
        replicas = self.node.replicas
        steps = route.handle(request, Context(version, self.client_id, self.connection, self.node))
        try:
            try:
                waits_for = steps.send(None)
            except StopIteration as done:
                failed = replicas.write_pending()
                response = done.value
            else:
                # What was appended is written in the turn that appended it, as on a connection.
                failed = replicas.write_pending()
                began = monotonic()
                async with asyncio.timeout(seconds):
                    response = await carry_on(steps, waits_for)
                route.waited(monotonic() - began)
                failed |= replicas.write_pending()
        except KafkaError:
            raise
        except TimeoutError:
            raise RequestTimedOut from None
        except Disconnect as reason:
            raise InvalidRequest(str(reason)) from None
        except Exception:
            logger.exception("handler failed api=%s client=%s", route.name, self.connection.client_host)
            raise UnknownServerError from None
        return failures.withdrawn(response, route, failed) if failed else response
