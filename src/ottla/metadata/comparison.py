"""What differs between two images: a node that took over a snapshot has skipped the records in between.

Whoever acts on changes is told of them as if they had come one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.metadata.delta import Delta
from ottla.metadata.image import Image


def difference(old: Image, new: Image) -> Delta:
    """The changes that lead from one image to the other."""
    delta = Delta()
    for topic_id, topic in old.topic_by_id.items():
        if topic_id not in new.topic_by_id:
            delta.deleted_topics[topic_id] = topic.name
    for topic_id, topic in new.topic_by_id.items():
        before = old.topic_by_id.get(topic_id)
        if before is None:
            delta.topics[topic.name] = set(topic.partitions)
        elif changed := _changed(before.partitions, topic.partitions):
            delta.topics[topic.name] = changed
    delta.configs = _changed(old.configs, new.configs)
    delta.brokers = _changed(old.brokers, new.brokers)
    delta.controllers = _changed(old.controllers, new.controllers)
    delta.features = _changed(old.features, new.features)
    delta.acls = _changed(old.acls, new.acls)
    delta.credentials = old.scram != new.scram
    delta.quotas = old.quotas != new.quotas
    delta.tokens = old.tokens != new.tokens
    delta.producer_ids = old.next_producer_id != new.next_producer_id
    return delta


def _changed(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> set[Any]:
    """The keys that were added, removed or given another value."""
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
