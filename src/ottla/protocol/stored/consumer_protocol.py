"""What the consumers of a classic group say to each other through its coordinator.

The bytes are preceded by the version as an int16. Newer versions only append fields, so a reader may take an
unknown version for the newest that it knows.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i32, message, struct


@struct
class TopicPartition:
    topic: str = ""
    partitions: list[i32] = field(default=[])


@message(versions="0-3")
class ConsumerProtocolSubscription:
    """What a member wants: v1 owned partitions; v2 generation; v3 rack."""

    topics: list[str] = field(default=[])
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field("1+", default=[], ignorable=True)
    generation_id: i32 = field("2+", default=-1, ignorable=True)
    rack_id: str | None = field("3+", default=None, ignorable=True)


@message(versions="0-3")
class ConsumerProtocolAssignment:
    """What a member is given; its versions follow those of the subscription."""

    assigned_partitions: list[TopicPartition] = field(default=[])
    user_data: bytes | None = None
