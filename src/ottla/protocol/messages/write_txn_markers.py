"""WriteTxnMarkers (key 27): the transaction coordinator has brokers write commit or abort markers.

v1 flexible; v2 transaction version (KIP-1228).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class WritableTxnMarkerTopic:
    name: str = ""
    partition_indexes: list[i32] = field(default=[])


@struct
class WritableTxnMarker:
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(default=[])
    coordinator_epoch: i32 = 0
    transaction_version: i8 = field("2+", default=0, ignorable=True)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = field(default=[])


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class WritableTxnMarkerTopicResult:
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default=[])


@struct
class WritableTxnMarkerResult:
    producer_id: i64 = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default=[])


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = field(default=[])
