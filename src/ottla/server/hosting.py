"""From the topic or partition that a client names to the replica this broker holds, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.metadata.topic_names import check_topic_name
from ottla.protocol.errors import InvalidTopic, KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition
from ottla.replication.partition import Partition

if TYPE_CHECKING:
    from ottla.runtime.node import Node


def hosted(node: Node, topic: str, index: int) -> Partition:
    """The replica here. A partition that exists elsewhere is not unknown: the client should look again."""
    try:
        return node.replicas.get(topic, index)
    except UnknownTopicOrPartition:
        known = node.image.topics.get(topic)
        if known is not None and index in known.partitions:
            raise NotLeaderOrFollower from None
        raise


def why_missing(topic: str) -> KafkaError:
    """The error for a topic that is not there: whether it may be some day, or never."""
    try:
        check_topic_name(topic)
    except InvalidTopic as error:
        return error
    return UnknownTopicOrPartition()


@contextmanager
def using_disk(partition: Partition) -> Iterator[None]:
    """Around work on a partition's log: an error of the disk takes the log directory offline."""
    try:
        yield
    except OSError as error:
        raise partition.directory.fail(error) from error
