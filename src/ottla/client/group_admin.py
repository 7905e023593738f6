"""Groups from outside: which there are, who is in them, what they have read, and changes to that."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedRequest, check
from ottla.client.group import commit_offsets, read_assignment
from ottla.client.topology import GROUP
from ottla.core.types import TopicPartition
from ottla.protocol.errors import GroupIdNotFound, UnsupportedVersion
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from ottla.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

# The newest version in which topics have names: a group may have read topics that are no more.
_OFFSETS_BY_NAME: Final = 9


@dataclass(slots=True)
class Member:
    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    partitions: list[TopicPartition] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    id: str
    type: str
    state: str
    assignor: str = ""
    coordinator: int = -1
    members: list[Member] = field(default_factory=list)


async def list_groups(cluster: Cluster) -> list[ListedGroup]:
    """Every group of the cluster: each coordinator knows its own."""

    async def all_brokers() -> list[ListedGroup]:
        await cluster.refresh()
        found: dict[str, ListedGroup] = {}
        for answer in await asyncio.gather(*(_listed_by(cluster, broker) for broker in cluster.brokers)):
            found |= {each.group_id: each for each in answer}
        return [found[name] for name in sorted(found)]

    return await cluster.persist(all_brokers)


async def _listed_by(cluster: Cluster, broker: int) -> list[ListedGroup]:
    response = await cluster.ask(ListGroupsRequest(), ListGroupsResponse, broker=broker)
    check(response.error_code, f"listing the groups of broker {broker}")
    return response.groups


async def describe_group(cluster: Cluster, group_id: str) -> Group:
    """A group of whatever type. Raises GroupIdNotFound if there is none."""

    async def once() -> Group:
        for describe in (_describe_consumer, _describe_share, _describe_classic):
            try:
                return await describe(cluster, group_id)
            except (GroupIdNotFound, UnsupportedRequest, UnsupportedVersion):
                continue  # of another type, or of one that the cluster has switched off
        raise GroupIdNotFound(f"group {group_id}: there is no such group")

    return await cluster.persist(once)


async def _describe_consumer(cluster: Cluster, group_id: str) -> Group:
    response = await cluster.ask_coordinator(
        GROUP, group_id, ConsumerGroupDescribeRequest(group_ids=[group_id]), ConsumerGroupDescribeResponse
    )
    (found,) = response.groups
    _check(cluster, found.error_code, group_id, found.error_message)
    members = []
    for each in found.members:
        owned = [
            TopicPartition(t.topic_name, index)
            for t in each.assignment.topic_partitions
            for index in t.partitions
        ]
        members.append(
            Member(each.member_id, each.client_id, each.client_host, each.instance_id, sorted(owned))
        )
    coordinator = await cluster.coordinator(GROUP, group_id)
    return Group(group_id, "consumer", found.group_state, found.assignor_name, coordinator, members)


async def _describe_share(cluster: Cluster, group_id: str) -> Group:
    response = await cluster.ask_coordinator(
        GROUP, group_id, ShareGroupDescribeRequest(group_ids=[group_id]), ShareGroupDescribeResponse
    )
    (found,) = response.groups
    _check(cluster, found.error_code, group_id, found.error_message)
    members = []
    for each in found.members:
        owned = [
            TopicPartition(t.topic_name, index)
            for t in each.assignment.topic_partitions
            for index in t.partitions
        ]
        members.append(Member(each.member_id, each.client_id, each.client_host, None, sorted(owned)))
    coordinator = await cluster.coordinator(GROUP, group_id)
    return Group(group_id, "share", found.group_state, found.assignor_name, coordinator, members)


async def _describe_classic(cluster: Cluster, group_id: str) -> Group:
    response = await cluster.ask_coordinator(
        GROUP, group_id, DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse
    )
    (found,) = response.groups
    _check(cluster, found.error_code, group_id, found.error_message)
    if found.group_state == "Dead":  # how older brokers say that they do not know it
        raise GroupIdNotFound(f"group {group_id}: there is no such group")
    members = []
    for each in found.members:
        owned = read_assignment(each.member_assignment) if found.protocol_type == "consumer" else []
        members.append(
            Member(each.member_id, each.client_id, each.client_host, each.group_instance_id, sorted(owned))
        )
    coordinator = await cluster.coordinator(GROUP, group_id)
    return Group(group_id, "classic", found.group_state, found.protocol_data, coordinator, members)


async def committed_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, int]:
    """How far a group has read, by what it committed."""

    async def once() -> dict[TopicPartition, int]:
        connection = await cluster.broker(await cluster.coordinator(GROUP, group_id))
        request = OffsetFetchRequest()
        if connection.version_of(OffsetFetchRequest) >= 8:
            request.groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None)]
        else:
            request.group_id, request.topics = group_id, None
        response = await cluster.ask_coordinator(
            GROUP, group_id, request, OffsetFetchResponse, at_most=_OFFSETS_BY_NAME
        )
        found: dict[TopicPartition, int] = {}
        _check(cluster, response.error_code, group_id)
        for group in response.groups:
            _check(cluster, group.error_code, group_id)
            for topic in group.topics:
                found |= {
                    TopicPartition(topic.name, p.partition_index): p.committed_offset
                    for p in topic.partitions
                }
        for old in response.topics:
            found |= {TopicPartition(old.name, p.partition_index): p.committed_offset for p in old.partitions}
        return {partition: offset for partition, offset in sorted(found.items()) if offset >= 0}

    return await cluster.persist(once)


async def reset_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Have a group go on from here. It must have no members at the moment."""
    await cluster.persist(lambda: commit_offsets(cluster, group_id, offsets))


async def delete_group(cluster: Cluster, group_id: str) -> None:
    async def once() -> None:
        response = await cluster.ask_coordinator(
            GROUP, group_id, DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse
        )
        (result,) = response.results
        _check(cluster, result.error_code, group_id)

    await cluster.persist(once)


def _check(cluster: Cluster, code: int, group_id: str, message: str | None = None) -> None:
    if code:
        cluster.lost_coordinator(GROUP, group_id)
    check(code, f"group {group_id}", message)
