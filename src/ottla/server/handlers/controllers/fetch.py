"""Fetch (key 1) on a listener of controllers: the metadata log, for other voters and for brokers.

It is the one partition that controllers have. The quorum answers, and waits if there is nothing to say.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context


async def fetch(request: FetchRequest, ctx: Context) -> FetchResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    return await ctx.node.quorum.fetch(request)
