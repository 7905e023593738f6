"""TxnOffsetCommit (key 28): store a group's positions as part of a transaction.

v2 leader epoch; v3 flexible, member, instance id and generation (KIP-447); v4 TRANSACTION_ABORTABLE
(KIP-890); v5 adds the offsets to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = field("2+", default=-1, ignorable=True)
    committed_metadata: str | None = ""


@struct
class TxnOffsetCommitRequestTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = field(default=[])


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    transactional_id: str = ""
    group_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    generation_id: i32 = field("3+", default=-1)
    member_id: str = field("3+", default="")
    group_instance_id: str | None = field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field(default=[])


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = field(default=[])


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default=[])
