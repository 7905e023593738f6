"""AlterPartition, key 56, versions 0-3: a leader changes the in-sync sets of its partitions."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def alter_partition(request: AlterPartitionRequest, ctx: Context) -> AlterPartitionResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response: AlterPartitionResponse = await ask_controller(request, ctx)
    return response
