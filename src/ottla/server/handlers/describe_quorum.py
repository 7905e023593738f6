"""DescribeQuorum, key 55, versions 0-2. Answered by the leader of the quorum, whom this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context


async def describe_quorum(request: DescribeQuorumRequest, ctx: Context) -> DescribeQuorumResponse:
    try:
        check_cluster(ctx, Operation.DESCRIBE)
        response: DescribeQuorumResponse = await ctx.node.quorum.submit(request, ctx.version)
    except KafkaError as error:
        return DescribeQuorumResponse(error_code=error.code, error_message=str(error))
    return response
