"""The cluster's brokers as the clients of one listener can reach them.

Metadata and DescribeTopicPartitions look at every partition of every topic through this, so what they ask
per partition is a few dictionary and set lookups; what can be known once per request is worked out first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.ids import Uuid
from ottla.metadata.image import Image
from ottla.metadata.partition import PartitionState

if TYPE_CHECKING:
    from ottla.runtime.node import Node

NO_BROKER: Final = -1


class Brokers:
    def __init__(self, image: Image, listener: str) -> None:
        self.registered = image.brokers
        # Those with this listener, fenced or not.
        self.reachable = {
            broker.id: broker
            for broker in sorted(image.brokers.values(), key=lambda broker: broker.id)
            if broker.endpoint(listener) is not None
        }
        self.alive = {id: broker for id, broker in self.reachable.items() if not broker.fenced}
        self._lists: dict[tuple[int, ...], list[int]] = {}
        self._offline: dict[tuple[tuple[int, ...], tuple[Uuid, ...]], list[int]] = {}

    def listed(self, brokers: tuple[int, ...]) -> list[int]:
        """The same as a list, for a message; shared like that of `offline`."""
        known = self._lists.get(brokers)
        if known is None:
            known = self._lists[brokers] = list(brokers)
        return known

    def offline(self, state: PartitionState) -> list[int]:
        """The replicas that cannot serve: their broker is gone or fenced, or their directory has failed.

        The list is shared between partitions that lie in the same places, and not to be changed.
        """
        places = state.replicas, state.directories
        known = self._offline.get(places)
        if known is None:
            known = self._offline[places] = [
                replica
                for replica, directory in zip(*places, strict=True)
                if replica not in self.alive or not self.alive[replica].has_online(directory)
            ]
        return known

    def controller_id(self, node: Node) -> int:
        """The broker that clients are told to send administrative requests to.

        Every broker forwards to the quorum's leader, whom clients cannot reach, so any will do. Kafka picks
        one at random; the one that was asked spreads the load as well.
        """
        if node.node_id in self.alive:
            return node.node_id
        return next(iter(self.alive), NO_BROKER)
