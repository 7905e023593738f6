"""How a topic is made that nobody asked to create: with the broker's defaults, or for one of Kafka's own
topics with the partitions and settings its coordinator relies on.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker import BrokerSettings
from ottla.core.types import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig


def creatable_topic(name: str, settings: BrokerSettings) -> CreatableTopic:
    if name == CONSUMER_OFFSETS:
        return _topic(
            name,
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_STATE:
        return _topic(
            name,
            settings.transaction_state_log_num_partitions,
            settings.transaction_state_log_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE:
        return _topic(
            name,
            settings.share_coordinator_state_topic_num_partitions,
            settings.share_coordinator_state_topic_replication_factor,
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(settings.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
            },
        )
    return _topic(name, settings.num_partitions, settings.default_replication_factor, {})


def _topic(name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
