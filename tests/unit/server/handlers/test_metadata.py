from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import LOST_DIRECTORY, ZERO_UUID, Uuid
from ottla.protocol.errors import (
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    LeaderNotAvailable,
    ListenerNotFound,
    ReplicaNotAvailable,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.stored import metadata as stored
from ottla.server.handlers.metadata import metadata

NO_OPERATIONS = -(2**31)
ALL_ON_TOPIC = 3576
ALL_ON_CLUSTER = 8096


def by_name(*names: str | None, **fields: Any) -> MetadataRequest:
    fields.setdefault("allow_auto_topic_creation", False)
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def by_id(*ids: Uuid, **fields: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, **fields)


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


def test_it_names_the_cluster_its_brokers_and_one_to_ask_for_changes(node: Any) -> None:
    node.register(2, rack="east")
    response = node.call(metadata, by_name())
    assert response.cluster_id == node.cluster_id
    assert response.controller_id == 1
    # Our own address is the one that the client dialled; another's is the one it registered.
    assert [(b.node_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (1, "127.0.0.1", 9092, None),
        (2, "broker-2", 9092, "east"),
    ]


def test_fenced_brokers_and_those_without_the_listener_are_not_shown(node: Any) -> None:
    node.register(2, fenced=True)
    node.register(3, listener="INTERNAL")
    assert [broker.node_id for broker in node.call(metadata, by_name()).brokers] == [1]


def test_a_fenced_broker_sends_clients_to_one_that_is_not(make_node: Any) -> None:
    node = make_node()
    node.register(1, fenced=True)
    assert node.call(metadata, by_name()).controller_id == -1
    node.register(2)
    assert node.call(metadata, by_name()).controller_id == 2


def test_null_means_all_topics_and_an_empty_list_none(node: Any) -> None:
    node.create("a")
    node.create("b")
    assert errors(node.call(metadata, MetadataRequest(topics=None))) == {"a": 0, "b": 0}
    assert errors(node.call(metadata, MetadataRequest(topics=[]))) == {}


def test_an_empty_list_means_all_topics_in_version_0(node: Any) -> None:
    node.create("a")
    assert errors(node.call(metadata, MetadataRequest(topics=[]), 0)) == {"a": 0}


def test_a_topic_named_twice_is_answered_once(node: Any) -> None:
    node.create("a")
    assert [topic.name for topic in node.call(metadata, by_name("a", "a")).topics] == ["a"]


def test_partitions_carry_leader_epoch_replicas_and_the_in_sync_set(node: Any) -> None:
    node.register(2)
    topic_id = node.create("a", 2, replicas=(1, 2), isr=(1,), leader_epoch=4)
    (topic,) = node.call(metadata, by_name("a")).topics
    assert (topic.topic_id, topic.is_internal, topic.error_code) == (topic_id, False, 0)
    assert [
        (p.partition_index, p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes, p.error_code)
        for p in topic.partitions
    ] == [(0, 1, 4, [1, 2], [1], 0), (1, 1, 4, [1, 2], [1], 0)]


def test_internal_topics_are_marked(node: Any) -> None:
    node.create("__consumer_offsets")
    (topic,) = node.call(metadata, by_name("__consumer_offsets")).topics
    assert topic.is_internal


def test_unknown_and_illegal_names_have_codes_of_their_own(node: Any) -> None:
    response = node.call(metadata, by_name("nope", "not a name", "..", "x" * 250))
    assert errors(response) == {
        "nope": UnknownTopicOrPartition.code,
        "not a name": InvalidTopic.code,
        "..": InvalidTopic.code,
        "x" * 250: InvalidTopic.code,
    }
    assert {topic.topic_id for topic in response.topics} == {ZERO_UUID}


def test_topics_are_found_by_id(node: Any) -> None:
    topic_id = node.create("a")
    unknown = Uuid(b"\x41" * 16)
    response = node.call(metadata, by_id(topic_id, unknown))
    assert errors(response) == {"a": 0, None: UnknownTopicId.code}
    assert {topic.topic_id for topic in response.topics} == {topic_id, unknown}


def test_one_id_makes_names_count_for_nothing(node: Any) -> None:
    topic_id = node.create("a")
    node.create("b")
    request = by_id(topic_id)
    assert request.topics is not None
    request.topics.append(MetadataRequestTopic(name="b"))
    assert errors(node.call(metadata, request)) == {"a": 0}


@pytest.mark.parametrize("version", [10, 11])
def test_ids_and_null_names_are_refused_before_version_12(node: Any, version: int) -> None:
    topic_id = node.create("a")
    for request in (by_id(topic_id), by_name("a", None)):
        response = node.call(metadata, request, version)
        assert {topic.error_code for topic in response.topics} == {InvalidRequest.code}


def test_a_partition_without_a_leader_says_so(node: Any) -> None:
    node.create("a", leader=-1, isr=())
    (partition,) = node.call(metadata, by_name("a")).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (LeaderNotAvailable.code, -1)


@pytest.mark.parametrize("version", [5, 6, 13])
def test_a_leader_without_our_listener_is_a_mistake_that_newer_clients_are_told_of(
    node: Any, version: int
) -> None:
    node.register(2, listener="INTERNAL")
    node.create("a", replicas=(2,))
    (partition,) = node.call(metadata, by_name("a"), version).topics[0].partitions
    expected = ListenerNotFound if version >= 6 else LeaderNotAvailable
    assert (partition.error_code, partition.leader_id) == (expected.code, -1)


def test_replicas_are_offline_on_brokers_that_are_fenced_or_gone(node: Any) -> None:
    node.register(2, fenced=True)
    node.create("a", replicas=(1, 2, 3), isr=(1,))
    (partition,) = node.call(metadata, by_name("a")).topics[0].partitions
    assert partition.offline_replicas == [2, 3]
    assert partition.replica_nodes == [1, 2, 3]
    assert partition.error_code == 0


def test_replicas_are_offline_in_directories_that_have_failed(node: Any) -> None:
    mine = node.log_directories[0].id
    other = Uuid(b"\x42" * 16)
    node.register(2, directories=[other])
    node.create("fine", replicas=(1, 2), directories=[mine, other])
    node.create("gone", replicas=(1, 2), directories=[mine, Uuid(b"\x43" * 16)])
    node.create("lost", replicas=(1, 2), directories=[mine, LOST_DIRECTORY])
    topics = node.call(metadata, by_name("fine", "gone", "lost")).topics
    assert [topic.partitions[0].offline_replicas for topic in topics] == [[], [2], [2]]


def test_version_0_leaves_out_what_is_down_and_says_so(node: Any) -> None:
    node.create("a", replicas=(1, 2), isr=(1,))
    request = by_name("a", allow_auto_topic_creation=True)  # which is what every old client wants
    (partition,) = node.call(metadata, request, 0).topics[0].partitions
    assert partition.error_code == ReplicaNotAvailable.code
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])


def test_operations_are_listed_for_those_who_ask(node: Any) -> None:
    node.create("a")
    request = by_name("a", "nope", include_topic_authorized_operations=True)
    response = node.call(metadata, request)
    assert [topic.topic_authorized_operations for topic in response.topics] == [ALL_ON_TOPIC] * 2
    response = node.call(metadata, by_name("a"))
    assert response.topics[0].topic_authorized_operations == NO_OPERATIONS


def test_operations_on_the_cluster_are_listed_in_versions_8_to_10(node: Any) -> None:
    request = by_name(include_cluster_authorized_operations=True)
    assert node.call(metadata, request, 8).cluster_authorized_operations == ALL_ON_CLUSTER
    assert node.call(metadata, by_name(), 10).cluster_authorized_operations == NO_OPERATIONS


def test_every_version_can_be_answered(make_node: Any) -> None:
    node = make_node(auto_create_topics_enable="false")
    node.register()
    node.create("a", 3)
    for version in range(14):
        response = node.call(metadata, by_name("a", "nope", allow_auto_topic_creation=True), version)
        assert len(response.topics) == 2
        assert [len(topic.partitions) for topic in response.topics] == [3, 0]


# --- creating a topic because somebody asked for it ---------------------------------------------


class Creating:
    """A controller that creates topics, or answers as it is told."""

    def __init__(self, node: Any, error_code: int = 0) -> None:
        self.node = node
        self.error_code = error_code
        self.asked: list[CreateTopicsRequest] = []

    is_active = True

    async def submit(
        self, request: CreateTopicsRequest, version: int, caller: Any = None
    ) -> CreateTopicsResponse:
        self.asked.append(request)
        if not self.error_code:
            for number, topic in enumerate(request.topics):
                topic_id = Uuid(bytes([0x50 + number]) * 16)
                self.node.apply(stored.TopicRecord(name=topic.name, topic_id=topic_id))
                for index in range(topic.num_partitions):
                    self.node.apply(
                        stored.PartitionRecord(
                            partition_id=index,
                            topic_id=topic_id,
                            replicas=[1],
                            isr=[1],
                            leader=1,
                            leader_epoch=0,
                        )
                    )
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=t.name, error_code=self.error_code) for t in request.topics]
        )


@pytest.fixture
def creating(make_node: Any) -> Any:
    node = make_node(num_partitions="3")
    node.register()
    node.quorum = Creating(node)
    return node


def test_a_topic_is_created_for_who_wants_it_and_the_answer_has_it(creating: Any) -> None:
    response = creating.call(metadata, by_name("new", "not a name", allow_auto_topic_creation=True))
    assert errors(response) == {"new": 0, "not a name": InvalidTopic.code}
    (topic,) = [topic for topic in response.topics if topic.name == "new"]
    assert [partition.leader_id for partition in topic.partitions] == [1, 1, 1]
    assert creating.replicas.find("new", 2) is not None, "the partitions must be there to be used"
    (request,) = creating.quorum.asked
    assert [(t.name, t.num_partitions, t.replication_factor) for t in request.topics] == [("new", 3, 1)]


def test_nothing_is_created_for_who_does_not_want_it(creating: Any) -> None:
    response = creating.call(metadata, by_name("new", allow_auto_topic_creation=False))
    assert errors(response) == {"new": UnknownTopicOrPartition.code}
    assert not creating.quorum.asked


def test_nothing_is_created_when_the_broker_is_set_not_to(make_node: Any) -> None:
    node = make_node(auto_create_topics_enable="false")
    node.register()
    response = node.call(metadata, by_name("new", allow_auto_topic_creation=True))
    assert errors(response) == {"new": UnknownTopicOrPartition.code}


def test_nothing_is_created_for_an_id(creating: Any) -> None:
    request = by_id(Uuid(b"\x41" * 16))
    request.allow_auto_topic_creation = True
    assert errors(creating.call(metadata, request)) == {None: UnknownTopicId.code}


def test_versions_before_4_cannot_say_and_so_want_topics_created(creating: Any) -> None:
    response = creating.call(metadata, by_name("new", allow_auto_topic_creation=True), 3)
    assert errors(response) == {"new": 0}


def test_a_topic_that_somebody_else_just_created_is_as_good(creating: Any) -> None:
    topic_id = Uuid(b"\x60" * 16)

    class Raced(Creating):
        is_active = True

        async def submit(
            self, request: CreateTopicsRequest, version: int, caller: Any = None
        ) -> CreateTopicsResponse:
            creating.apply(
                stored.TopicRecord(name="new", topic_id=topic_id),
                stored.PartitionRecord(topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0),
            )
            return await super().submit(request, version)

    creating.quorum = Raced(creating, TopicAlreadyExists.code)
    response = creating.call(metadata, by_name("new", allow_auto_topic_creation=True))
    assert errors(response) == {"new": 0}


def test_why_a_topic_cannot_be_created_reaches_the_client(creating: Any) -> None:
    creating.quorum.error_code = InvalidReplicationFactor.code
    response = creating.call(metadata, by_name("new", allow_auto_topic_creation=True))
    assert errors(response) == {"new": InvalidReplicationFactor.code}


def test_a_client_is_to_ask_again_while_the_controller_is_away(creating: Any) -> None:
    class Away:
        is_active = True

        async def submit(
            self, request: CreateTopicsRequest, version: int, caller: Any = None
        ) -> CreateTopicsResponse:
            raise RequestTimedOut

    creating.quorum = Away()
    response = creating.call(metadata, by_name("new", allow_auto_topic_creation=True))
    assert errors(response) == {"new": UnknownTopicOrPartition.code}


def test_kafkas_own_topics_are_created_as_their_coordinators_need_them(creating: Any) -> None:
    names = ("__consumer_offsets", "__transaction_state", "__share_group_state")
    creating.call(metadata, by_name(*names, allow_auto_topic_creation=True))
    (request,) = creating.quorum.asked
    offsets, transactions, shares = request.topics
    assert (offsets.num_partitions, offsets.replication_factor) == (50, 3)
    assert {c.name: c.value for c in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert (transactions.num_partitions, transactions.replication_factor) == (50, 3)
    assert {c.name: c.value for c in transactions.configs}["min.insync.replicas"] == "2"
    assert (shares.num_partitions, shares.replication_factor) == (50, 3)
    assert {c.name: c.value for c in shares.configs}["cleanup.policy"] == "delete"
