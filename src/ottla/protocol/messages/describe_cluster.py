"""DescribeCluster (key 60): the brokers, or the controllers, of the cluster (KIP-700).

v1 endpoint type (KIP-919); v2 fenced brokers (KIP-1073).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = False
    endpoint_type: i8 = field("1+", default=1)
    include_fenced_brokers: bool = field("2+", default=False)


@struct
class DescribeClusterBroker:
    broker_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None
    is_fenced: bool = field("2+", default=False)


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    endpoint_type: i8 = field("1+", default=1)
    cluster_id: str = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker] = field(default=[])
    cluster_authorized_operations: i32 = -2_147_483_648
