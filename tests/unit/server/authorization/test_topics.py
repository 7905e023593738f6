"""Topics and their records: what is refused, what is hidden, and what is done beside it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.errors import (
    InvalidRequest,
    InvalidTopic,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.server.authorized_operations import NOT_ASKED
from ottla.server.handlers.create_partitions import create_partitions
from ottla.server.handlers.create_topics import create_topics
from ottla.server.handlers.delete_records import delete_records
from ottla.server.handlers.delete_topics import delete_topics
from ottla.server.handlers.describe_producers import describe_producers
from ottla.server.handlers.describe_topic_partitions import describe_topic_partitions
from ottla.server.handlers.list_offsets import list_offsets
from ottla.server.handlers.metadata import metadata
from ottla.server.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from tests.unit.server.authorization.conftest import Right
from tests.unit.server.handlers.conftest import NOW_MS, Surroundings

REFUSED: Final = TopicAuthorizationFailed.code
UNKNOWN: Final = UnknownTopicOrPartition.code
NOWHERE: Final = Uuid(b"\x41" + bytes(15))


def topic(operation: Operation, name: str) -> Right:
    return operation, ResourceType.TOPIC, name


def on_cluster(operation: Operation) -> Right:
    return operation, ResourceType.CLUSTER, CLUSTER_NAME


@pytest.fixture
def topics(cluster: Surroundings) -> dict[str, Uuid]:
    return {name: cluster.create(name) for name in ("mine", "secret")}


# --- Metadata --------------------------------------------------------------------------------


def named(*names: str, auto: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=auto
    )


@pytest.mark.parametrize("version", [0, 1, 9, 13])
def test_all_topics_are_those_that_may_be_described(
    cluster: Surroundings, topics: dict[str, Uuid], version: int
) -> None:
    cluster.authorize(topic(Operation.READ, "mine"))
    everything = MetadataRequest(topics=[] if version == 0 else None)
    answer = cluster.call(metadata, everything, version)
    assert [each.name for each in answer.topics] == ["mine"]
    assert answer.brokers, "where the brokers are is for everybody"


def test_a_topic_that_may_not_be_described_looks_the_same_whether_it_exists_or_not(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    cluster.authorize(topic(Operation.DESCRIBE, "mine"))
    request = named("mine", "secret", "nowhere", "not a name", "__consumer_offsets")
    request.include_topic_authorized_operations = True
    answer = cluster.call(metadata, request)
    mine, *others = answer.topics
    assert (mine.error_code, mine.topic_id) == (0, topics["mine"])
    assert mine.topic_authorized_operations == 1 << Operation.DESCRIBE
    assert {each.name for each in others} == {"secret", "nowhere", "not a name", "__consumer_offsets"}
    for each in others:
        shown = each.error_code, each.topic_id, each.is_internal, each.partitions
        assert shown == (REFUSED, ZERO_UUID, False, [])
        assert each.topic_authorized_operations == NOT_ASKED


def test_an_id_that_may_not_be_described_is_refused_without_its_name(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    cluster.authorize(topic(Operation.DESCRIBE, "mine"))
    ids = [topics["mine"], topics["secret"], NOWHERE]
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=each, name=None) for each in ids])
    answer = cluster.call(metadata, request, 12)
    assert {each.topic_id: (each.error_code, each.name) for each in answer.topics} == {
        topics["mine"]: (0, "mine"),
        topics["secret"]: (REFUSED, None),
        NOWHERE: (UnknownTopicId.code, None),
    }


@pytest.mark.parametrize("right", [on_cluster(Operation.CREATE), topic(Operation.CREATE, "new")])
def test_a_topic_is_made_for_whoever_may_describe_and_create_it(cluster: Surroundings, right: Right) -> None:
    cluster.authorize(topic(Operation.DESCRIBE, "new"), right)
    (answer,) = cluster.call(metadata, named("new", auto=True)).topics
    assert (answer.error_code, answer.name, len(answer.partitions)) == (0, "new", 1)


def test_a_topic_that_may_not_be_created_is_refused_only_where_it_would_have_been(
    cluster: Surroundings,
) -> None:
    cluster.authorize(*(topic(Operation.DESCRIBE, name) for name in ("new", "not a name")))
    answer = cluster.call(metadata, named("new", "not a name", auto=True))
    assert [each.error_code for each in answer.topics] == [REFUSED, REFUSED]
    answer = cluster.call(metadata, named("new", "not a name"))
    assert [each.error_code for each in answer.topics] == [UNKNOWN, InvalidTopic.code]
    assert not cluster.image.topics


def test_the_right_to_create_is_none_to_describe(cluster: Surroundings) -> None:
    cluster.authorize(on_cluster(Operation.CREATE))
    (answer,) = cluster.call(metadata, named("new", auto=True)).topics
    assert answer.error_code == REFUSED
    assert not cluster.image.topics


@pytest.mark.parametrize(("rights", "shown"), [((), 0), ((on_cluster(Operation.ALTER),), 1 << 7 | 1 << 8)])
def test_what_may_be_done_with_the_cluster_shows_to_who_may_describe_it(
    cluster: Surroundings, rights: tuple[Right, ...], shown: int
) -> None:
    cluster.authorize(*rights)
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert cluster.call(metadata, request, 10).cluster_authorized_operations == shown


# --- DescribeTopicPartitions -----------------------------------------------------------------


def test_pages_hold_topics_that_may_be_described(cluster: Surroundings, topics: dict[str, Uuid]) -> None:
    cluster.create("zebra")
    cluster.authorize(topic(Operation.DESCRIBE, "mine"), topic(Operation.DESCRIBE, "zebra"))
    answer = cluster.call(
        describe_topic_partitions, DescribeTopicPartitionsRequest(response_partition_limit=1)
    )
    assert [each.name for each in answer.topics] == ["mine"]
    assert answer.next_cursor.topic_name == "zebra", "a cursor does not tell either"
    names = ("mine", "nowhere", "secret")
    request = DescribeTopicPartitionsRequest(topics=[DescribedTopic(name=name) for name in names])
    answer = cluster.call(describe_topic_partitions, request)
    assert [(each.name, each.error_code, each.topic_id) for each in answer.topics] == [
        ("mine", 0, topics["mine"]),
        ("nowhere", REFUSED, ZERO_UUID),
        ("secret", REFUSED, ZERO_UUID),
    ]
    assert [each.topic_authorized_operations == NOT_ASKED for each in answer.topics] == [False, True, True]


def test_a_cursor_at_a_hidden_topic_goes_on_behind_it(cluster: Surroundings, topics: dict[str, Uuid]) -> None:
    cluster.create("zebra")
    cluster.authorize(topic(Operation.DESCRIBE, "zebra"))
    request = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="secret", partition_index=0))
    answer = cluster.call(describe_topic_partitions, request)
    assert [each.name for each in answer.topics] == ["zebra"]


# --- CreateTopics, DeleteTopics, CreatePartitions --------------------------------------------


def new(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    )


def test_the_allowed_topics_of_a_request_are_created(cluster: Surroundings) -> None:
    cluster.authorize(topic(Operation.CREATE, "mine"), topic(Operation.DESCRIBE_CONFIGS, "mine"))
    answer = cluster.call(create_topics, new("mine", "theirs", "twice", "twice", "__cluster_metadata"))
    codes = {each.name: (each.error_code, each.error_message) for each in answer.topics}
    assert codes == {
        "mine": (0, None),
        "theirs": (REFUSED, "Authorization failed."),
        "twice": (InvalidRequest.code, "Duplicate topic name."),
        "__cluster_metadata": (
            InvalidRequest.code,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    }
    assert set(cluster.image.topics) == {"mine"}
    mine = answer.topics[0]
    assert (mine.num_partitions, mine.replication_factor, mine.topic_config_error_code) == (2, 1, 0)
    assert mine.configs


def test_who_creates_a_topic_may_not_therefore_see_its_configs(cluster: Surroundings) -> None:
    cluster.authorize(on_cluster(Operation.CREATE))
    (answer,) = cluster.call(create_topics, new("mine")).topics
    assert (answer.error_code, answer.topic_config_error_code) == (0, REFUSED)
    assert (answer.num_partitions, answer.replication_factor, answer.configs) == (-1, -1, [])
    assert len(cluster.image.topics["mine"].partitions) == 2


def test_names_are_deleted_or_refused_without_telling_which_exist(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    cluster.create("seen")
    cluster.authorize(
        *(topic(Operation.DELETE, name) for name in ("mine", "gone")),
        *(topic(Operation.DESCRIBE, name) for name in ("seen", "unseen")),
    )
    names = ["mine", "gone", "seen", "unseen", "secret", "nowhere", "twice", "twice"]
    for version in (5, 6):
        if version == 5:
            request = DeleteTopicsRequest(topic_names=[name for name in names if name != "mine"])
        else:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])
        answer = cluster.call(delete_topics, request, version)
        codes = {each.name: each.error_code for each in answer.responses}
        assert codes.pop("mine", 0) == 0
        assert codes == {
            "gone": UNKNOWN,
            "seen": REFUSED,
            "unseen": UNKNOWN,
            "secret": REFUSED,
            "nowhere": REFUSED,
            "twice": InvalidRequest.code,
        }
        assert all(each.topic_id == ZERO_UUID for each in answer.responses if each.error_code)
    assert set(cluster.image.topics) == {"seen", "secret"}


def test_an_id_that_may_not_be_deleted_shows_its_name_to_who_may_describe_it(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    seen = cluster.create("seen")
    cluster.authorize(topic(Operation.DELETE, "mine"), topic(Operation.DESCRIBE, "seen"))
    ids = [topics["mine"], seen, topics["secret"], NOWHERE]
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=each) for each in ids])
    answer = cluster.call(delete_topics, request)
    assert {each.topic_id: (each.error_code, each.name) for each in answer.responses} == {
        topics["mine"]: (0, "mine"),
        seen: (REFUSED, "seen"),
        topics["secret"]: (REFUSED, None),
        NOWHERE: (UnknownTopicId.code, None),
    }
    assert set(cluster.image.topics) == {"seen", "secret"}


def test_what_this_broker_does_not_know_yet_is_not_left_to_the_controller(cluster: Surroundings) -> None:
    """The controller is ahead of the broker's image, and does not ask who may delete."""
    cluster.authorize(topic(Operation.DESCRIBE, "seen"))

    class Ahead:
        is_active = True

        async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
            raise AssertionError(f"asked for {request}")

    cluster.quorum = Ahead()
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name="seen"), DeleteTopicState(name=None, topic_id=NOWHERE)]
    )
    answer = cluster.call(delete_topics, request)
    assert [each.error_code for each in answer.responses] == [UNKNOWN, UnknownTopicId.code]


def test_a_name_and_its_own_id_do_not_make_each_other_allowed(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    cluster.authorize(topic(Operation.DESCRIBE, "secret"))
    request = DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name="secret"),
            DeleteTopicState(name=None, topic_id=topics["secret"]),
            DeleteTopicState(name="secret", topic_id=topics["secret"]),
            DeleteTopicState(name=None),
        ]
    )
    answer = cluster.call(delete_topics, request)
    assert all(each.error_code in (REFUSED, InvalidRequest.code) for each in answer.responses)
    assert "secret" in cluster.image.topics


def test_whoever_may_delete_from_the_cluster_may_delete_every_topic(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    cluster.authorize(on_cluster(Operation.DELETE))
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name="mine"), DeleteTopicState(name=None, topic_id=topics["secret"])]
    )
    answer = cluster.call(delete_topics, request)
    assert [each.error_code for each in answer.responses] == [0, 0]
    assert not cluster.image.topics


def test_partitions_are_added_to_the_allowed_topics_of_a_request(
    cluster: Surroundings, topics: dict[str, Uuid]
) -> None:
    cluster.authorize(topic(Operation.ALTER, "mine"))
    names = ("mine", "secret", "nowhere", "twice", "twice")
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names]
    )
    answer = cluster.call(create_partitions, request)
    assert {each.name: each.error_code for each in answer.results} == {
        "mine": 0,
        "secret": REFUSED,
        "nowhere": REFUSED,
        "twice": InvalidRequest.code,
    }
    assert [len(cluster.image.topics[name].partitions) for name in ("mine", "secret")] == [3, 1]


# --- records ---------------------------------------------------------------------------------


def test_offsets_are_listed_topic_by_topic(cluster: Surroundings, topics: dict[str, Uuid]) -> None:
    for name in topics:
        cluster.produce(name, NOW_MS)
    cluster.authorize(topic(Operation.WRITE, "mine"))
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=name, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)]
            )
            for name, index in (("mine", 0), ("secret", 0), ("secret", 7), ("nowhere", 0))
        ],
    )
    for version in (1, 11):
        answer = cluster.call(list_offsets, request, version)
        found = [(each.name, p.error_code, p.offset) for each in answer.topics for p in each.partitions]
        assert found == [
            ("mine", 0, 1),
            ("secret", REFUSED, -1),
            ("secret", REFUSED, -1),
            ("nowhere", REFUSED, -1),
        ]


def test_records_are_deleted_topic_by_topic(cluster: Surroundings, topics: dict[str, Uuid]) -> None:
    for name in topics:
        cluster.produce(name, NOW_MS, NOW_MS)
    cluster.authorize(topic(Operation.DELETE, "mine"), topic(Operation.WRITE, "secret"))
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)])
            for name in ("mine", "secret", "nowhere")
        ]
    )
    answer = cluster.call(delete_records, request)
    assert [(each.partitions[0].error_code, each.partitions[0].low_watermark) for each in answer.topics] == [
        (0, 2),
        (REFUSED, -1),
        (REFUSED, -1),
    ]
    assert [cluster.partition(name).log.start_offset for name in ("mine", "secret")] == [2, 0]


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (topic(Operation.DESCRIBE, "mine"), [0, REFUSED, REFUSED]),
        (on_cluster(Operation.CLUSTER_ACTION), [0, 0, UNKNOWN]),
    ],
)
def test_epochs_are_for_followers_and_for_who_may_describe_the_topic(
    cluster: Surroundings, topics: dict[str, Uuid], right: Right, expected: list[int]
) -> None:
    cluster.authorize(right)
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=name, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
            )
            for name in ("mine", "secret", "nowhere")
        ]
    )
    answer = cluster.call(offset_for_leader_epoch, request)
    assert [each.partitions[0].error_code for each in answer.topics] == expected
    assert all(p.end_offset == -1 for each in answer.topics for p in each.partitions if p.error_code)


def test_producers_are_described_to_readers(cluster: Surroundings, topics: dict[str, Uuid]) -> None:
    cluster.authorize(topic(Operation.READ, "mine"), topic(Operation.READ, "gone"))
    names = ("mine", "gone", "secret", "nowhere", "not a name")
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=[0]) for name in names]
    )
    answer = cluster.call(describe_producers, request)
    assert [each.partitions[0].error_code for each in answer.topics] == [
        0,
        UNKNOWN,
        REFUSED,
        REFUSED,
        InvalidTopic.code,
    ]


def test_without_an_authorizer_nobody_is_asked_about(cluster: Surroundings, topics: dict[str, Uuid]) -> None:
    answer = cluster.call(metadata, MetadataRequest(topics=None))
    assert {each.name for each in answer.topics} == set(topics)
    assert cluster.call(create_topics, new("more")).topics[0].topic_config_error_code == 0
    asyncio.run(cluster.caught_up())
    assert "more" in cluster.image.topics
