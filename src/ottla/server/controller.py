"""What a handler asks of the active controller, wherever that is.

On a listener for clients the controller is asked in the name of whoever sent the request. On a listener of
controllers it has to be this node, or whoever asks is told to look for another: a request that went from one
controller to the next might never arrive.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.protocol.errors import NotController
from ottla.runtime.catching_up import follow_leader
from ottla.server.context import Context


async def ask_controller(request: Any, ctx: Context, version: int | None = None) -> Any:
    """The controller's answer, once all that it rests on is committed. Raises `KafkaError`.

    The version is that of the request that is being handled, unless another one is given.
    """
    quorum = ctx.node.quorum
    version = ctx.version if version is None else version
    if ctx.at_controller:
        if not quorum.is_active:
            raise NotController("this node is not the active controller")
        return await quorum.submit(request, version)
    asked = quorum.submit(request, version, ctx.connection)
    if quorum.is_active:
        return await asked
    # To look for it takes timeouts, and those a task, which a handler has not (`stepping`).
    return await asyncio.get_running_loop().create_task(asked)


async def seen_here(ctx: Context) -> None:
    """Return once this node has seen what the controller has just decided, and its partitions are so.

    Whoever asked will go on here as if that were so. After a while it is left to clients to try again.
    """
    node = ctx.node
    if not node.quorum.is_active and not ctx.at_controller:
        await follow_leader(node)
    await node.caught_up()
