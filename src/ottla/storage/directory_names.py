"""How the directories in a log directory are named, and what a name says.

    orders-0                                            a partition
    orders-0.6d0f5e8a0c5b4b0b8f1f6f2d3c4b5a69-delete    deleted, its files go in a while
    orders-0.6d0f5e8a0c5b4b0b8f1f6f2d3c4b5a69-stray     no topic claims it; kept for the operator
    orders-0.6d0f5e8a0c5b4b0b8f1f6f2d3c4b5a69-future    a move between directories that has not ended

Topic names reach the file system here and nowhere else, so this is where they are checked.
"""

from __future__ import annotations

import re
from enum import Enum

from ottla.core.types import TopicPartition
from ottla.protocol.errors import InvalidTopic

MOST_NAME_BYTES = 255  # of one path component, on every file system we know

TOPIC = r"[a-zA-Z0-9._-]{1,249}"
NUMBER = r"0|[1-9][0-9]{0,9}"  # one spelling per partition: `orders-07` is not `orders-7`
TOPIC_NAME = re.compile(TOPIC)
PARTITION_NAME = re.compile(rf"({TOPIC})-({NUMBER})")
SUFFIXED_NAME = re.compile(rf"({TOPIC})-({NUMBER})\.[0-9a-f]{{32}}-(delete|future|stray)")


class Kind(Enum):
    PARTITION = "partition"
    DELETED = "delete"
    FUTURE = "future"
    STRAY = "stray"
    OTHER = "other"


def partition_name(partition: TopicPartition) -> str:
    """The name of a partition's directory; `InvalidTopic` if the topic cannot have one."""
    topic, number = partition
    if TOPIC_NAME.fullmatch(topic) is None or topic in (".", ".."):
        raise InvalidTopic(f"{topic!r} cannot be the name of a directory")
    name = f"{topic}-{number}"
    if len(name) > MOST_NAME_BYTES:
        raise InvalidTopic(f"{name} is longer than a file name can be")
    return name


def suffixed_name(partition: TopicPartition, kind: Kind, unique: str) -> str:
    """The name of a partition's directory once it is no longer in use; `unique` is 32 hexadecimal digits.

    A topic's name is cut short when the whole would be too long, as Kafka does.
    """
    tail = f"-{partition.partition}.{unique}-{kind.value}"
    return partition.topic[: MOST_NAME_BYTES - len(tail)] + tail


def parse_name(name: str) -> tuple[Kind, TopicPartition | None]:
    """What a directory is, and of which partition."""
    match = SUFFIXED_NAME.fullmatch(name)
    if match is not None:
        return Kind(match[3]), TopicPartition(match[1], int(match[2]))
    match = PARTITION_NAME.fullmatch(name)
    if match is not None and int(match[2]) < 2**31 and match[1] not in (".", ".."):
        return Kind.PARTITION, TopicPartition(match[1], int(match[2]))
    return Kind.OTHER, None
