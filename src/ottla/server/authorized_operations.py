"""The operations a client may perform, as the bit fields that Metadata and the describe APIs carry (KIP-430).

Bit n stands for the ACL operation with the code n. Without an authorizer that is every operation there is for
the kind of resource.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import CLUSTER_NAME, POSSIBLE, Operation, ResourceType
from ottla.server.context import Context

NOT_ASKED: Final = -(1 << 31)


def on_topic(ctx: Context, name: str) -> int:
    return _allowed(ctx, ResourceType.TOPIC, name)


def on_group(ctx: Context, group_id: str) -> int:
    return _allowed(ctx, ResourceType.GROUP, group_id)


def on_cluster(ctx: Context) -> int:
    """Nothing at all for who may not describe the cluster."""
    if not ctx.allows_on_cluster(Operation.DESCRIBE):
        return 0
    return _allowed(ctx, ResourceType.CLUSTER, CLUSTER_NAME)


def _allowed(ctx: Context, resource_type: ResourceType, name: str) -> int:
    operations = POSSIBLE[resource_type]
    return sum(1 << operation for operation in operations if ctx.allows(operation, resource_type, name))
