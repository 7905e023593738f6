"""What a handler asks of the active controller, wherever that is.

On a listener for clients the controller is asked in the name of whoever sent the request. On a listener of
controllers it has to be this node, or whoever asks is told to look for another: a request that went from one
controller to the next might never arrive.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.runtime.node import Node
from ottla.server.context import Context

# How long an answer waits for this node to see what was decided elsewhere. One that is further behind has
# other troubles, and its clients learn to try again.
SEEN_S: Final = 1.0


async def ask_controller(request: Any, ctx: Context, version: int | None = None) -> Any:
    """The controller's answer, once all that it rests on is committed. Raises `KafkaError`.

    The version is that of the request that is being handled, unless another one is given.
    """
    quorum = ctx.node.quorum
    version = ctx.version if version is None else version
    if ctx.at_controller:
        return await quorum.submit_here(request, version)
    return await quorum.submit(request, version, ctx.connection)


async def seen_here(ctx: Context) -> None:
    """Return once this node has seen what the controller has just decided, and its partitions are so.

    Whoever asked will go on here as if that were so; a broker that forwards looks to that at its own place.
    """
    node = ctx.node
    if ctx.at_controller:
        return
    if not node.quorum.is_active:
        await _follow_leader(node)
    await node.caught_up()


async def _follow_leader(node: Node) -> None:
    """Answers of a controller do not say where in the metadata log their records are. But the leader can be
    asked how far it is, and what it has answered before is not behind that."""
    # A task, since a handler may have none (`stepping`), and one that can be given up.
    following = asyncio.get_running_loop().create_task(node.quorum.caught_up())
    try:
        await asyncio.wait({following}, timeout=SEEN_S)
    finally:
        if not following.cancel() and not following.cancelled():
            following.exception()  # if the log has failed, that has been said
