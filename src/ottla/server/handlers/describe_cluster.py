"""DescribeCluster, key 60, versions 0-2 (endpoint types from 1, fenced brokers from 2)."""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import InvalidRequest, KafkaError, MismatchedEndpointType, UnsupportedEndpointType
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.server import authorized_operations
from ottla.server.brokers import NO_BROKER, Brokers
from ottla.server.context import Context

BROKERS: Final = 1
CONTROLLERS: Final = 2


async def describe_cluster(request: DescribeClusterRequest, ctx: Context) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _refused(request.endpoint_type, ctx.version)
    node = ctx.node
    brokers = Brokers(node.image, ctx.connection.listener_name)
    shown = brokers.reachable if request.include_fenced_brokers else brokers.alive
    described = []
    for broker in shown.values():
        host, port = node.broker_endpoint(broker, ctx.connection)
        described.append(
            DescribeClusterBroker(
                broker_id=broker.id, host=host, port=port, rack=broker.rack, is_fenced=broker.fenced
            )
        )
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=node.cluster_id,
        controller_id=brokers.controller_id(node),
        brokers=described,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.on_cluster(ctx)
    return response


def _refused(endpoint_type: int, version: int) -> DescribeClusterResponse:
    """Controllers describe themselves on their own listener, which this is not."""
    error: KafkaError
    if endpoint_type == CONTROLLERS:
        error = MismatchedEndpointType(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        )
    else:
        error = UnsupportedEndpointType(f"Unsupported endpoint type {endpoint_type}")
    return DescribeClusterResponse(
        error_code=error.code if version >= 1 else InvalidRequest.code,
        error_message=str(error),
        controller_id=NO_BROKER,
    )
