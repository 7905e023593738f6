"""AssignReplicasToDirs, key 73, version 0: a broker tells where its replicas are (KIP-858)."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, ctx: Context
) -> AssignReplicasToDirsResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response: AssignReplicasToDirsResponse = await ask_controller(request, ctx)
    return response
