"""DescribeQuorum, key 55, versions 0-2. Answered by the leader of the quorum, whom this broker asks.

A controller that does not lead says so.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def describe_quorum(request: DescribeQuorumRequest, ctx: Context) -> DescribeQuorumResponse:
    try:
        check_cluster(ctx, Operation.DESCRIBE)
        if ctx.at_controller:
            return await ctx.node.quorum.describe(request, ctx.version)
        response: DescribeQuorumResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return DescribeQuorumResponse(error_code=error.code, error_message=str(error))
    return response
