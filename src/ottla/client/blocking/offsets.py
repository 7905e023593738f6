"""Offsets of partitions, and of groups, asked of whoever knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.client.errors import check
from ottla.client.topology import GROUP
from ottla.core.types import TopicPartition
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import BlockingCluster

LATEST: Final = -1
EARLIEST: Final = -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_BY_NAME_ONLY: Final = 9
"""The last version of OffsetCommit and OffsetFetch that has topics by name: in it, offsets of a topic that is
gone can be read."""


class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int


class OffsetAndMetadata(NamedTuple):
    offset: int
    metadata: str


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in partitions:
        found.setdefault(each.topic, []).append(each.partition)
    return found


def list_offsets(
    cluster: BlockingCluster, specs: Mapping[TopicPartition, int], isolation_level: int
) -> dict[TopicPartition, OffsetAndTimestamp]:
    found: dict[TopicPartition, OffsetAndTimestamp] = {}

    def all_leaders() -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in specs:
            if partition not in found:
                by_leader.setdefault(cluster.leader_id(partition), []).append(partition)
        for leader, partitions in by_leader.items():
            found.update(_of_leader(cluster, leader, partitions, specs, isolation_level))

    cluster.persist(all_leaders)
    return found


def _of_leader(
    cluster: BlockingCluster,
    leader: int,
    partitions: list[TopicPartition],
    specs: Mapping[TopicPartition, int],
    isolation_level: int,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[
                ListOffsetsPartition(partition_index=number, timestamp=specs[TopicPartition(name, number)])
                for number in numbers
            ],
        )
        for name, numbers in by_topic(partitions).items()
    ]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=topics,
        timeout_ms=int(cluster.timeout * 1000),
    )
    response = cluster.broker(leader).ask(request, ListOffsetsResponse)
    found = {}
    for answered in response.topics:
        for each in answered.partitions:
            partition = TopicPartition(answered.name, each.partition_index)
            check(each.error_code, f"partition {partition}")
            found[partition] = OffsetAndTimestamp(each.offset, each.timestamp)
    return found


def committed(
    cluster: BlockingCluster,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    require_stable: bool = True,
) -> dict[TopicPartition, OffsetAndMetadata]:
    wanted = None if partitions is None else by_topic(partitions)

    def once() -> dict[TopicPartition, OffsetAndMetadata]:
        connection = cluster.coordinator(group, GROUP)
        version = connection.version_of(OffsetFetchRequest, _BY_NAME_ONLY)
        request = OffsetFetchRequest()
        if version >= 7:
            # Offsets of a transaction that has not ended are waited for.
            request.require_stable = require_stable
        if version >= 8:
            topics = None if wanted is None else _topics(OffsetFetchRequestTopics, wanted)
            request.groups = [OffsetFetchRequestGroup(group_id=group, topics=topics)]
        else:
            request.group_id = group
            request.topics = None if wanted is None else _topics(OffsetFetchRequestTopic, wanted)
        response = connection.ask(request, OffsetFetchResponse, at_most=_BY_NAME_ONLY)
        check(response.error_code, f"group {group}")
        answered: list[tuple[str, list[Any]]] = [(each.name, each.partitions) for each in response.topics]
        for one in response.groups:
            check(one.error_code, f"group {group}")
            answered += [(each.name, each.partitions) for each in one.topics]
        found = {}
        for name, numbers in answered:
            for each in numbers:
                partition = TopicPartition(name, each.partition_index)
                check(each.error_code, f"group {group}, partition {partition}")
                if each.committed_offset >= 0:
                    found[partition] = OffsetAndMetadata(each.committed_offset, each.metadata or "")
        return found

    return cluster.persist(once)


def commit_offsets(
    cluster: BlockingCluster, group: str, positions: Mapping[TopicPartition, int | tuple[int, str]]
) -> None:
    topics = [
        OffsetCommitRequestTopic(
            name=name,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=number, committed_offset=offset, committed_metadata=metadata
                )
                for number in numbers
                for offset, metadata in [position_of(positions[TopicPartition(name, number)])]
            ],
        )
        for name, numbers in by_topic(positions).items()
    ]
    request = OffsetCommitRequest(group_id=group, topics=topics)

    def once() -> None:
        response = cluster.coordinator(group, GROUP).ask(request, OffsetCommitResponse, at_most=_BY_NAME_ONLY)
        for answered in response.topics:
            for each in answered.partitions:
                check(each.error_code, f"group {group}, partition {answered.name}-{each.partition_index}")

    cluster.persist(once)


def position_of(given: int | tuple[int, str]) -> tuple[int, str]:
    return (given, "") if isinstance(given, int) else given


def _topics(kind: Any, wanted: Mapping[str, list[int]]) -> list[Any]:
    return [kind(name=name, partition_indexes=numbers) for name, numbers in wanted.items()]
