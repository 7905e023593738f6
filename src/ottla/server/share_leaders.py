"""Telling consumers of share groups that came to the wrong broker where to go (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.core.ids import Uuid
from ottla.protocol.errors import FencedLeaderEpoch, NotLeaderOrFollower
from ottla.protocol.messages.share_fetch import NodeEndpoint
from ottla.server.context import Context

_ELSEWHERE: Final = (NotLeaderOrFollower.code, FencedLeaderEpoch.code)


class Leaders:
    """The leaders that one response points to, each listed once."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._brokers: dict[int, NodeEndpoint] = {}

    @property
    def endpoints(self) -> list[NodeEndpoint]:
        return list(self._brokers.values())

    def point(self, topic_id: Uuid, data: Any, leader: Callable[..., Any]) -> None:
        """Put the leader, as the API has it, into the answer for a partition that is not led here."""
        if data.error_code not in _ELSEWHERE:
            return
        node = self._ctx.node
        topic = node.image.topic_by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(data.partition_index)
        if partition is None or partition.leader < 0:
            return
        data.current_leader = leader(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        broker = node.image.brokers.get(partition.leader)
        if broker is not None and broker.id not in self._brokers:
            host, port = node.broker_endpoint(broker, self._ctx.connection)
            self._brokers[broker.id] = NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
