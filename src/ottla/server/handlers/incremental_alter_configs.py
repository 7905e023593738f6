"""IncrementalAlterConfigs, key 44, versions 0-1: set, delete, append to or subtract from single configs.

Decided by the controller, but for log levels, which this broker changes itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.config.alter import Change, Operation, alter_broker
from ottla.core import acl
from ottla.protocol.errors import InvalidRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.server.broker_loggers import alter_levels
from ottla.server.config_resources import (
    BROKER,
    BROKER_LOGGER,
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


async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, ctx: Context
) -> IncrementalAlterConfigsResponse:
    def settle(resource: AlterConfigsResource) -> bool:
        _check(resource, ctx)
        check_allowed(ctx, acl.Operation.ALTER_CONFIGS, resource)
        if resource.resource_type == BROKER_LOGGER:
            check_node_id(resource, ctx.node.node_id)
            alter_levels(resource.configs, request.validate_only)
            return True
        return False

    async def forward(resources: list[AlterConfigsResource]) -> Iterable[AlterConfigsResourceResponse]:
        rest = IncrementalAlterConfigsRequest(resources=resources, validate_only=request.validate_only)
        response: IncrementalAlterConfigsResponse = await ask_controller(rest, ctx)
        await seen_here(ctx)
        return response.responses

    outcomes = await alter(request.resources, settle, forward)
    return IncrementalAlterConfigsResponse(
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
    configs = resource.configs
    nulls = [c.name for c in configs if c.value is None and c.config_operation != Operation.DELETE]
    check_values((config.name for config in configs), nulls)
    kind, name = resource.resource_type, resource.resource_name
    if kind not in (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP):
        raise InvalidRequest(f"Unknown resource type {kind}")
    if kind == BROKER:
        if is_checked_elsewhere(resource, ctx):
            return
        if name:
            check_node_id(resource, node.node_id)
        with kafka_errors():
            alter_broker(
                [Change(config.name, config.config_operation, config.value) for config in configs],
                layers(node),
                per_broker=bool(name),
                elr_enabled=node.image.elr_enabled,
            )
