"""Fetch (key 1) on a listener of controllers: the metadata log, for other voters and for brokers.

It is the one partition that controllers have. The quorum answers, and waits if there is nothing to say.
Departs from Kafka in refusing what its own nodes never ask: versions that do not tell where logs diverge.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.errors import UnsupportedVersion
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context

# Divergence and snapshots (KIP-595), and where a leader listens (KIP-951).
DIVERGES: Final = 12
NAMES_NODES: Final = 16


async def fetch(request: FetchRequest, ctx: Context) -> FetchResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    if ctx.version < DIVERGES:
        raise UnsupportedVersion
    response = await ctx.node.quorum.fetch(request)
    if ctx.version < NAMES_NODES:
        response.node_endpoints = []
    return response
