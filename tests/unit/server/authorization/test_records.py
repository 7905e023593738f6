"""Writing and reading records: whole requests, parts of them, sessions, and what waits."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.core.ids import Uuid
from ottla.core.types import CONSUMER_OFFSETS
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch
from ottla.protocol.errors import (
    InvalidRequest,
    InvalidTopic,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.authorization.conftest import Guarded, Right

REFUSED: Final = TopicAuthorizationFailed.code
NOWHERE: Final = Uuid(b"\x41" + bytes(15))
FOLLOWER: Final[Right] = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
LONG_MS: Final = 60_000


def write(topic: str) -> Right:
    return Operation.WRITE, ResourceType.TOPIC, topic


def read(topic: str) -> Right:
    return Operation.READ, ResourceType.TOPIC, topic


@pytest.fixture(scope="module", autouse=True)
def topics(guarded: Guarded) -> None:
    new = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("mine", "secret")]
    guarded.as_root(CreateTopicsRequest(topics=new))
    guarded.as_root(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))


def topic_id(guarded: Guarded, name: str) -> Uuid:
    topic = guarded.node.image.topics.get(name)
    return NOWHERE if topic is None else topic.id


def ends(guarded: Guarded) -> dict[tuple[str, int], int]:
    return {
        (name, index): guarded.node.replicas.get(name, index).log.end_offset
        for name in ("mine", "secret")
        for index in (0, 1)
    }


# --- Produce ---------------------------------------------------------------------------------


def batch(attributes: int = 0) -> bytes:
    return bytes(write_batch([Record(timestamp=1_700_000_000_000, value=b"v")], attributes=attributes))


def produced(guarded: Guarded, *partitions: tuple[str, int, bytes], **fields: Any) -> ProduceRequest:
    return ProduceRequest(
        acks=fields.pop("acks", -1),
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic_id(guarded, name),
                partition_data=[PartitionProduceData(index=index, records=records)],
            )
            for name, index, records in partitions
        ],
        **fields,
    )


def codes(response: Any) -> list[int]:
    return [answer.error_code for topic in response.responses for answer in topic.partition_responses]


@pytest.mark.parametrize(("version", "nowhere"), [(3, REFUSED), (12, REFUSED), (13, UnknownTopicId.code)])
def test_the_allowed_topics_of_a_request_are_written(guarded: Guarded, version: int, nowhere: int) -> None:
    guarded.allow(write("mine"), read("secret"))
    before = ends(guarded)
    names = ("secret", "mine", "nowhere", CONSUMER_OFFSETS)
    request = produced(guarded, *((name, 0, batch()) for name in names))
    assert codes(guarded.ask(request, version)) == [REFUSED, 0, nowhere, REFUSED]
    assert ends(guarded) == before | {("mine", 0): before["mine", 0] + 1}


def test_an_internal_topic_is_refused_to_who_may_write_to_it_too(guarded: Guarded) -> None:
    guarded.allow(write(CONSUMER_OFFSETS))
    assert codes(guarded.ask(produced(guarded, (CONSUMER_OFFSETS, 0, batch())))) == [InvalidTopic.code]


def test_acks_0_hangs_up(guarded: Guarded) -> None:
    guarded.allow()
    before = ends(guarded)
    with pytest.raises(InvalidRequest, match="Not authorized"):
        guarded.ask(produced(guarded, ("mine", 0, batch()), acks=0), 12)
    assert ends(guarded) == before


@pytest.mark.parametrize("name", [None, "transfer"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_transactional_batch_refuses_the_whole_request_wherever_it_stands(
    guarded: Guarded, place: int, name: str | None
) -> None:
    guarded.allow(write("mine"), write("secret"))
    before = ends(guarded)
    partitions = [("mine", 0, batch()), ("secret", 0, batch()), ("mine", 1, batch())]
    topic, index, _ = partitions[place]
    partitions[place] = (topic, index, batch(TRANSACTIONAL))
    request = produced(guarded, *partitions, transactional_id=name)
    assert codes(guarded.ask(request, 12)) == [TransactionalIdAuthorizationFailed.code] * 3
    assert ends(guarded) == before


def test_a_transactional_id_that_no_batch_uses_is_not_asked_about(guarded: Guarded) -> None:
    guarded.allow(write("mine"))
    request = produced(guarded, ("mine", 0, batch()), transactional_id="transfer")
    assert codes(guarded.ask(request, 12)) == [0]


# --- Fetch -----------------------------------------------------------------------------------


def fetched(guarded: Guarded, *topics: str, replica_id: int = -1, **fields: Any) -> FetchRequest:
    request = {"max_bytes": 1 << 20, "session_epoch": -1} | fields
    return FetchRequest(
        replica_id=replica_id,
        replica_state=ReplicaState(replica_id=replica_id),
        topics=[
            FetchTopic(
                topic=name,
                topic_id=topic_id(guarded, name),
                partitions=[
                    FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
                    for index in (0, 1)
                ],
            )
            for name in topics
        ],
        **request,
    )


def answers(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code == 0
    return [answer for topic in response.responses for answer in topic.partitions]


@pytest.fixture
def records(guarded: Guarded) -> None:
    """There is something to read everywhere."""
    everywhere = [(name, index, batch()) for name in ("mine", "secret") for index in (0, 1)]
    assert codes(guarded.as_root(produced(guarded, *everywhere))) == [0] * 4


@pytest.mark.parametrize(("version", "nowhere"), [(4, REFUSED), (12, REFUSED), (18, UnknownTopicId.code)])
@pytest.mark.usefixtures("records")
def test_the_allowed_topics_of_a_request_are_read(guarded: Guarded, version: int, nowhere: int) -> None:
    guarded.allow(read("mine"), write("secret"))
    response = guarded.ask(fetched(guarded, "secret", "mine", "nowhere"), version)
    found = [(answer.error_code, bool(answer.records)) for answer in answers(response)]
    assert found == [(REFUSED, False)] * 2 + [(0, True)] * 2 + [(nowhere, False)] * 2
    assert all(answer.high_watermark == -1 for answer in answers(response) if answer.error_code)


@pytest.mark.parametrize("version", [4, 14, 18])
@pytest.mark.usefixtures("records")
def test_a_reader_cannot_pass_for_a_follower(guarded: Guarded, version: int) -> None:
    guarded.allow(read("mine"), read("nowhere"))
    request = fetched(guarded, "mine", "nowhere", replica_id=guarded.node.node_id)
    response = guarded.ask(request, version)
    assert [(answer.error_code, bool(answer.records)) for answer in answers(response)] == [
        (REFUSED, False)
    ] * 4


@pytest.mark.usefixtures("records")
def test_a_follower_needs_no_right_to_any_topic(guarded: Guarded) -> None:
    guarded.allow(FOLLOWER)
    response = guarded.ask(fetched(guarded, "mine", "secret", replica_id=guarded.node.node_id + 1))
    # They have one replica. Whoever may follow hears that, and who may not hears nothing of them.
    assert [answer.error_code for answer in answers(response)] == [NotLeaderOrFollower.code] * 4
    response = guarded.ask(fetched(guarded, "mine"))
    assert [answer.error_code for answer in answers(response)] == [REFUSED] * 2, "as a consumer it may not"


@pytest.mark.parametrize("version", [12, 18])
@pytest.mark.usefixtures("records")
def test_a_rule_that_goes_in_the_middle_of_a_session_stops_its_next_fetch(
    guarded: Guarded, version: int
) -> None:
    guarded.allow(read("mine"), read("secret"))
    opened = guarded.ask(fetched(guarded, "mine", "secret", session_epoch=0), version)
    assert opened.session_id
    assert all(answer.records for answer in answers(opened))

    def next_fetch(epoch: int, principal: str = "User:alice") -> dict[bool, int]:
        request = FetchRequest(max_bytes=1 << 20, session_id=opened.session_id, session_epoch=epoch)
        response = guarded.ask(request, version, principal=principal)
        assert all(bool(answer.records) != bool(answer.error_code) for answer in answers(response))
        found = [answer.error_code for answer in answers(response)]
        return {refused: found.count(REFUSED if refused else 0) for refused in (True, False)}

    guarded.allow(read("mine"))
    assert next_fetch(1) == {True: 2, False: 2}
    guarded.allow(read("mine"), read("secret"))
    assert next_fetch(2) == {True: 0, False: 4}
    # Whoever guesses the number of a session has the rights that he has himself.
    assert next_fetch(3, "User:mallory") == {True: 4, False: 0}


def test_a_fetch_that_waits_does_not_get_what_came_after_its_right_had_gone(guarded: Guarded) -> None:
    async def story() -> FetchResponse:
        request = fetched(guarded, "secret", max_wait_ms=LONG_MS, min_bytes=1)
        for partition in request.topics[0].partitions:
            log = guarded.node.replicas.get("secret", partition.partition).log
            partition.fetch_offset = log.end_offset
        waiting = asyncio.ensure_future(guarded.local().ask(request))
        await asyncio.sleep(0)
        assert not waiting.done()
        guarded.allow(read("mine"))
        await guarded.local("User:root").ask(produced(guarded, ("secret", 0, batch())))
        response: FetchResponse = await waiting
        return response

    guarded.allow(read("secret"))
    found = answers(guarded.run(story()))
    assert [(answer.error_code, bool(answer.records)) for answer in found] == [(REFUSED, False)] * 2


def test_a_fetch_that_is_refused_in_part_does_not_wait(guarded: Guarded) -> None:
    guarded.allow(read("mine"))
    request = fetched(guarded, "secret", max_wait_ms=LONG_MS, min_bytes=1)
    assert [answer.error_code for answer in answers(guarded.ask(request))] == [REFUSED] * 2
