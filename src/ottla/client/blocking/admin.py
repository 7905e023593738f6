"""Topics made by a blocking client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.errors import check
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import BlockingCluster


def create_topic(
    cluster: BlockingCluster, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(cluster.timeout * 1000))

    def once() -> None:
        (result,) = cluster.any().ask(request, CreateTopicsResponse).topics
        check(result.error_code, f"topic {name}", result.error_message)

    def look() -> None:
        # A broker learns of a topic a moment after the controller has made it.
        (answered,) = cluster.refresh([name])
        check(answered.error_code, f"topic {name}")
        for each in answered.partitions:
            check(each.error_code, f"partition {name}-{each.partition_index}")

    cluster.persist(once)
    cluster.persist(look)
