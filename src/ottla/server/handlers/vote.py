"""Vote, key 52, versions 0-2: a candidate asks for a vote, or whether it would be given (KIP-996)."""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context

# Where the leader listens (KIP-853).
NAMES_NODES: Final = 1


async def vote(request: VoteRequest, ctx: Context) -> VoteResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response = await ctx.node.quorum.vote(request)
    if ctx.version < NAMES_NODES:
        response.node_endpoints = []
    return response
