"""ElectLeaders, key 43, versions 0-2. Decided by the controller, which this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def elect_leaders(request: ElectLeadersRequest, ctx: Context) -> ElectLeadersResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        response: ElectLeadersResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return _refused(request, ctx.version, error)
    await seen_here(ctx)
    return response


def _refused(request: ElectLeadersRequest, version: int, error: KafkaError) -> ElectLeadersResponse:
    """Version 0 has no place for an error of the whole request, so every partition carries it."""
    return ElectLeadersResponse(
        error_code=error.code if version >= 1 else 0,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error.code, error_message=str(error))
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
