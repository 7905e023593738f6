"""FetchSnapshot, key 59, versions 0-1: a piece of a snapshot of the metadata log (KIP-630)."""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context

# Where the leader listens (KIP-853).
NAMES_NODES: Final = 1


async def fetch_snapshot(request: FetchSnapshotRequest, ctx: Context) -> FetchSnapshotResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response = await ctx.node.quorum.fetch_snapshot(request)
    if ctx.version < NAMES_NODES:
        response.node_endpoints = []
    return response
