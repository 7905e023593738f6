"""UpdateRaftVoter, key 82, version 0: a voter tells the leader where it listens now (KIP-853)."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context


async def update_raft_voter(request: UpdateRaftVoterRequest, ctx: Context) -> UpdateRaftVoterResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    return await ctx.node.quorum.update_voter(request)
