"""What one step of the metadata log changed, for those who act on changes rather than look things up."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.core.ids import Uuid


@dataclass(slots=True)
class Delta:
    """Names only: what they now stand for is in the image. A name may be listed without a real change."""

    # Topics that were created or had a partition change, with the partitions concerned.
    topics: dict[str, set[int]] = field(default_factory=dict)
    # Topics that are gone, by id, since a topic of the same name may be there again.
    deleted_topics: dict[Uuid, str] = field(default_factory=dict)
    configs: set[tuple[int, str]] = field(default_factory=set)
    brokers: set[int] = field(default_factory=set)
    controllers: set[int] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    # Access rules that were made or removed, by id: there may be very many, and few change at a time.
    acls: set[Uuid] = field(default_factory=set)
    # SCRAM credentials, quotas and tokens: rare enough to be read again whole.
    credentials: bool = False
    quotas: bool = False
    tokens: bool = False
    producer_ids: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.topics
            or self.deleted_topics
            or self.configs
            or self.brokers
            or self.controllers
            or self.features
            or self.acls
            or self.credentials
            or self.quotas
            or self.tokens
            or self.producer_ids
        )

    def changed(self, topic: str, partition: int | None = None) -> None:
        partitions = self.topics.setdefault(topic, set())
        if partition is not None:
            partitions.add(partition)
