"""DeleteShareGroupOffsets (key 92): delete the start offsets of a share group (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = ""


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(default=[])


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    error_code: i16 = 0
    error_message: str | None = None


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(default=[])
