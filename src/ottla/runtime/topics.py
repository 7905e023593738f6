"""The cluster's topics as the machines of coordinators see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.core.ids import Uuid
from ottla.metadata.image import Image


class ImageTopics:
    """`core.topics.Topics` over the metadata log. `image` is asked each time, since it may be replaced."""

    def __init__(self, image: Callable[[], Image]) -> None:
        self._image = image

    def partition_count(self, topic: str) -> int | None:
        found = self._image().topics.get(topic)
        return None if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> Uuid | None:
        found = self._image().topics.get(topic)
        return None if found is None else found.id

    def name_of(self, topic_id: Uuid) -> str | None:
        found = self._image().topic_by_id.get(topic_id)
        return None if found is None else found.name

    def names(self) -> Iterable[str]:
        return self._image().topics

    def racks(self, topic: str, partition: int) -> frozenset[str]:
        image = self._image()
        found = image.topics.get(topic)
        state = None if found is None else found.partitions.get(partition)
        if state is None:
            return frozenset()
        brokers = (image.brokers.get(replica) for replica in state.replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)
