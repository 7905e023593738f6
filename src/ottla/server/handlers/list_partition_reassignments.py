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
from ottla.server.controller import ask_controller


async def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, ctx: Context
) -> ListPartitionReassignmentsResponse:
    try:
        check_cluster(ctx, Operation.DESCRIBE)
        response: ListPartitionReassignmentsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    return response
