"""ListPartitionReassignments, key 46, version 0. Answered by the controller, which this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context


async def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, ctx: Context
) -> ListPartitionReassignmentsResponse:
    try:
        check_cluster(ctx, Operation.DESCRIBE)
        response: ListPartitionReassignmentsResponse = await ctx.node.quorum.submit(request, ctx.version)
    except KafkaError as error:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    return response
