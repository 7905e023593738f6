"""ControlledShutdown (key 7): a broker asks the ZooKeeper controller to move its leaderships away.

Removed in Kafka 4.0. v0 came with a request header that has no client id; v2 broker epoch; v3 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@message(key=7, versions="0-3", flexible="3+")
class ControlledShutdownRequest:
    broker_id: i32 = 0
    broker_epoch: i64 = field("2+", default=-1, ignorable=True)


@struct
class RemainingPartition:
    topic_name: str = ""
    partition_index: i32 = 0


@message(key=7, versions="0-3", flexible="3+")
class ControlledShutdownResponse:
    error_code: i16 = 0
    remaining_partitions: list[RemainingPartition] = field(default=[])
