"""The cluster's brokers as the clients of one listener can reach them.

Metadata and DescribeTopicPartitions look at every partition of every topic through this, so what they ask
per partition is a few dictionary and set lookups; what can be known once per request is worked out first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
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
        self._directories = {
            id: frozenset((*broker.directories, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY))
            for id, broker in self.alive.items()
        }

    def offline(self, state: PartitionState) -> list[int]:
        """The replicas that cannot serve: their broker is gone or fenced, or their directory has failed."""
        offline = []
        for replica, directory in zip(state.replicas, state.directories, strict=True):
            directories = self._directories.get(replica)
            if directories is None or (
                directory not in directories and not self.alive[replica].has_online(directory)
            ):
                offline.append(replica)
        return offline

    def controller_id(self, node: Node) -> int:
        """The broker that clients are told to send administrative requests to.

        Every broker forwards to the quorum's leader, whom clients cannot reach, so any will do. Kafka picks
        one at random; the one that was asked spreads the load as well.
        """
        if node.node_id in self.alive:
            return node.node_id
        return next(iter(self.alive), NO_BROKER)
