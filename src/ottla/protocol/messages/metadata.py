"""Metadata (key 3): which brokers there are, and who leads the partitions of some topics.

In v0 an empty list of topics asks for all; from v1 null asks for all and an empty list for none. v1 racks,
controller, internal topics; v2 cluster id; v3 throttle time; v4 auto creation can be declined; v5 offline
replicas; v7 leader epochs; v8 authorized operations (KIP-430); v9 flexible; v10 topic ids in the answer,
v12 in the question (KIP-516); v11 drops the cluster's authorized operations (KIP-700); v13 top-level error
(KIP-1102).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class MetadataRequestTopic:
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    name: str | None = field(default="", nullable="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = field(default=[], nullable="1+")
    allow_auto_topic_creation: bool = field("4+", default=True)
    include_cluster_authorized_operations: bool = field("8-10", default=False)
    include_topic_authorized_operations: bool = field("8+", default=False)


@struct
class MetadataResponseBroker:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = field("1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = field("7+", default=-1, ignorable=True)
    replica_nodes: list[i32] = field(default=[])
    isr_nodes: list[i32] = field(default=[])
    offline_replicas: list[i32] = field("5+", default=[], ignorable=True)


@struct
class MetadataResponseTopic:
    error_code: i16 = 0
    name: str | None = field(default="", nullable="12+")
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = field("1+", default=False, ignorable=True)
    partitions: list[MetadataResponsePartition] = field(default=[])
    topic_authorized_operations: i32 = field("8+", default=-2_147_483_648)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: i32 = field("3+", default=0, ignorable=True)
    brokers: list[MetadataResponseBroker] = field(default=[])
    cluster_id: str | None = field("2+", default=None, ignorable=True)
    controller_id: i32 = field("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(default=[])
    cluster_authorized_operations: i32 = field("8-10", default=-2_147_483_648)
    error_code: i16 = field("13+", default=0, ignorable=True)
