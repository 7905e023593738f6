"""BeginQuorumEpoch, key 53, versions 0-1: an elected leader makes itself known to the voters."""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context

# Where the leader listens (KIP-853).
NAMES_NODES: Final = 1


async def begin_quorum_epoch(request: BeginQuorumEpochRequest, ctx: Context) -> BeginQuorumEpochResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response = await ctx.node.quorum.begin_quorum_epoch(request)
    if ctx.version < NAMES_NODES:
        response.node_endpoints = []
    return response
