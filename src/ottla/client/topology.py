"""What a Metadata response says of a cluster: its brokers, its topics, who leads their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client.errors import check
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.errors import LeaderNotAvailable, UnknownTopicOrPartition
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

GROUP, TRANSACTION = 0, 1
"""What a coordinator coordinates."""


class Broker(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None = None


class Partition(NamedTuple):
    number: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    available: Sequence[int] = ()  # the partitions that have a leader

    def leader(self, partition: int) -> int:
        """The broker that leads a partition, as far as was known."""
        found = self.partitions.get(partition)
        if found is None:
            raise UnknownTopicOrPartition(
                f"topic {self.name} has no partition {partition}: it has {len(self.partitions)}"
            )
        if found.leader < 0:
            raise LeaderNotAvailable(f"partition {TopicPartition(self.name, partition)} has no leader")
        return found.leader


def brokers_of(response: MetadataResponse) -> dict[int, Broker]:
    return {each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in response.brokers}


def topic_of(answered: MetadataResponseTopic) -> Topic:
    """A topic that was answered with its name and without an error."""
    assert answered.name is not None
    partitions = {
        p.partition_index: Partition(
            p.partition_index,
            p.leader_id,
            p.leader_epoch,
            tuple(p.replica_nodes),
            tuple(p.isr_nodes),
            tuple(p.offline_replicas),
        )
        for p in sorted(answered.partitions, key=lambda p: p.partition_index)
    }
    available = [each.number for each in partitions.values() if each.leader >= 0]
    return Topic(answered.name, answered.topic_id, answered.is_internal, partitions, available)


def coordinator_request(kind: int, key: str, version: int) -> FindCoordinatorRequest:
    if version >= 4:
        return FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    return FindCoordinatorRequest(key_type=kind, key=key)


def coordinator_of(response: FindCoordinatorResponse, key: str) -> int:
    what = f"coordinator of {key}"
    if response.coordinators:
        answer = response.coordinators[0]
        check(answer.error_code, what, answer.error_message)
        return answer.node_id
    check(response.error_code, what, response.error_message)
    return response.node_id
