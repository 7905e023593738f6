"""Share groups by raw frames: who gets which records, how often, and what becomes of them (KIP-932)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.interop.batches import batch
from tests.interop.nodes import Node
from tests.interop.requests import produce
from tests.interop.sharing import (
    ACCEPT,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Member,
    configure_group,
    find_coordinator,
)
from tests.interop.topics import Names, create_topic, eventually
from tests.interop.wire import Wire

UNKNOWN_TOPIC, INVALID_REQUEST, UNKNOWN_MEMBER, NON_EMPTY_GROUP, NO_GROUP = 3, 42, 25, 68, 69
FENCED_LEADER, FENCED_MEMBER, UNKNOWN_TOPIC_ID = 74, 110, 100
INVALID_STATE, NO_SESSION, WRONG_SESSION_EPOCH, FENCED_STATE = 121, 122, 123, 124


class Hub:
    """A broker, a topic and a group of their own for one test."""

    def __init__(self, bootstrap: str, topic: str, group: str, stack: ExitStack) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = group
        self._stack = stack
        self.wire = stack.enter_context(Wire(bootstrap))

    def member(self, *topics: str) -> Member:
        return self._stack.enter_context(Member(self.bootstrap, self.group, *(topics or (self.topic,))))

    def produce(self, *counts: int, topic: str | None = None, partition: int = 0) -> None:
        """A batch for each count, of so many records."""
        for count in counts:
            records = batch(*[b"value"] * count)
            answer = produce(self.wire, topic or self.topic, records, partition=partition)
            assert answer.error_code == 0

    def ask(self, api: str, version: int, **values: Any) -> Any:
        return self.wire.ask(api, version, **values)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def hub(quick: str, unique: Names, stack: ExitStack) -> Hub:
    topic, group = unique("shared"), unique("group")
    create_topic(quick, topic)
    find_coordinator(quick, group)
    configure_group(quick, group, share_auto_offset_reset="earliest")
    return Hub(quick, topic, group, stack)


# --- delivery ------------------------------------------------------------------------------


def test_a_record_goes_to_one_member_of_several(hub: Hub) -> None:
    hub.produce(10, 10)
    first, second = hub.member().join(), hub.member().join()
    mine = first.fetch_some(max_records=10)
    theirs = second.fetch_some(max_records=10)
    assert mine.offsets == list(range(10))
    assert theirs.offsets == list(range(10, 20))
    assert mine.counts == theirs.counts == {1}
    assert theirs.batches == [(10, 20)]


def test_accepted_and_rejected_records_do_not_come_back_and_released_ones_do(hub: Hub) -> None:
    hub.produce(4)
    member = hub.member().join()
    assert member.fetch_some().offsets == [0, 1, 2, 3]
    assert member.acknowledge((0, 3, [ACCEPT, RELEASE, REJECT, GAP])) == 0
    again = member.fetch_some()
    assert again.acquired == [(1, 1, 2)]
    assert again.batches == [(0, 4)]
    assert member.acknowledge((1, 1, [ACCEPT])) == 0
    assert member.fetch().acquired == []


def test_acknowledgements_may_come_with_the_next_fetch(hub: Hub) -> None:
    hub.produce(2, 2)
    member = hub.member().join()
    assert member.fetch_some(max_records=1).offsets == [0, 1]
    answer = member.fetch((0, 1, [ACCEPT]), max_records=1)
    assert answer.acknowledge_error_code == 0
    assert answer.offsets == [2, 3]


def test_a_lock_that_runs_out_lets_another_member_have_the_record(hub: Hub) -> None:
    configure_group(hub.bootstrap, hub.group, share_record_lock_duration_ms=1_000)
    hub.produce(3)
    slow, quick = hub.member().join(), hub.member().join()
    assert slow.fetch_some().offsets == [0, 1, 2]
    assert quick.fetch().acquired == []
    again = quick.fetch_some()
    assert again.acquired == [(0, 2, 2)]
    assert slow.acknowledge((0, 2, [ACCEPT])) == INVALID_STATE
    assert quick.acknowledge((0, 2, [ACCEPT])) == 0


def test_a_lock_that_is_renewed_lasts(hub: Hub) -> None:
    configure_group(hub.bootstrap, hub.group, share_record_lock_duration_ms=1_000)
    hub.produce(1)
    member, other = hub.member().join(), hub.member().join()
    assert member.fetch_some().offsets == [0]
    for _ in range(3):
        assert member.acknowledge((0, 0, [RENEW]), is_renew_ack=True) == 0
        assert other.fetch().acquired == []
    assert member.acknowledge((0, 0, [ACCEPT])) == 0


def test_a_renewal_has_to_be_announced_and_allowed(hub: Hub) -> None:
    hub.produce(1)
    member = hub.member().join()
    assert member.fetch_some().offsets == [0]
    assert member.acknowledge((0, 0, [RENEW])) == INVALID_REQUEST
    assert member.acknowledge((0, 0, [RENEW]), version=1) == INVALID_REQUEST
    response = member.ask_fetch({(hub.topic, 0): [(0, 0, [RENEW])]}, is_renew_ack=True)
    assert response.error_code == INVALID_REQUEST
    configure_group(hub.bootstrap, hub.group, share_renew_acknowledge_enable="false")
    eventually(lambda: member.acknowledge((0, 0, [RENEW]), is_renew_ack=True) == INVALID_STATE)


def test_a_record_is_given_up_when_it_was_delivered_too_often(hub: Hub) -> None:
    configure_group(hub.bootstrap, hub.group, share_delivery_count_limit=3)
    hub.produce(1, 1)
    member = hub.member().join()
    for count in (1, 2, 3):
        assert member.fetch_some(max_records=1).acquired == [(0, 0, count)]
        assert member.acknowledge((0, 0, [RELEASE])) == 0
    assert member.fetch_some(max_records=1).acquired == [(1, 1, 1)]


def test_records_on_their_last_attempt_come_alone(hub: Hub) -> None:
    configure_group(hub.bootstrap, hub.group, share_delivery_count_limit=3)
    hub.produce(4)
    member = hub.member().join()
    for count in (1, 2):
        assert member.fetch_some().acquired == [(0, 3, count)]
        assert member.acknowledge((0, 3, [RELEASE])) == 0
    assert [member.fetch_some().acquired for _ in range(4)] == [[(n, n, 3)] for n in range(4)]


def test_whole_batches_are_given_unless_the_limit_is_strict(hub: Hub) -> None:
    hub.produce(4, 4, 4)
    member = hub.member().join()
    assert member.fetch_some(max_records=5).offsets == list(range(8))
    assert member.fetch_some(max_records=3, share_acquire_mode=RECORD_LIMIT).offsets == [8, 9, 10]
    assert member.fetch_some(max_records=3, share_acquire_mode=RECORD_LIMIT).offsets == [11]


def test_what_is_given_is_told_in_batches_of_the_size_that_was_asked_for(hub: Hub) -> None:
    hub.produce(2, 2, 2, 2)
    member = hub.member().join()
    assert member.fetch_some(max_records=8, batch_size=4).acquired == [(0, 3, 1), (4, 7, 1)]


def test_only_so_many_records_are_in_flight(hub: Hub) -> None:
    configure_group(hub.bootstrap, hub.group, share_partition_max_record_locks=100)
    hub.produce(60, 60, 60)
    member = hub.member().join()
    assert member.fetch_some(max_records=60).offsets == list(range(60))
    assert member.fetch_some(max_records=60).offsets == list(range(60, 120))
    assert member.fetch(max_records=60).acquired == []
    assert member.acknowledge((0, 59, [ACCEPT])) == 0
    assert member.fetch_some(max_records=60).offsets == list(range(120, 180))


def test_a_waiting_fetch_is_woken_by_new_records(hub: Hub) -> None:
    member = hub.member().join()
    member.fetch(max_wait=0)
    request = member.wire.send(
        "share_fetch",
        2,
        group_id=hub.group,
        member_id=member.member_id,
        share_session_epoch=1,
        max_wait=20_000,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
    )
    hub.produce(2)
    response = member.wire.receive("share_fetch", 2, request)
    ((data,),) = [topic.partitions for topic in response.responses]
    assert [(each.first_offset, each.last_offset) for each in data.acquired_records] == [(0, 1)]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_aborted_records_are_delivered_only_to_those_who_do_not_mind(hub: Hub, isolation: str) -> None:
    configure_group(hub.bootstrap, hub.group, share_isolation_level=isolation)
    producer = Producer({"bootstrap.servers": hub.bootstrap, "transactional.id": hub.group, "linger.ms": 0})
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(hub.topic, b"value")
        producer.flush(20)
        end(20)
    member = hub.member().join()
    seen: list[int] = []

    def all_seen() -> bool:
        given = member.fetch()
        seen.extend(given.offsets)
        return bool(seen) and max(seen) >= 4

    eventually(all_seen)
    # The markers that end transactions are delivered too: consumers take them for gaps.
    assert set(seen) - {1, 3, 5} == ({0, 4} if isolation == "read_committed" else {0, 2, 4})


@pytest.mark.parametrize(
    ("reset", "expected"), [("earliest", [0, 1, 2]), ("latest", [2]), ("by_duration:PT1H", [1, 2])]
)
def test_a_group_begins_where_its_settings_say(hub: Hub, reset: str, expected: list[int]) -> None:
    configure_group(hub.bootstrap, hub.group, share_auto_offset_reset=reset)
    assert produce(hub.wire, hub.topic, batch(b"old", timestamp=1)).error_code == 0
    hub.produce(1)
    member = hub.member().join()
    seen = member.fetch().offsets  # by now it has begun
    hub.produce(1)

    def all_seen() -> bool:
        seen.extend(member.fetch().offsets)
        return 2 in seen

    eventually(all_seen)
    assert seen == expected


# --- acknowledgement -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acknowledgement", "error"),
    [
        ((1, 0, [ACCEPT]), INVALID_REQUEST),
        ((0, 1, []), INVALID_REQUEST),
        ((0, 2, [ACCEPT, ACCEPT]), INVALID_REQUEST),
        ((0, 1, [9]), INVALID_REQUEST),
        ((0, 9, [ACCEPT]), INVALID_REQUEST),
        ((7, 9, [ACCEPT]), INVALID_REQUEST),
    ],
)
def test_an_acknowledgement_that_makes_no_sense_is_refused(
    hub: Hub, acknowledgement: Any, error: int
) -> None:
    hub.produce(4)
    member = hub.member().join()
    assert member.fetch_some().offsets == [0, 1, 2, 3]
    assert member.acknowledge(acknowledgement) == error
    assert member.acknowledge((0, 3, [ACCEPT])) == 0


def test_acknowledging_what_one_does_not_have_changes_nothing(hub: Hub) -> None:
    hub.produce(2, 2)
    first, second = hub.member().join(), hub.member().join()
    assert first.fetch_some(max_records=2).offsets == [0, 1]
    assert second.fetch_some(max_records=2).offsets == [2, 3]
    assert first.acknowledge((0, 1, [ACCEPT]), (2, 3, [ACCEPT])) == INVALID_STATE
    assert first.acknowledge((0, 1, [ACCEPT])) == 0
    # Somebody has records in flight: what is done with stays known, and cannot be acknowledged twice.
    assert second.acknowledge((2, 2, [ACCEPT])) == 0
    assert second.acknowledge((2, 2, [ACCEPT])) in (0, INVALID_STATE)
    assert second.acknowledge((3, 3, [ACCEPT])) == 0


def test_acknowledging_a_topic_or_a_partition_that_is_not_there(hub: Hub) -> None:
    hub.produce(1)
    member = hub.member().join()
    assert member.fetch_some().offsets == [0]
    assert member.acknowledge((0, 0, [ACCEPT]), partition=7) == UNKNOWN_TOPIC
    member.ids["unheard-of"] = uuid.uuid4()
    assert member.acknowledge((0, 0, [ACCEPT]), topic="unheard-of") == UNKNOWN_TOPIC_ID


# --- sessions ------------------------------------------------------------------------------


def test_sessions_are_opened_continued_in_order_and_closed(hub: Hub) -> None:
    hub.produce(1)
    member = hub.member().join()
    nothing: dict[tuple[str, int], list[Any]] = {}
    assert member.ask_fetch(nothing, session_epoch=1).error_code == NO_SESSION
    assert member.ask_fetch(nothing, session_epoch=-1).error_code == NO_SESSION
    assert member.acknowledge((0, 0, [ACCEPT]), session_epoch=1) == NO_SESSION
    opening = {(hub.topic, 0): [(0, 0, [ACCEPT])]}
    assert member.ask_fetch(opening, session_epoch=0).error_code == INVALID_REQUEST
    assert member.fetch_some().offsets == [0]
    assert member.acknowledge((0, 0, [ACCEPT]), session_epoch=0) == WRONG_SESSION_EPOCH
    assert member.ask_fetch(nothing, session_epoch=9_999).error_code == WRONG_SESSION_EPOCH
    assert member.acknowledge((0, 0, [ACCEPT]), session_epoch=-1) == 0
    assert member.ask_fetch(nothing, session_epoch=member.session_epoch).error_code == NO_SESSION


def test_closing_a_session_sets_its_records_free(hub: Hub) -> None:
    hub.produce(3)
    first, second = hub.member().join(), hub.member().join()
    assert first.fetch_some().offsets == [0, 1, 2]
    assert second.fetch().acquired == []
    first.close_session()
    assert second.fetch_some().acquired == [(0, 2, 2)]


def test_losing_a_connection_sets_its_records_free(hub: Hub) -> None:
    hub.produce(3)
    first, second = hub.member().join(), hub.member().join()
    assert first.fetch_some().offsets == [0, 1, 2]
    assert second.fetch().acquired == []
    first.wire.socket.close()
    assert second.fetch_some().acquired == [(0, 2, 2)]


def test_partitions_can_be_added_to_a_session_and_forgotten(hub: Hub, unique: Names) -> None:
    other = unique("other")
    create_topic(hub.bootstrap, other)
    hub.produce(1)
    hub.produce(1, topic=other)
    member = hub.member(hub.topic, other).join(2)
    assert member.fetch_some(topic=hub.topic).offsets == [0]
    assert member.fetch_some(topic=other).offsets == [0]
    hub.produce(1)
    hub.produce(1, topic=other)
    forgotten = [{"topic_id": member.ids[hub.topic], "partitions": [0]}]
    response = member.ask_fetch({}, max_wait=2_000, forgotten_topics_data=forgotten)
    assert [topic.topic_id for topic in response.responses] == [member.ids[other]]


@pytest.mark.parametrize("member_id", ["", "x" * 37, None])
def test_a_member_id_that_is_none_is_refused(hub: Hub, member_id: str | None) -> None:
    assert hub.ask("share_fetch", 2, group_id=hub.group, member_id=member_id).error_code == INVALID_REQUEST
    answer = hub.ask("share_acknowledge", 2, group_id=hub.group, member_id=member_id)
    assert answer.error_code == INVALID_REQUEST


# --- membership ----------------------------------------------------------------------------


def test_members_that_are_too_many_share_a_partition_and_others_spread(hub: Hub, unique: Names) -> None:
    wide = unique("wide")
    create_topic(hub.bootstrap, wide, 4)
    members = [hub.member(wide).join(None) for _ in range(2)]

    def is_spread() -> bool:
        for member in members:
            assert member.beat().error_code == 0
        return sorted(index for member in members for index in member.assigned.get(wide, [])) == [0, 1, 2, 3]

    eventually(is_spread)
    assert {len(member.assigned[wide]) for member in members} == {2}


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"member_epoch": 0, "subscribed_topic_names": []}, INVALID_REQUEST),
        ({"member_epoch": 0, "subscribed_topic_names": None}, INVALID_REQUEST),
        ({"member_epoch": -2}, INVALID_REQUEST),
        ({"member_epoch": 0, "subscribed_topic_names": ["t"], "rack_id": ""}, INVALID_REQUEST),
        ({"member_epoch": 5}, NO_GROUP),
        ({"member_epoch": -1}, NO_GROUP),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(hub: Hub, values: dict[str, Any], error: int) -> None:
    answer = hub.ask("share_group_heartbeat", 1, group_id=hub.group, member_id="me", **values)
    assert answer.error_code == error
    assert answer.error_message


def test_a_member_is_known_by_its_epoch(hub: Hub) -> None:
    member = hub.member().join()
    epoch = member.epoch
    assert member.beat(member_epoch=epoch + 1).error_code == FENCED_MEMBER
    assert member.beat(member_epoch=epoch - 2 or 99).error_code == FENCED_MEMBER
    assert member.beat(member_epoch=epoch).assignment is None
    assert member.beat(subscribed_topic_names=[hub.topic]).assignment is not None
    stranger = hub.member()
    assert stranger.beat(member_epoch=epoch, subscribed_topic_names=None).error_code == UNKNOWN_MEMBER
    answer = member.leave()
    assert (answer.error_code, answer.member_epoch) == (0, -1)
    assert member.beat(member_epoch=epoch, subscribed_topic_names=None).error_code == UNKNOWN_MEMBER


def test_a_member_that_is_not_heard_from_is_taken_out(hub: Hub) -> None:
    quiet, loud = hub.member().join(), hub.member().join()

    def is_alone() -> bool:
        assert loud.beat().error_code == 0
        (group,) = hub.ask("share_group_describe", 1, group_ids=[hub.group]).groups
        return [member.member_id for member in group.members] == [loud.member_id]

    eventually(is_alone)
    assert quiet.beat().error_code == UNKNOWN_MEMBER


def test_a_group_is_listed_and_described(hub: Hub) -> None:
    member = hub.member().join()
    (group,) = hub.ask("share_group_describe", 1, group_ids=[hub.group]).groups
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "simple")
    (described,) = group.members
    assert described.member_id == member.member_id
    assert described.member_epoch == member.epoch
    assert described.client_id == "ottla-tests"
    assert described.client_host.startswith("/")
    assert list(described.subscribed_topic_names) == [hub.topic]
    ((topic_name, partitions),) = [
        (t.topic_name, list(t.partitions)) for t in described.assignment.topic_partitions
    ]
    assert (topic_name, partitions) == (hub.topic, [0])
    listed = hub.ask("list_groups", 5, states_filter=["Stable"], types_filter=["share"]).groups
    assert (hub.group, "share", "share") in [(g.group_id, g.group_type, g.protocol_type) for g in listed]
    (unknown,) = hub.ask("share_group_describe", 1, group_ids=["unheard-of"]).groups
    assert unknown.error_code == NO_GROUP


# --- positions -----------------------------------------------------------------------------


def _offsets(hub: Hub, *partitions: int) -> dict[int, tuple[int, int]]:
    """Start offset and lag by partition."""
    topics = [{"topic_name": hub.topic, "partitions": list(partitions)}] if partitions else None
    (group,) = hub.ask(
        "describe_share_group_offsets", 1, groups=[{"group_id": hub.group, "topics": topics}]
    ).groups
    assert group.error_code == 0
    return {
        each.partition_index: (each.start_offset, each.lag)
        for topic in group.topics
        for each in topic.partitions
        if each.error_code == 0
    }


def test_positions_are_described(hub: Hub) -> None:
    hub.produce(4, 4)
    assert _offsets(hub, 0) == {0: (-1, -1)}
    member = hub.member().join()
    assert member.fetch_some(max_records=4).offsets == [0, 1, 2, 3]
    assert member.acknowledge((0, 2, [ACCEPT])) == 0
    assert _offsets(hub) == {0: (0, 5)}
    assert member.acknowledge((3, 3, [ACCEPT])) == 0
    assert _offsets(hub, 0) == {0: (3, 4)}


def test_positions_are_altered_and_deleted_while_nobody_is_there(hub: Hub) -> None:
    hub.produce(4)
    member = hub.member().join()
    assert member.fetch_some().offsets == [0, 1, 2, 3]
    assert member.acknowledge((0, 3, [ACCEPT])) == 0

    def alter(partition: int, offset: int) -> Any:
        topics = [
            {
                "topic_name": hub.topic,
                "partitions": [{"partition_index": partition, "start_offset": offset}],
            }
        ]
        return hub.ask("alter_share_group_offsets", 0, group_id=hub.group, topics=topics)

    def delete() -> Any:
        topics = [{"topic_name": hub.topic}]
        return hub.ask("delete_share_group_offsets", 0, group_id=hub.group, topics=topics)

    assert alter(0, 2).error_code == NON_EMPTY_GROUP
    assert delete().error_code == NON_EMPTY_GROUP
    member.end()
    ((answer,),) = [topic.partitions for topic in alter(7, 2).responses]
    assert answer.error_code == UNKNOWN_TOPIC
    ((answer,),) = [topic.partitions for topic in alter(0, 2).responses]
    assert answer.error_code == 0
    eventually(lambda: _offsets(hub) == {0: (2, 2)})
    again = hub.member().join()
    assert again.fetch_some().acquired == [(2, 3, 1)]
    again.end()
    (topic,) = delete().responses
    assert (topic.topic_name, topic.error_code) == (hub.topic, 0)
    assert _offsets(hub) == {}
    (topic,) = delete().responses
    assert topic.error_code == UNKNOWN_TOPIC


def test_a_group_is_deleted_with_its_positions(hub: Hub) -> None:
    hub.produce(2)
    member = hub.member().join()
    assert member.fetch_some().offsets == [0, 1]
    assert member.acknowledge((0, 1, [ACCEPT])) == 0

    def delete() -> int:
        (answer,) = hub.ask("delete_groups", 2, groups_names=[hub.group]).results
        return int(answer.error_code)

    assert delete() == NON_EMPTY_GROUP
    member.end()
    assert delete() == 0
    assert delete() == NO_GROUP
    again = hub.member().join()
    assert again.fetch_some().acquired == [(0, 1, 1)]


def test_a_share_group_has_no_committed_offsets(hub: Hub) -> None:
    hub.member().join()
    partition = {"partition_index": 0, "committed_offset": 1}
    topics = [{"name": hub.topic, "partitions": [partition]}]
    response = hub.ask(
        "offset_commit", 9, group_id=hub.group, generation_id_or_member_epoch=-1, topics=topics
    )
    ((answer,),) = [topic.partitions for topic in response.topics]
    assert answer.error_code == NO_GROUP


# --- the coordinator of the state ----------------------------------------------------------


class State:
    """The state of a share partition, spoken to as the leader of the partition does."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._topic_id = hub.member().ids[hub.topic]
        hub.ask(
            "find_coordinator", 6, key_type=2, coordinator_keys=[f"{hub.group}:{_text(self._topic_id)}:0"]
        )

    def ask(self, api: str, version: int, partition: int = 0, **values: Any) -> Any:
        response = self._hub.ask(
            api,
            version,
            group_id=self._hub.group,
            topics=[{"topic_id": self._topic_id, "partitions": [{"partition": partition} | values]}],
        )
        ((answer,),) = [result.partitions for result in response.results]
        return answer

    def initialize(self, state_epoch: int, start_offset: int) -> int:
        answer = self.ask(
            "initialize_share_group_state", 0, state_epoch=state_epoch, start_offset=start_offset
        )
        return int(answer.error_code)

    def write(self, *batches: tuple[int, int, int, int], **values: Any) -> int:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        answer = self.ask(
            "write_share_group_state",
            1,
            state_batches=[dict(zip(names, each, strict=True)) for each in batches],
            **values,
        )
        return int(answer.error_code)

    def read(self, leader_epoch: int) -> Any:
        return self.ask("read_share_group_state", 0, leader_epoch=leader_epoch)


def _text(topic_id: uuid.UUID) -> str:
    import base64

    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def test_state_is_initialized_written_and_read(hub: Hub) -> None:
    state = State(hub)
    eventually(
        lambda: state.ask("initialize_share_group_state", 0, state_epoch=5, start_offset=-1).error_code == 0
    )
    assert (
        state.write((0, 9, 2, 1), state_epoch=5, leader_epoch=0, start_offset=0, delivery_complete_count=10)
        == 0
    )
    assert (
        state.write((5, 14, 0, 2), state_epoch=5, leader_epoch=0, start_offset=3, delivery_complete_count=2)
        == 0
    )
    answer = state.read(0)
    assert (answer.error_code, answer.state_epoch, answer.start_offset) == (0, 5, 3)
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in answer.state_batches
    ]
    assert batches == [(3, 4, 2, 1), (5, 14, 0, 2)]
    summary = state.ask("read_share_group_state_summary", 1, leader_epoch=0)
    assert (summary.start_offset, summary.state_epoch, summary.delivery_complete_count) == (3, 5, 2)
    assert state.ask("delete_share_group_state", 0).error_code == 0
    assert state.ask("delete_share_group_state", 0).error_code == 0
    summary = state.ask("read_share_group_state_summary", 1, leader_epoch=0)
    assert (summary.error_code, summary.start_offset, summary.state_epoch) == (0, -1, 0)


def test_writers_of_older_epochs_are_fenced(hub: Hub) -> None:
    state = State(hub)
    common = {"start_offset": 0, "delivery_complete_count": 0}
    eventually(
        lambda: state.ask("initialize_share_group_state", 0, state_epoch=5, start_offset=0).error_code == 0
    )
    assert (
        state.ask("initialize_share_group_state", 0, state_epoch=4, start_offset=0).error_code == FENCED_STATE
    )
    assert state.write(state_epoch=4, leader_epoch=0, **common) == FENCED_STATE
    assert state.read(3).error_code == 0
    assert state.read(2).error_code == FENCED_LEADER
    assert state.write(state_epoch=5, leader_epoch=2, **common) == FENCED_LEADER
    assert state.write(state_epoch=-1, leader_epoch=-1, **common) == 0
    assert state.write(state_epoch=5, leader_epoch=3, **common) == 0


def test_state_that_nobody_initialized_cannot_be_read_or_written(hub: Hub) -> None:
    state = State(hub)
    eventually(lambda: state.read(0).error_code == INVALID_REQUEST)
    assert state.write(state_epoch=0, leader_epoch=0, start_offset=0) == INVALID_REQUEST
    assert state.ask("initialize_share_group_state", 0, partition=7).error_code == UNKNOWN_TOPIC
    assert state.ask("initialize_share_group_state", 0, partition=-1).error_code == INVALID_REQUEST


# --- failures ------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["kill", "stop"])
def test_what_was_acknowledged_is_done_with_after_a_restart(
    quick_node: Node, unique: Names, stack: ExitStack, stop: str
) -> None:
    topic, group = unique("shared"), unique("group")
    create_topic(quick_node.bootstrap, topic)
    find_coordinator(quick_node.bootstrap, group)
    configure_group(quick_node.bootstrap, group, share_auto_offset_reset="earliest")
    hub = Hub(quick_node.bootstrap, topic, group, stack)
    hub.produce(10)
    member = hub.member().join()
    assert member.fetch_some().offsets == list(range(10))
    assert member.acknowledge((0, 2, [ACCEPT]), (5, 5, [REJECT]), (6, 6, [RELEASE])) == 0
    restart: Callable[[], object] = getattr(quick_node, stop)
    restart()
    quick_node.start()
    with Member(quick_node.bootstrap, group, topic) as back:
        seen: dict[int, int] = {}

        def all_seen() -> bool:
            answer = back.beat()
            if answer.error_code:
                back.epoch = 0
                return False
            if not back.assigned:
                return False
            for first, last, count in back.fetch().acquired:
                seen.update(dict.fromkeys(range(first, last + 1), count))
            return len(seen) == 6

        eventually(all_seen)
    assert set(seen) == {3, 4, 6, 7, 8, 9}
    assert seen[6] == 2
