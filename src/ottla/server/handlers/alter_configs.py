"""AlterConfigs, key 33, versions 0-2: replace all configs of a resource. Decided by the controller.

Log levels cannot be set through it; that came with IncrementalAlterConfigs.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.config.alter import replace_broker
from ottla.core.acl import Operation
from ottla.protocol.errors import InvalidRequest
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ottla.server.config_resources import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    alter,
    check_allowed,
    check_node_id,
    check_values,
    is_checked_elsewhere,
    kafka_errors,
    layers,
)
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def alter_configs(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    def settle(resource: AlterConfigsResource) -> bool:
        _check(resource, ctx)
        check_allowed(ctx, Operation.ALTER_CONFIGS, resource)
        return False

    async def forward(resources: list[AlterConfigsResource]) -> Iterable[AlterConfigsResourceResponse]:
        rest = AlterConfigsRequest(resources=resources, validate_only=request.validate_only)
        response: AlterConfigsResponse = await ask_controller(rest, ctx)
        await seen_here(ctx)
        return response.responses

    outcomes = await alter(request.resources, settle, forward)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.error_code,
                error_message=outcome.error_message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(request.resources, outcomes, strict=True)
        ]
    )


def _check(resource: AlterConfigsResource, ctx: Context) -> None:
    node = ctx.node
    names = [config.name for config in resource.configs]
    check_values(names, [config.name for config in resource.configs if config.value is None])
    if resource.resource_type not in (TOPIC, BROKER, CLIENT_METRICS, GROUP):
        raise InvalidRequest(f"Unknown resource type {resource.resource_type}")
    if resource.resource_type == BROKER:
        if is_checked_elsewhere(resource, ctx):
            return
        if resource.resource_name:
            check_node_id(resource, node.node_id)
        with kafka_errors():
            replace_broker(
                [(config.name, config.value) for config in resource.configs],
                layers(node),
                per_broker=bool(resource.resource_name),
                elr_enabled=node.image.elr_enabled,
            )
