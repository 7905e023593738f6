"""Every API, without the rights that it takes, with them, and with all but one of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import pytest

from ottla.core.acl import WILDCARD, Operation, ResourceType
from ottla.core.ids import Uuid
from ottla.protocol import apis
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownServerError,
)
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    create_topics,
    list_groups,
    offset_commit,
    share_group_heartbeat,
)
from ottla.server.api import SERVED, Served
from tests.unit.server.authorization import every_api
from tests.unit.server.authorization.conftest import Guarded
from tests.unit.server.authorization.every_api import ROWS, Rights, Row, Things

FAILED: Final[dict[ResourceType, type[KafkaError]]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
}
CODES: Final = {error.code for error in FAILED.values()}
IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
OPERATIONS: Final = [each for each in Operation if each > Operation.ALL]
LEAVING: Final = -1
# The only ones for everybody: they come before anybody can be known, or tell what everybody has to know.
FOR_EVERYBODY: Final = {"api_versions", "sasl_handshake", "sasl_authenticate"}


def test_every_api_that_is_served_is_in_the_table() -> None:
    assert {row.name for row in SERVED.values()} == set(ROWS)
    for name, rows in ROWS.items():
        if name not in FOR_EVERYBODY:
            assert any(row.needs for row in rows), f"{name} is for everybody"


@pytest.fixture(scope="module")
def things(guarded: Guarded) -> Things:
    """A broker with something in it of every kind."""
    names = [every_api.TOPIC, every_api.DOOMED_TOPIC]
    new = [create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    guarded.as_root(create_topics.CreateTopicsRequest(topics=new))
    topics = guarded.node.image.topics
    topic_id = topics[every_api.TOPIC].id
    things = Things(topic_id, -1, guarded.node.node_id)
    for _ in range(3):
        refuse_none(guarded.as_root(every_api.produced(things, every_api.batch())))
    for group in (every_api.GROUP, every_api.DOOMED_GROUP):
        refuse_none(guarded.as_root(every_api.coordinator(0, group)))
        commit = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
        refuse_none(
            guarded.as_root(
                offset_commit.OffsetCommitRequest(
                    group_id=group,
                    topics=[
                        offset_commit.OffsetCommitRequestTopic(topic_id=topics[name].id, partitions=[commit])
                        for name in names
                    ],
                )
            )
        )
    refuse_none(
        guarded.as_root(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=every_api.CONSUMER_GROUP,
                member_id="member",
                rebalance_timeout_ms=10_000,
                subscribed_topic_names=[every_api.TOPIC],
                topic_partitions=[],
            )
        )
    )
    for group, epochs in ((every_api.SHARE_GROUP, [0]), (every_api.RESTING_SHARE_GROUP, [0, LEAVING])):
        for epoch in epochs:
            beat = share_group_heartbeat.ShareGroupHeartbeatRequest(
                group_id=group,
                member_id=str(Uuid(bytes(15) + b"m")),
                member_epoch=epoch,
                subscribed_topic_names=[every_api.TOPIC],
            )
            refuse_none(guarded.as_root(beat))
    refuse_none(guarded.as_root(every_api.share_fetched(things)))  # the state of its partition is there
    refuse_none(guarded.as_root(every_api.coordinator(1, every_api.TRANSACTIONAL_ID)))
    producer = guarded.as_root(
        every_api.init_producer_id.InitProducerIdRequest(
            transactional_id=every_api.TRANSACTIONAL_ID, transaction_timeout_ms=60_000
        )
    )
    refuse_none(producer)
    return things._replace(producer_id=producer.producer_id)


def codes(answer: Any) -> Iterator[int]:
    """Every error code in an answer."""
    if isinstance(answer, list):
        for each in answer:
            yield from codes(each)
    else:
        for name in getattr(answer, "__slots__", ()):
            value = getattr(answer, name)
            # A topic that was created says in another place that its configs are hidden.
            if name.endswith("error_code") and name != "topic_config_error_code":
                yield value
            else:
                yield from codes(value)


def refuse_none(answer: Any) -> None:
    assert not any(codes(answer)), answer


def state(guarded: Guarded) -> Any:
    """All that a request can change, but for what is only in memory and not in a list of groups."""
    image = guarded.node.image
    return (
        {name: sorted(topic.partitions) for name, topic in image.topics.items()},
        {key: dict(configs) for key, configs in image.configs.items()},
        (sorted(image.acls), sorted(image.scram), dict(image.features), sorted(image.brokers)),
        image.next_producer_id,
        {each.partition: (each.log.start_offset, each.log.end_offset) for each in guarded.node.replicas},
        {
            (group.group_id, group.group_state)
            for group in guarded.as_root(list_groups.ListGroupsRequest()).groups
        },
    )


def ask(guarded: Guarded, things: Things, row: Row) -> Any:
    if row.before is not None:
        refuse_none(guarded.as_root(row.before(things)))
    return guarded.ask(row.request(things), row.version)


def is_refused(guarded: Guarded, things: Things, row: Row, error: type[KafkaError]) -> bool:
    """Whether the answer has the error and no other, or hides what it would have shown."""
    try:
        answer = ask(guarded, things, row)
    except KafkaError as raised:
        return type(raised) is error
    if row.shows is not None:
        return not row.shows(answer)
    found = {code for code in codes(answer) if code}
    assert found <= {error.code} or not found & CODES, answer
    return error.code in found


ALL_ROWS: Final = [(name, row) for name, rows in ROWS.items() for row in rows]
IDS: Final = [f"{name}-{number}" for name, rows in ROWS.items() for number in range(len(rows))]


def error_for(row: Row, missing: Rights) -> type[KafkaError]:
    return row.error or FAILED[missing[0][1]]


@pytest.mark.parametrize(("name", "row"), ALL_ROWS, ids=IDS)
def test_without_any_right_nothing_is_done_and_nothing_shown(
    guarded: Guarded, things: Things, name: str, row: Row
) -> None:
    guarded.allow()
    before = state(guarded)
    if row.needs:
        assert is_refused(guarded, things, row, error_for(row, row.needs[0]))
    else:
        assert not CODES & set(codes(ask(guarded, things, row)))
    assert state(guarded) == before


@pytest.mark.parametrize(("name", "row"), ALL_ROWS, ids=IDS)
def test_every_right_but_one_is_not_enough(guarded: Guarded, things: Things, name: str, row: Row) -> None:
    before = state(guarded)
    for missing in row.needs:
        left_out = {
            (operation, kind)
            for needed, kind, _ in missing
            for operation in (needed, *IMPLIED_BY.get(needed, ()))
        }
        everything_else = [
            (operation, kind, WILDCARD)
            for kind in FAILED
            for operation in OPERATIONS
            if (operation, kind) not in left_out
        ]
        guarded.allow(*everything_else)
        assert is_refused(guarded, things, row, error_for(row, missing)), f"allowed without {missing}"
    assert state(guarded) == before


@pytest.mark.parametrize(("name", "row"), ALL_ROWS, ids=IDS)
def test_the_rights_in_the_table_are_enough(guarded: Guarded, things: Things, name: str, row: Row) -> None:
    for rights in product(*row.needs):
        guarded.allow(*rights)
        answer = ask(guarded, things, row)
        assert not CODES & set(codes(answer)), f"refused with {rights}: {answer}"
        if row.shows is not None:
            assert row.shows(answer), answer


@pytest.mark.parametrize("served", SERVED.values(), ids=lambda served: served.name)
def test_a_request_that_names_nothing_is_answered_to_whoever_sends_it(
    guarded: Guarded, things: Things, served: Served
) -> None:
    guarded.allow()
    before = state(guarded)
    request = apis.api(served.key).request
    for version in {served.first, served.last}:
        try:
            answer = guarded.ask(request(), version)
        except KafkaError as error:
            assert not isinstance(error, UnknownServerError)
        else:
            assert UnknownServerError.code not in codes(answer), answer
    assert state(guarded) == before
