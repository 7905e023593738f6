"""What an operator asks of a cluster and tells it: topics, records, configurations, the cluster itself.

Each function is one request, sent to whoever may answer it, tried again after errors that pass. What a broker
refuses is raised with the name of what it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedRequest, check
from ottla.core.types import CLUSTER_METADATA, TopicPartition
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    PartitionDataResponse,
    TopicData,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ResourceType(IntEnum):
    """What a configuration belongs to."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Operation(IntEnum):
    """How a configuration changes."""

    SET = 0
    UNSET = 1
    APPEND = 2
    SUBTRACT = 3


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreatableTopicResult:
    """Make a topic; -1 leaves a number to the broker."""
    given = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication_factor, configs=given
    )
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=_milliseconds(cluster), validate_only=validate_only
    )

    async def once() -> CreatableTopicResult:
        response = await cluster.ask(request, CreateTopicsResponse)
        (result,) = response.topics
        check(result.error_code, f"topic {name}", result.error_message)
        return result

    return await cluster.persist(once)


async def delete_topic(cluster: Cluster, name: str) -> None:
    await cluster.topic(name)  # a name that does not exist is said at once, not waited for
    request = DeleteTopicsRequest(timeout_ms=_milliseconds(cluster))
    if (await cluster.any()).version_of(DeleteTopicsRequest) >= 6:
        request.topics = [DeleteTopicState(name=name)]
    else:
        request.topic_names = [name]

    async def once() -> None:
        response = await cluster.ask(request, DeleteTopicsResponse)
        (result,) = response.responses
        check(result.error_code, f"topic {name}", result.error_message)

    await cluster.persist(once)
    cluster.forget()


async def add_partitions(cluster: Cluster, name: str, count: int, *, validate_only: bool = False) -> None:
    """Give a topic this many partitions in all."""
    await cluster.topic(name)
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(
        topics=[topic], timeout_ms=_milliseconds(cluster), validate_only=validate_only
    )

    async def once() -> None:
        response = await cluster.ask(request, CreatePartitionsResponse)
        (result,) = response.results
        check(result.error_code, f"topic {name}", result.error_message)

    await cluster.persist(once)
    cluster.forget()


async def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Forget what is before these offsets; -1 means all there is. Answers where the partitions begin now."""

    async def once() -> dict[TopicPartition, int]:
        by_leader: dict[int, dict[str, DeleteRecordsTopic]] = {}
        for partition, offset in before.items():
            topics = by_leader.setdefault(await cluster.leader(partition), {})
            topic = topics.setdefault(
                partition.topic, DeleteRecordsTopic(name=partition.topic, partitions=[])
            )
            topic.partitions.append(
                DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
            )
        begins = {}
        for leader, topics in by_leader.items():
            request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=_milliseconds(cluster))
            response = await cluster.ask(request, DeleteRecordsResponse, broker=leader)
            for answered in response.topics:
                for each in answered.partitions:
                    partition = TopicPartition(answered.name, each.partition_index)
                    check(each.error_code, f"partition {partition}")
                    begins[partition] = each.low_watermark
        return begins

    return await cluster.persist(once)


async def describe_configs(
    cluster: Cluster,
    kind: ResourceType,
    name: str,
    *,
    keys: Iterable[str] | None = None,
    documentation: bool = False,
) -> list[DescribeConfigsResourceResult]:
    """The configuration of a topic, a group, a broker, or ("" as the broker) of all brokers together."""
    if kind is ResourceType.TOPIC:
        await cluster.topic(name)
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=documentation
    )

    async def once() -> list[DescribeConfigsResourceResult]:
        response = await cluster.ask(request, DescribeConfigsResponse, broker=_owner(kind, name))
        (result,) = response.results
        check(result.error_code, _subject(kind, name), result.error_message)
        return sorted(result.configs, key=lambda each: each.name)

    return await cluster.persist(once)


async def alter_configs(
    cluster: Cluster,
    kind: ResourceType,
    name: str,
    changes: Iterable[tuple[str, Operation, str | None]],
    *,
    validate_only: bool = False,
) -> None:
    """Change these settings and leave the others as they are."""
    if kind is ResourceType.TOPIC:
        await cluster.topic(name)
    configs = [AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)

    async def once() -> None:
        response = await cluster.ask(request, IncrementalAlterConfigsResponse, broker=_owner(kind, name))
        (result,) = response.responses
        check(result.error_code, _subject(kind, name), result.error_message)

    await cluster.persist(once)


async def describe_cluster(cluster: Cluster) -> DescribeClusterResponse:
    """The brokers; those that are fenced as well, where the cluster tells of them."""

    async def once() -> DescribeClusterResponse:
        try:
            request = DescribeClusterRequest(include_fenced_brokers=True)
            response = await cluster.ask(request, DescribeClusterResponse)
        except UnsupportedRequest:
            response = await cluster.ask(DescribeClusterRequest(), DescribeClusterResponse)
        check(response.error_code, "the cluster", response.error_message)
        return response

    return await cluster.persist(once)


async def describe_quorum(cluster: Cluster) -> PartitionDataResponse | None:
    """The metadata quorum as its leader sees it; None where there is no such quorum.

    Brokers name a controller in Metadata and DescribeCluster too, but Apache Kafka's name any broker alive.
    """
    partition = PartitionData(partition_index=0)
    request = DescribeQuorumRequest(topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])])

    async def once() -> PartitionDataResponse:
        response = await cluster.ask(request, DescribeQuorumResponse)
        check(response.error_code, "the quorum", response.error_message)
        ((found,),) = [topic.partitions for topic in response.topics]
        check(found.error_code, "the quorum", found.error_message)
        return found

    try:
        return await cluster.persist(once)
    except UnsupportedRequest:
        return None


async def describe_log_dirs(cluster: Cluster, broker: int) -> DescribeLogDirsResponse:
    """Where a broker keeps its logs, and how large they are."""
    response = await cluster.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, broker=broker)
    check(response.error_code, f"broker {broker}")
    return response


def _owner(kind: ResourceType, name: str) -> int | None:
    """A broker's own configuration is known to that broker alone."""
    return int(name) if kind is ResourceType.BROKER and name else None


def _subject(kind: ResourceType, name: str) -> str:
    return f"{kind.name.lower()} {name}" if name else "all brokers"


def _milliseconds(cluster: Cluster) -> int:
    return int(cluster.timeout * 1000)
