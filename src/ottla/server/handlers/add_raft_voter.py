"""AddRaftVoter, key 80, versions 0-1: a controller becomes one of those who vote (KIP-853).

The leader of the quorum decides. A broker asks it, a controller that does not lead says so.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def add_raft_voter(request: AddRaftVoterRequest, ctx: Context) -> AddRaftVoterResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        if ctx.at_controller or ctx.node.quorum.is_active:
            return await ctx.node.quorum.add_voter(request)
        response: AddRaftVoterResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return AddRaftVoterResponse(error_code=error.code, error_message=str(error))
    return response
