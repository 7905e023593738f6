"""DescribeCluster (key 60) on a listener of controllers: the controllers, and who of them leads (KIP-919)."""

from __future__ import annotations

from ottla.protocol.errors import InvalidRequest, KafkaError, MismatchedEndpointType, UnsupportedEndpointType
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.server import authorized_operations
from ottla.server.context import Context
from ottla.server.handlers.describe_cluster import BROKERS, CONTROLLERS

NOBODY = -1


async def describe_cluster(request: DescribeClusterRequest, ctx: Context) -> DescribeClusterResponse:
    if request.endpoint_type != CONTROLLERS:
        return _refused(request.endpoint_type, ctx.version)
    node = ctx.node
    described = [
        DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
        for controller in node.image.controllers.values()
        for endpoint in controller.endpoints
        if endpoint.name == ctx.connection.listener_name
    ]
    response = DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=node.cluster_id,
        controller_id=node.quorum.controller_id,
        brokers=described,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.on_cluster(ctx)
    return response


def _refused(endpoint_type: int, version: int) -> DescribeClusterResponse:
    error: KafkaError
    if endpoint_type == BROKERS:
        error = MismatchedEndpointType(
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
        )
    else:
        error = UnsupportedEndpointType(f"Unsupported endpoint type {endpoint_type}")
    return DescribeClusterResponse(
        error_code=error.code if version >= 1 else InvalidRequest.code,
        error_message=str(error),
        controller_id=NOBODY,
    )
