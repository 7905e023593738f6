"""An image written as records, in the order in which Kafka writes its snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.metadata.image import Image, MetadataRecord
from ottla.metadata.versions import METADATA_VERSION
from ottla.protocol.stored.metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)


def records(image: Image) -> Iterator[MetadataRecord]:
    """Records that fold into an equal image. metadata.version comes first: it says how to read the rest."""
    level = image.metadata_version
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)
    for name, feature_level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=feature_level)
    for broker in image.brokers.values():
        yield broker.to_record(level)
    for controller in image.controllers.values():
        yield controller.to_record()
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for number, state in topic.partitions.items():
            yield state.to_record(topic.id, number, level)
    for (resource_type, resource), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type=resource_type, resource_name=resource, name=name, value=value)
    for entity, limits in image.quotas.items():
        for key, limit in limits.items():
            yield ClientQuotaRecord(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                key=key,
                value=limit,
            )
    if image.next_producer_id:
        # Who was given the last block does not matter any more, so it is not named.
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.tokens.values()
