"""FetchSnapshot, key 59, versions 0-1: a piece of a snapshot of the metadata log (KIP-630)."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context


async def fetch_snapshot(request: FetchSnapshotRequest, ctx: Context) -> FetchSnapshotResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    return await ctx.node.quorum.fetch_snapshot(request)
