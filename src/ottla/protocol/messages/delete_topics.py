"""DeleteTopics (key 20): delete topics.

v1 throttle time; v3 TOPIC_DELETION_DISABLED; v4 flexible; v5 error message, THROTTLING_QUOTA_EXCEEDED
(KIP-599); v6 by name or topic id (KIP-516).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class DeleteTopicState:
    name: str | None = None
    topic_id: Uuid = ZERO_UUID


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = field("6+", default=[])
    topic_names: list[str] = field("0-5", default=[], ignorable=True)
    timeout_ms: i32 = 0


@struct
class DeletableTopicResult:
    name: str | None = field(default="", nullable="6+")
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    error_code: i16 = 0
    error_message: str | None = field("5+", default=None, ignorable=True)


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    responses: list[DeletableTopicResult] = field(default=[])
