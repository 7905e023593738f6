"""UpdateMetadata (key 6): the ZooKeeper controller tells brokers what clients may ask them about.

Removed in Kafka 4.0. v1 several endpoints per broker; v2 rack; v3 listener name; v4 offline replicas; v5
broker epoch, partitions by topic; v6 flexible; v7 topic ids; v8 KRaft controller (KIP-866).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class UpdateMetadataPartitionState:
    topic_name: str = field("0-4", default="", ignorable=True)
    partition_index: i32 = 0
    controller_epoch: i32 = 0
    leader: i32 = 0
    leader_epoch: i32 = 0
    isr: list[i32] = field(default=[])
    zk_version: i32 = 0
    replicas: list[i32] = field(default=[])
    offline_replicas: list[i32] = field("4+", default=[], ignorable=True)


@struct
class UpdateMetadataTopicState:
    topic_name: str = ""
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = field(default=[])


@struct
class UpdateMetadataEndpoint:
    port: i32 = 0
    host: str = ""
    listener: str = field("3+", default="", ignorable=True)
    security_protocol: i16 = 0


@struct
class UpdateMetadataBroker:
    id: i32 = 0
    v0_host: str = field("0", default="", ignorable=True)
    v0_port: i32 = field("0", default=0, ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = field("1+", default=[], ignorable=True)
    rack: str | None = field("2+", default="", ignorable=True)


@message(key=6, versions="0-8", flexible="6+")
class UpdateMetadataRequest:
    controller_id: i32 = 0
    is_kraft_controller: bool = field("8+", default=False)
    type: i8 = field("8+", default=0, tag=0)
    controller_epoch: i32 = 0
    broker_epoch: i64 = field("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field("0-4", default=[])
    topic_states: list[UpdateMetadataTopicState] = field("5+", default=[])
    live_brokers: list[UpdateMetadataBroker] = field(default=[])


@message(key=6, versions="0-8", flexible="6+")
class UpdateMetadataResponse:
    error_code: i16 = 0
