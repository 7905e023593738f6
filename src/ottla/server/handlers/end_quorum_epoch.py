"""EndQuorumEpoch, key 54, versions 0-1: a leader goes, and tells the voters whom it would prefer."""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context

# Where the leader listens (KIP-853).
NAMES_NODES: Final = 1


async def end_quorum_epoch(request: EndQuorumEpochRequest, ctx: Context) -> EndQuorumEpochResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response = await ctx.node.quorum.end_quorum_epoch(request)
    if ctx.version < NAMES_NODES:
        response.node_endpoints = []
    return response
