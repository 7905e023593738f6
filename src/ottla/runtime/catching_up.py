"""Waiting until this node has seen what the active controller, another node, has decided.

Answers of a controller do not say where in the metadata log their records are. But the leader can be asked
how far it is, and what it has answered before is not behind that.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

if TYPE_CHECKING:
    from ottla.runtime.node import Node

LONGEST_SECONDS: Final = 1.0
"""A node that is behind by more than this has other troubles; its clients learn to try again."""

LOOK_SECONDS: Final = 0.004
DESCRIBE_VERSION: Final = 2


async def follow_leader(node: Node) -> None:
    """Return when this node has seen all that the leader of the quorum had when this was called."""
    # A task, since who waits may have none (`server.stepping`), and one that can be given up.
    following = asyncio.get_running_loop().create_task(_follow(node))
    try:
        await asyncio.wait({following}, timeout=LONGEST_SECONDS)
    finally:
        following.cancel()


async def _follow(node: Node) -> None:
    wanted = TopicData(topic_name=CLUSTER_METADATA, partitions=[PartitionData(partition_index=0)])
    try:
        described = await node.quorum.submit(DescribeQuorumRequest(topics=[wanted]), DESCRIBE_VERSION)
    except KafkaError:
        return
    end = _high_watermark(described)
    while node.quorum.high_watermark < end:  # noqa: ASYNC110 (it comes with the log, mostly in a moment)
        await asyncio.sleep(LOOK_SECONDS)


def _high_watermark(described: Any) -> int:
    return max(
        (partition.high_watermark for topic in described.topics for partition in topic.partitions), default=-1
    )
