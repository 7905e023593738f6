"""An error as the answer to a request, for every API in every version."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import Uuid
from ottla.protocol import apis, codec
from ottla.protocol.errors import (
    CoordinatorNotAvailable,
    FetchSessionIdNotFound,
    GroupAuthorizationFailed,
    KafkaError,
    NotLeaderOrFollower,
)
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.server.api import SERVED, Served
from ottla.server.routes import Route
from ottla.testing.refusals import refusal

TOPIC_ID = Uuid(b"sixteen bytes id")


def refused(request: Any, version: int, error: type[KafkaError]) -> Any:
    """The refusal as a client reads it."""
    route = Route(request.api_key, version)
    response = refusal(route, request, error)
    encoded = codec.encode(response, version)
    return codec.decode(apis.api(route.key).response, version, encoded)


@pytest.mark.parametrize("row", SERVED.values(), ids=lambda row: row.name)
def test_every_api_has_a_refusal_that_can_be_sent(row: Served) -> None:
    request: Any = apis.api(row.key).request
    for version in range(row.first, row.last + 1):
        refused(request(), version, NotLeaderOrFollower)


@pytest.mark.parametrize("version", [0, 7, 9, 12, 13])
def test_produce_is_refused_partition_by_partition(version: int) -> None:
    topic = TopicProduceData(
        name="orders" if version < 13 else "",
        topic_id=TOPIC_ID,
        partition_data=[PartitionProduceData(index=1), PartitionProduceData(index=4)],
    )
    answer = refused(ProduceRequest(topic_data=[topic]), version, NotLeaderOrFollower)
    (found,) = answer.responses
    assert found.name == "orders" if version < 13 else found.topic_id == TOPIC_ID
    assert [(p.index, p.error_code, p.base_offset) for p in found.partition_responses] == [
        (1, 6, -1),
        (4, 6, -1),
    ]


@pytest.mark.parametrize("version", [4, 11, 13, 18])
def test_fetch_is_refused_partition_by_partition_with_nothing_to_read(version: int) -> None:
    topic = FetchTopic(
        topic="orders" if version < 13 else "", topic_id=TOPIC_ID, partitions=[FetchPartition(partition=2)]
    )
    answer = refused(FetchRequest(topics=[topic]), version, NotLeaderOrFollower)
    (partition,) = answer.responses[0].partitions
    assert (partition.partition_index, partition.error_code, partition.high_watermark) == (2, 6, -1)
    assert bytes(partition.records) == b"" and answer.error_code == 0


def test_an_error_of_a_fetch_session_is_one_of_the_whole_request() -> None:
    topic = FetchTopic(topic="orders", partitions=[FetchPartition(partition=2)])
    assert refused(FetchRequest(topics=[topic]), 12, FetchSessionIdNotFound).error_code == 70
    assert refused(FetchRequest(), 12, NotLeaderOrFollower).error_code == 6


@pytest.mark.parametrize("version", [2, 6, 9, 10])
def test_commits_are_refused_partition_by_partition(version: int) -> None:
    topic = OffsetCommitRequestTopic(
        name="orders" if version < 10 else "",
        topic_id=TOPIC_ID,
        partitions=[OffsetCommitRequestPartition(partition_index=3, committed_offset=9)],
    )
    answer = refused(OffsetCommitRequest(topics=[topic]), version, GroupAuthorizationFailed)
    (partition,) = answer.topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (3, 30)


def test_errors_go_where_a_version_has_them() -> None:
    groups = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="orders")])
    answer = refused(OffsetFetchRequest(groups=[groups]), 8, CoordinatorNotAvailable)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [("g", 15)]
    assert refused(OffsetFetchRequest(group_id="g"), 7, CoordinatorNotAvailable).error_code == 15
    answer = refused(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4, CoordinatorNotAvailable)
    assert [(each.key, each.error_code) for each in answer.coordinators] == [("g", 15), ("h", 15)]
    assert refused(FindCoordinatorRequest(key="g"), 3, CoordinatorNotAvailable).error_code == 15


def test_topics_are_refused_by_name() -> None:
    answer = refused(
        CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")]),
        5,
        NotLeaderOrFollower,
    )
    assert [(each.name, each.error_code) for each in answer.topics] == [("a", 6), ("b", 6)]
    answer = refused(DeleteTopicsRequest(topic_names=["a"]), 4, NotLeaderOrFollower)
    assert [(each.name, each.error_code) for each in answer.responses] == [("a", 6)]
    answer = refused(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]), 6, NotLeaderOrFollower)
    assert [(each.name, each.error_code) for each in answer.responses] == [("a", 6)]
    topic = ListOffsetsTopic(name="a", partitions=[ListOffsetsPartition(partition_index=1, timestamp=-1)])
    (partition,) = refused(ListOffsetsRequest(topics=[topic]), 5, NotLeaderOrFollower).topics[0].partitions
    assert (partition.partition_index, partition.error_code, partition.timestamp) == (1, 6, -1)


def test_partitions_of_a_transaction_are_refused_one_by_one() -> None:
    from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic

    request = AddPartitionsToTxnRequest(
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0, 5])]
    )
    answer = refused(request, 3, NotLeaderOrFollower)
    (topic,) = answer.results_by_topic_v3_and_below
    assert [(p.partition_index, p.partition_error_code) for p in topic.results_by_partition] == [
        (0, 6),
        (5, 6),
    ]
