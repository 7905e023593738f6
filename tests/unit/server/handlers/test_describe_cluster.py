from __future__ import annotations

from typing import Any

from ottla.protocol.errors import MismatchedEndpointType, UnsupportedEndpointType
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.server.handlers.describe_cluster import describe_cluster


def test_it_describes_the_brokers_that_are_alive(node: Any) -> None:
    node.register(2, rack="east")
    node.register(3, fenced=True)
    response = node.call(describe_cluster, DescribeClusterRequest())
    assert (response.error_code, response.error_message, response.endpoint_type) == (0, None, 1)
    assert (response.cluster_id, response.controller_id) == (node.cluster_id, 1)
    assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in response.brokers] == [
        (1, "127.0.0.1", 9092, None, False),
        (2, "broker-2", 9092, "east", False),
    ]
    assert response.cluster_authorized_operations == -(2**31)


def test_fenced_brokers_are_shown_to_those_who_ask(node: Any) -> None:
    node.register(3, fenced=True)
    response = node.call(describe_cluster, DescribeClusterRequest(include_fenced_brokers=True))
    assert [(b.broker_id, b.is_fenced) for b in response.brokers] == [(1, False), (3, True)]


def test_operations_are_listed_for_those_who_ask(node: Any) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert node.call(describe_cluster, request).cluster_authorized_operations == 8096


def test_a_broker_does_not_describe_controllers(node: Any) -> None:
    response = node.call(describe_cluster, DescribeClusterRequest(endpoint_type=2))
    assert response.error_code == MismatchedEndpointType.code
    assert "endpoint of type CONTROLLER" in response.error_message
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


def test_other_endpoint_types_are_unknown(node: Any) -> None:
    response = node.call(describe_cluster, DescribeClusterRequest(endpoint_type=9), 1)
    assert response.error_code == UnsupportedEndpointType.code


def test_every_version_can_be_answered(node: Any) -> None:
    for version in range(3):
        assert len(node.call(describe_cluster, DescribeClusterRequest(), version).brokers) == 1
