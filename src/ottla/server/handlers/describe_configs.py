"""DescribeConfigs, key 32, versions 0-4: what topics, brokers, loggers and groups are set to, and by whom.

Where Kafka refuses the whole request if one resource is of a kind it does not know, this refuses that
resource and describes the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ottla.config import describe
from ottla.config.describe import ConfigEntry, ConfigSource
from ottla.config.settings import Kind
from ottla.core.acl import Operation
from ottla.protocol.errors import InvalidRequest, KafkaError
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.server import config_resources
from ottla.server.broker_loggers import levels
from ottla.server.config_resources import check_allowed, is_node, layers
from ottla.server.context import Context
from ottla.server.hosting import why_missing

# Resources described before other work of the loop gets its turn: consoles ask for every topic at once.
SLICE: Final = 50


async def describe_configs(request: DescribeConfigsRequest, ctx: Context) -> DescribeConfigsResponse:
    results = []
    for count, resource in enumerate(request.resources, 1):
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            check_allowed(ctx, Operation.DESCRIBE_CONFIGS, resource)
            result.configs = [_result(entry, request, ctx.version) for entry in _entries(resource, ctx)]
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
        if count % SLICE == 0:
            await asyncio.sleep(0)
    return DescribeConfigsResponse(results=results)


def _entries(resource: DescribeConfigsResource, ctx: Context) -> Iterable[ConfigEntry]:
    name, wanted = resource.resource_name, resource.configuration_keys
    overrides = ctx.node.image.config(resource.resource_type, name)
    match resource.resource_type:
        case config_resources.TOPIC:
            if name not in ctx.node.image.topics:
                raise why_missing(name)
            return describe.describe_topic(overrides, layers(ctx.node), wanted)
        case config_resources.BROKER:
            if not name:
                return describe.describe_broker_default(layers(ctx.node), wanted)
            _check_node(name, ctx.node.node_id, "or empty string, ")
            return describe.describe_broker(layers(ctx.node), wanted)
        case config_resources.BROKER_LOGGER:
            if not name:
                raise InvalidRequest("Broker id must not be empty")
            _check_node(name, ctx.node.node_id, "")
            return _loggers(wanted)
        case config_resources.CLIENT_METRICS:
            if not name:
                raise InvalidRequest("Client metrics subscription name must not be empty")
            return describe.describe_client_metrics(overrides, wanted)
        case config_resources.GROUP:
            if not name:
                raise InvalidRequest("Group name must not be empty")
            return describe.describe_group(overrides, layers(ctx.node), wanted)
    raise InvalidRequest(f"Unsupported resource type: {resource.resource_type}")


def _check_node(name: str, node_id: int, otherwise: str) -> None:
    if not is_node(name, node_id):
        raise InvalidRequest(f"Unexpected broker id, expected {node_id} {otherwise}but received {name}")


def _loggers(wanted: list[str] | None) -> Iterable[ConfigEntry]:
    for name, level in levels().items():
        if not wanted or name in wanted:
            yield ConfigEntry(
                name=name,
                value=level,
                source=ConfigSource.DYNAMIC_BROKER_LOGGER,
                read_only=False,
                is_sensitive=False,
                config_type=Kind.UNKNOWN,
                synonyms=(),
                documentation="",
            )


def _result(
    entry: ConfigEntry, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if version == 0:
        result.is_default = entry.source is ConfigSource.DEFAULT
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
    return result
