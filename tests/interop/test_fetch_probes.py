"""Fetch and ListOffsets at their edges, and fetch sessions."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from tests.interop import batches
from tests.interop.batches import batch, headers, one_header
from tests.interop.requests import fetch, fetch_response, list_offset, produce, topic_id
from tests.interop.topics import NewTopic
from tests.interop.wire import Wire

OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, UNSUPPORTED_VERSION = 1, 3, 35
SESSION_NOT_FOUND, INVALID_SESSION_EPOCH, FENCED_EPOCH, UNKNOWN_EPOCH, UNKNOWN_TOPIC_ID = 70, 71, 74, 75, 100

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def fill(wire: Wire, topic: str, count: int = 3, *, size: int = 100, timestamp: int | None = None) -> None:
    """`count` batches of two records each."""
    for number in range(count):
        when = None if timestamp is None else timestamp + number
        answer = produce(wire, topic, batch(bytes(size), bytes(size), timestamp=when))
        assert answer.error_code == 0


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_returns_the_batches(wire: Wire, topic: str, version: int) -> None:
    fill(wire, topic)
    found = fetch(wire, topic, 0, version=version)
    assert found.error_code == 0
    assert (found.high_watermark, found.last_stable_offset) == (6, 6)
    assert getattr(found, "log_start_offset", 0) == 0
    assert found.aborted_transactions is None
    assert [header.base_offset for header in headers(found.records)] == [0, 2, 4]
    assert all(header.crc_is_right for header in headers(found.records))


class TestBounds:
    def test_at_the_end_there_is_nothing_and_no_error(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        found = fetch(wire, topic, 6)
        assert (found.error_code, found.records, found.high_watermark) == (0, b"", 6)

    @pytest.mark.parametrize("offset", [7, 1000, -1, -5, 2**62])
    def test_outside_the_log_is_out_of_range(self, wire: Wire, topic: str, offset: int) -> None:
        fill(wire, topic)
        found = fetch(wire, topic, offset)
        assert found.error_code == OFFSET_OUT_OF_RANGE
        assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (-1, -1, -1)
        assert (found.records, found.aborted_transactions) == (b"", None)

    def test_the_middle_of_a_batch_returns_the_whole_batch(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        found = fetch(wire, topic, 3)
        assert [header.base_offset for header in headers(found.records)] == [2, 4]

    @pytest.mark.parametrize(
        "limits",
        [{"max_bytes": 0}, {"max_bytes": 1}, {"partition_max_bytes": 0}, {"partition_max_bytes": 1}],
    )
    def test_one_batch_comes_back_however_small_the_limit(
        self, wire: Wire, topic: str, limits: dict[str, int]
    ) -> None:
        fill(wire, topic)
        assert one_header(fetch(wire, topic, 0, **limits).records).base_offset == 0

    def test_the_limit_of_a_partition_bounds_what_comes_back(self, wire: Wire, topic: str) -> None:
        fill(wire, topic, 10, size=500)
        size = one_header(fetch(wire, topic, 0, partition_max_bytes=1).records).length + 12
        found = fetch(wire, topic, 0, partition_max_bytes=3 * size)
        assert [header.base_offset for header in headers(found.records)] == [0, 2, 4]
        assert len(found.records) <= 3 * size

    def test_an_unknown_topic_or_partition_is_named(self, wire: Wire, topic: str, unique: Any) -> None:
        assert fetch(wire, unique("absent"), 0).error_code == UNKNOWN_TOPIC
        assert fetch(wire, topic, 0, partition=7).error_code == UNKNOWN_TOPIC

    def test_an_unknown_topic_id_is_an_error_of_the_partition(self, wire: Wire) -> None:
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        topics = [{"topic_id": uuid.uuid4(), "partitions": [partition]}]
        response = wire.ask("fetch", 13, max_wait=0, topics=topics)
        assert response.error_code == 0
        ((answer,),) = [found.partitions for found in response.responses]
        assert answer.error_code == UNKNOWN_TOPIC_ID

    @pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (5, UNKNOWN_EPOCH)])
    def test_the_leader_epoch_of_the_client_is_checked(
        self, wire: Wire, topic: str, epoch: int, error: int
    ) -> None:
        fill(wire, topic)
        assert fetch(wire, topic, 0, leader_epoch=epoch).error_code == error

    def test_read_committed_has_a_list_of_aborted_transactions(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        found = fetch(wire, topic, 0, isolation_level=1)
        assert found.aborted_transactions == ()
        assert found.last_stable_offset == 6

    def test_several_partitions_share_the_limit_of_the_request(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=3)
        for partition in range(3):
            produce(wire, topic, batch(bytes(5000)), partition=partition)
        partitions = [
            {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 100_000}
            for partition in range(3)
        ]
        topics = [{"topic": topic, "partitions": partitions}]
        for max_bytes, expected in ((100_000, 3), (6000, 1)):
            response = wire.ask("fetch", 12, max_bytes=max_bytes, topics=topics)
            (found,) = [found.partitions for found in response.responses]
            whole = [answer.partition_index for answer in found if list(headers(answer.records))]
            assert len(whole) == expected


class TestLongPoll:
    def test_a_fetch_waits_as_long_as_it_may(self, wire: Wire, topic: str) -> None:
        began = time.monotonic()
        found = fetch(wire, topic, 0, max_wait=300)
        assert found.records == b""
        assert time.monotonic() - began >= 0.29

    def test_a_fetch_that_waits_is_woken_by_an_append(self, wire: Wire, topic: str, bootstrap: str) -> None:
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        topics = [{"topic": topic, "partitions": [partition]}]
        sent = wire.send("fetch", 12, max_wait=60_000, min_bytes=1, max_bytes=1000, topics=topics)
        with Wire(bootstrap) as other:
            assert produce(other, topic, batch(b"wake up")).error_code == 0
        response = wire.receive("fetch", 12, sent)
        ((found,),) = [found.partitions for found in response.responses]
        assert one_header(found.records).base_offset == 0

    def test_a_fetch_waits_for_as_many_bytes_as_it_wants(
        self, wire: Wire, topic: str, bootstrap: str
    ) -> None:
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}
        topics = [{"topic": topic, "partitions": [partition]}]
        sent = wire.send("fetch", 12, max_wait=60_000, min_bytes=2000, max_bytes=100_000, topics=topics)
        with Wire(bootstrap) as other:
            for _ in range(3):
                assert produce(other, topic, batch(bytes(700))).error_code == 0
        response = wire.receive("fetch", 12, sent)
        ((found,),) = [found.partitions for found in response.responses]
        assert [header.base_offset for header in headers(found.records)] == [0, 1, 2]

    def test_an_error_is_answered_at_once(self, wire: Wire, topic: str) -> None:
        found = fetch(wire, topic, 99, max_wait=60_000)
        assert found.error_code == OFFSET_OUT_OF_RANGE

    def test_a_waiting_fetch_does_not_hold_up_other_connections(
        self, wire: Wire, topic: str, bootstrap: str
    ) -> None:
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        topics = [{"topic": topic, "partitions": [partition]}]
        wire.send("fetch", 12, max_wait=60_000, min_bytes=1, topics=topics)
        with Wire(bootstrap) as other:
            assert other.ask("metadata", 12, topics=[]).brokers


class TestSessions:
    def open(self, wire: Wire, topic: str, offset: int = 0, **values: Any) -> Any:
        return fetch_response(wire, topic, offset, session_id=0, session_epoch=0, **values)

    def next(self, wire: Wire, session_id: int, epoch: int, **values: Any) -> Any:
        return wire.ask(
            "fetch", 12, max_wait=0, min_bytes=1, session_id=session_id, session_epoch=epoch, **values
        )

    def test_a_full_fetch_opens_a_session(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        response = self.open(wire, topic)
        assert response.error_code == 0
        assert response.session_id != 0
        assert len(response.responses) == 1

    def test_an_incremental_fetch_names_only_what_changed(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        session = self.open(wire, topic, offset=6).session_id
        assert self.next(wire, session, 1).responses == ()
        fill(wire, topic, 1)
        response = self.next(wire, session, 2)
        ((found,),) = [found.partitions for found in response.responses]
        assert found.high_watermark == 8
        assert one_header(found.records).base_offset == 6

    def test_the_position_moves_when_the_client_names_the_partition(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        session = self.open(wire, topic).session_id
        partition = {"partition": 0, "fetch_offset": 4, "partition_max_bytes": 10_000}
        response = self.next(wire, session, 1, topics=[{"topic": topic, "partitions": [partition]}])
        ((found,),) = [found.partitions for found in response.responses]
        assert one_header(found.records).base_offset == 4

    def test_a_forgotten_partition_is_fetched_no_more(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=2)
        partitions = [
            {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1000} for number in (0, 1)
        ]
        opened = wire.ask(
            "fetch", 12, session_epoch=0, max_bytes=10**6, topics=[{"topic": topic, "partitions": partitions}]
        )
        forget = [{"topic": topic, "partitions": [0]}]
        self.next(wire, opened.session_id, 1, forgotten_topics_data=forget)
        for partition in (0, 1):
            produce(wire, topic, batch(b"new"), partition=partition)
        response = self.next(wire, opened.session_id, 2)
        (found,) = [found.partitions for found in response.responses]
        assert [answer.partition_index for answer in found] == [1]

    def test_an_unknown_session_is_not_found(self, wire: Wire) -> None:
        response = self.next(wire, 123_456_789, 1)
        assert response.error_code == SESSION_NOT_FOUND
        assert response.responses == ()

    def test_the_epoch_of_a_session_must_follow(self, wire: Wire, topic: str) -> None:
        session = self.open(wire, topic).session_id
        assert self.next(wire, session, 5).error_code == INVALID_SESSION_EPOCH
        assert self.next(wire, session, 1).error_code == 0
        assert self.next(wire, session, 1).error_code == INVALID_SESSION_EPOCH

    def test_a_final_fetch_closes_the_session(self, wire: Wire, topic: str) -> None:
        session = self.open(wire, topic).session_id
        assert self.next(wire, session, -1).session_id == 0
        assert self.next(wire, session, 1).error_code == SESSION_NOT_FOUND

    @pytest.mark.parametrize("version", [7, 11, 12, 13, 15, 16, 17])
    def test_every_version_keeps_sessions(self, wire: Wire, topic: str, version: int) -> None:
        fill(wire, topic)
        session = self.open(wire, topic, offset=6, version=version).session_id
        assert session != 0
        for epoch in (1, 2):
            response = wire.ask("fetch", version, session_id=session, session_epoch=epoch)
            assert (response.error_code, response.responses) == (0, ())


class TestListOffsets:
    @pytest.mark.parametrize("version", range(1, 12))
    def test_the_ends_of_the_log(self, wire: Wire, topic: str, version: int) -> None:
        fill(wire, topic)
        for special, offset in ((EARLIEST, 0), (LATEST, 6)):
            found = list_offset(wire, topic, special, version=version)
            assert (found.error_code, found.offset) == (0, offset)
            assert found.timestamp is None or found.timestamp == -1

    def test_a_timestamp_finds_the_first_record_not_before_it(self, wire: Wire, topic: str) -> None:
        base = batches.now_ms() - 100_000
        for number in range(5):
            produce(wire, topic, batch(b"a", b"b", timestamp=base + 1000 * number))
        for wanted, offset in ((0, 0), (base, 0), (base + 1, 2), (base + 3500, 8), (base + 4000, 8)):
            found = list_offset(wire, topic, wanted)
            assert (found.error_code, found.offset, found.leader_epoch) == (0, offset, 0)
        assert list_offset(wire, topic, base + 4001).offset == -1

    def test_timestamps_out_of_order_are_searched_in_offset_order(self, wire: Wire, topic: str) -> None:
        base = batches.now_ms() - 100_000
        for offset in (5000, 1000, 9000, 3000):
            produce(wire, topic, batch(b"a", timestamp=base + offset))
        assert list_offset(wire, topic, base + 4000).offset == 0
        assert list_offset(wire, topic, base + 6000).offset == 2
        assert list_offset(wire, topic, MAX_TIMESTAMP).offset == 2

    def test_inside_a_batch_the_record_is_found(self, wire: Wire, topic: str) -> None:
        base = batches.now_ms() - 100_000
        records = b"".join(batches.record(n, b"k", b"v", timestamp_delta=100 * n) for n in range(4))
        sent = batch(b"1", b"2", b"3", b"4", records=records, timestamp=base, max_timestamp=base + 300)
        produce(wire, topic, sent)
        assert list_offset(wire, topic, base + 101).offset == 2
        assert list_offset(wire, topic, MAX_TIMESTAMP).offset == 3

    def test_of_equal_largest_timestamps_the_first_counts(self, wire: Wire, topic: str) -> None:
        fill(wire, topic, 3, timestamp=None)
        now = batches.now_ms() + 10_000
        for _ in range(2):
            produce(wire, topic, batch(b"a", b"b", timestamp=now))
        found = list_offset(wire, topic, MAX_TIMESTAMP)
        assert found.offset == 6

    def test_an_empty_log_has_no_largest_timestamp(self, wire: Wire, topic: str) -> None:
        found = list_offset(wire, topic, MAX_TIMESTAMP)
        assert (found.error_code, found.offset) == (0, -1)

    @pytest.mark.parametrize(
        ("special", "too_old", "offset"),
        [(MAX_TIMESTAMP, 6, 4), (EARLIEST_LOCAL, 7, 0), (LATEST_TIERED, 8, -1), (PENDING_UPLOAD, 10, -1)],
    )
    def test_a_special_timestamp_needs_its_version(
        self, wire: Wire, topic: str, special: int, too_old: int, offset: int
    ) -> None:
        base = batches.now_ms() - 100_000
        fill(wire, topic, timestamp=base)
        assert list_offset(wire, topic, special, version=too_old).error_code == UNSUPPORTED_VERSION
        found = list_offset(wire, topic, special, version=too_old + 1)
        assert (found.error_code, found.offset) == (0, offset)

    def test_read_committed_sees_the_same_end_without_transactions(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        assert list_offset(wire, topic, LATEST, isolation_level=1).offset == 6

    def test_an_unknown_topic_or_partition_is_named(self, wire: Wire, topic: str, unique: Any) -> None:
        assert list_offset(wire, unique("absent"), LATEST).error_code == UNKNOWN_TOPIC
        assert list_offset(wire, topic, LATEST, partition=9).error_code == UNKNOWN_TOPIC

    def test_a_partition_asked_twice_is_an_invalid_request(self, wire: Wire, topic: str) -> None:
        twice = [{"partition_index": 0, "timestamp": LATEST}] * 2
        response = wire.ask("list_offsets", 9, replica_id=-1, topics=[{"name": topic, "partitions": twice}])
        (found,) = [found.partitions for found in response.topics]
        assert {int(answer.error_code) for answer in found} == {42}


class TestLeaderEpochs:
    @pytest.mark.parametrize("version", [2, 3, 4])
    @pytest.mark.parametrize(("epoch", "expected"), [(0, (0, 6)), (5, (-1, -1))])
    def test_the_end_of_an_epoch(
        self, wire: Wire, topic: str, version: int, epoch: int, expected: tuple[int, int]
    ) -> None:
        fill(wire, topic)
        partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
        topics = [{"topic": topic, "partitions": [partition]}]
        response = wire.ask("offset_for_leader_epoch", version, topics=topics)
        ((found,),) = [found.partitions for found in response.topics]
        assert found.error_code == 0
        assert (found.leader_epoch, found.end_offset) == expected


class TestDeleteRecords:
    def delete(self, wire: Wire, topic: str, offset: int) -> tuple[int, int]:
        partition = {"partition_index": 0, "offset": offset}
        topics = [{"name": topic, "partitions": [partition]}]
        response = wire.ask("delete_records", 2, timeout=10_000, topics=topics)
        ((found,),) = [found.partitions for found in response.topics]
        return int(found.error_code), int(found.low_watermark)

    def test_records_before_an_offset_are_gone(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        assert self.delete(wire, topic, 3) == (0, 3)
        assert list_offset(wire, topic, EARLIEST).offset == 3
        assert fetch(wire, topic, 2).error_code == OFFSET_OUT_OF_RANGE
        assert fetch(wire, topic, 3).log_start_offset == 3
        assert produce(wire, topic, batch()).log_start_offset == 3

    def test_minus_one_deletes_everything(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        assert self.delete(wire, topic, -1) == (0, 6)
        assert list_offset(wire, topic, LATEST).offset == 6
        assert produce(wire, topic, batch()).base_offset == 6

    def test_an_offset_already_deleted_changes_nothing(self, wire: Wire, topic: str) -> None:
        fill(wire, topic)
        assert self.delete(wire, topic, 4) == (0, 4)
        assert self.delete(wire, topic, 2) == (0, 4)

    @pytest.mark.parametrize("offset", [7, -2])
    def test_outside_the_log_is_out_of_range(self, wire: Wire, topic: str, offset: int) -> None:
        fill(wire, topic)
        assert self.delete(wire, topic, offset) == (OFFSET_OUT_OF_RANGE, -1)

    def test_a_compacted_topic_keeps_its_records(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(cleanup_policy="compact")
        fill(wire, topic)
        assert self.delete(wire, topic, 2) == (44, -1)


def test_topic_ids_stay_the_same_while_the_topic_lives(wire: Wire, topic: str) -> None:
    assert topic_id(wire, topic) == topic_id(wire, topic)
