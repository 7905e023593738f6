"""AlterPartitionReassignments, key 45, versions 0-1. Decided by the controller, which this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, ctx: Context
) -> AlterPartitionReassignmentsResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        response: AlterPartitionReassignmentsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return _refused(request, error)
    await seen_here(ctx)
    return response


def _refused(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    code, message = error.code, str(error)
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
