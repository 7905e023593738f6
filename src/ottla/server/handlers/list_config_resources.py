"""ListConfigResources, key 74, versions 0-1: what has, or could have, configs.

Version 0 was called ListClientMetricsResources and lists those alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.core.acl import Operation
from ottla.protocol.errors import ClusterAuthorizationFailed, UnsupportedVersion
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.server.brokers import Brokers
from ottla.server.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ottla.server.context import Context

# In the order in which Kafka lists them.
TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


async def list_config_resources(
    request: ListConfigResourcesRequest, ctx: Context
) -> ListConfigResourcesResponse:
    if not ctx.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ClusterAuthorizationFailed.code)
    wanted = set(request.resource_types or TYPES) if ctx.version >= 1 else {CLIENT_METRICS}
    if not wanted.issubset(TYPES):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in TYPES
            if kind in wanted
            for name in _names(kind, ctx)
        ]
    )


def _names(kind: int, ctx: Context) -> Iterable[str]:
    image = ctx.node.image
    if kind == TOPIC:
        return image.topics
    if kind in (BROKER, BROKER_LOGGER):
        return map(str, Brokers(image, ctx.connection.listener_name).reachable)
    # Groups and subscriptions for metrics are known here by their configs alone.
    return [name for resource_type, name in image.configs if resource_type == kind]
