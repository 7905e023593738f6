"""What consumers of the classic protocol put into their subscriptions and assignments.

The coordinator of a classic group does not look into them. In a consumer group it speaks for the members that
are missing on the other side, so it has to read and write what they would.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from ottla.core.topics import Topics
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.consumer.member import by_topic
from ottla.protocol.codec import decode, writer
from ottla.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.protocol.wire import MalformedFrame

_VERSION: Final = struct.Struct(">h")
NEWEST: Final = 3


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedFrame("a subscription or assignment without a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedFrame(f"version {version} of a subscription or assignment")
    return min(version, NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises MalformedFrame when it is none."""
    subscription: ConsumerProtocolSubscription = decode(
        ConsumerProtocolSubscription, _version(data), data, _VERSION.size
    )
    return subscription


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Raises MalformedFrame when it is none."""
    if not data:
        return ConsumerProtocolAssignment()  # of a member that its leader forgot
    assignment: ConsumerProtocolAssignment = decode(
        ConsumerProtocolAssignment, _version(data), data, _VERSION.size
    )
    return assignment


def partitions_of(named: Iterable[TopicPartition], topics: Topics) -> frozenset[Partition]:
    return frozenset(
        (topic_id, index)
        for topic in named
        if (topic_id := topics.topic_id(topic.topic)) is not None
        for index in topic.partitions
    )


def assignment_bytes(partitions: Iterable[Partition], topics: Topics, subscription: bytes) -> bytes:
    """An assignment in the version of the member's subscription."""
    version = _version(subscription)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=indices)
            for topic_id, indices in by_topic(partitions).items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )
    return bytes(writer(ConsumerProtocolAssignment, version)(assignment, bytearray(_VERSION.pack(version))))
