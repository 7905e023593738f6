from __future__ import annotations

from typing import Any

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.metadata.image import TOPIC_RESOURCE
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.stored.metadata import RemoveTopicRecord

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REQUEST = 42
TOPIC_DELETION_DISABLED = 73
UNKNOWN_TOPIC_ID = 100


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])


def by_id(*ids: Uuid) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id) for topic_id in ids])


def test_a_topic_goes_by_name_or_by_id_with_a_single_record(cluster: Any) -> None:
    cluster.create("a", (1,), (2,), retention_ms="1000")
    cluster.create("b", (1,))
    first, second = (cluster.image.topics[name].id for name in "ab")

    (answer,) = cluster.do(by_name("a")).responses
    assert (answer.name, answer.topic_id, answer.error_code, answer.error_message) == ("a", first, 0, None)
    assert cluster.last == [RemoveTopicRecord(topic_id=first)]
    (answer,) = cluster.do(by_id(second)).responses
    assert (answer.name, answer.topic_id, answer.error_code) == ("b", second, 0)
    assert cluster.image.topics == {}
    assert cluster.image.config(TOPIC_RESOURCE, "a") == {}


def test_old_versions_give_names(cluster: Any) -> None:
    cluster.create("a", (1,))
    answers = cluster.do(DeleteTopicsRequest(topic_names=["a", "b"]), version=5).responses
    assert [(answer.name, answer.error_code) for answer in answers] == [
        ("a", 0),
        ("b", UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_what_is_not_there_cannot_go(cluster: Any) -> None:
    assert cluster.do(by_name("a")).responses[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.do(by_id(Uuid(b"x" * 16))).responses[0].error_code == UNKNOWN_TOPIC_ID


def test_a_topic_is_named_once_and_one_way(cluster: Any) -> None:
    cluster.create("a", (1,))
    known = cluster.image.topics["a"].id
    for states in (
        [DeleteTopicState(name="a"), DeleteTopicState(name="a")],
        [DeleteTopicState(topic_id=known), DeleteTopicState(topic_id=known)],
        [DeleteTopicState(name="a", topic_id=known)],
        [DeleteTopicState(topic_id=ZERO_UUID)],
    ):
        (answer,) = cluster.do(DeleteTopicsRequest(topics=states)).responses
        assert answer.error_code == INVALID_REQUEST
    both = [DeleteTopicState(topic_id=known), DeleteTopicState(name="a")]
    answers = cluster.do(DeleteTopicsRequest(topics=both)).responses
    assert [answer.error_code for answer in answers] == [0, INVALID_REQUEST]


def test_deletion_can_be_switched_off(make_cluster: Any) -> None:
    cluster = make_cluster(delete_topic_enable=False)
    cluster.start(1)
    cluster.create("a", (1,))

    assert cluster.do(by_name("a")).responses[0].error_code == TOPIC_DELETION_DISABLED
    old = cluster.do(DeleteTopicsRequest(topic_names=["a"]), version=2)
    assert old.responses[0].error_code == INVALID_REQUEST
    assert "a" in cluster.image.topics


def test_a_name_is_free_again_after_its_topic_went(cluster: Any) -> None:
    cluster.create("a.b", (1,))
    first = cluster.image.topics["a.b"].id
    cluster.do(by_name("a.b"))
    cluster.create("a_b", (1,))
    assert cluster.image.topics["a_b"].id != first
