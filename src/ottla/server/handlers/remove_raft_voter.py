"""RemoveRaftVoter, key 81, version 0: a controller votes no longer (KIP-853).

The leader of the quorum decides. A broker asks it, a controller that does not lead says so.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def remove_raft_voter(request: RemoveRaftVoterRequest, ctx: Context) -> RemoveRaftVoterResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        if ctx.at_controller or ctx.node.quorum.is_active:
            return await ctx.node.quorum.remove_voter(request)
        response: RemoveRaftVoterResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return RemoveRaftVoterResponse(error_code=error.code, error_message=str(error))
    return response
