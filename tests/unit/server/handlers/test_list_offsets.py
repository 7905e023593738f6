from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.errors import (
    FencedLeaderEpoch,
    InvalidRequest,
    KafkaStorageError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.server.handlers.list_offsets import list_offsets

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
READ_COMMITTED = 1
TRANSACTIONAL = 0x10


def asked(
    timestamp: int, *, topic: str = "a", index: int = 0, epoch: int = -1, **fields: Any
) -> ListOffsetsRequest:
    fields.setdefault("replica_id", -1)
    partition = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])], **fields)


def one(node: Any, request: ListOffsetsRequest, version: int = 11) -> ListOffsetsPartitionResponse:
    response = node.call(list_offsets, request, version)
    ((answer,),) = [topic.partitions for topic in response.topics]
    return answer  # type: ignore[no-any-return]


def found(node: Any, timestamp: int, version: int = 11, **fields: Any) -> tuple[int, int, int]:
    answer = one(node, asked(timestamp, **fields), version)
    assert answer.error_code == 0
    return answer.offset, answer.timestamp, answer.leader_epoch


@pytest.fixture
def five(node: Any) -> Any:
    """Offsets 0 to 4 with the times 10, 20, 50, 40, 30."""
    node.create("a", leader_epoch=3)
    node.produce("a", 10, 20, 50)
    node.produce("a", 40, 30)
    return node


def test_latest_is_the_high_watermark_and_earliest_the_log_start(five: Any) -> None:
    assert found(five, LATEST) == (5, -1, 3)
    assert found(five, EARLIEST) == (0, -1, 3)
    assert found(five, EARLIEST_LOCAL) == (0, -1, 3)
    five.partition("a").log.delete_records(4)
    assert found(five, EARLIEST) == (4, -1, 3)


def test_a_time_finds_the_first_record_that_is_not_older(five: Any) -> None:
    assert found(five, 0) == (0, 10, 3)
    assert found(five, 15) == (1, 20, 3)
    assert found(five, 20) == (1, 20, 3)
    assert found(five, 21) == (2, 50, 3)
    assert found(five, 51) == (-1, -1, -1)


def test_the_greatest_time_is_found_with_its_record(five: Any) -> None:
    assert found(five, MAX_TIMESTAMP) == (2, 50, 3)


def test_an_empty_log_has_a_beginning_and_an_end_but_no_times(node: Any) -> None:
    node.create("a")
    assert found(node, LATEST) == (0, -1, 0)
    assert found(node, EARLIEST) == (0, -1, 0)
    assert found(node, MAX_TIMESTAMP) == (-1, -1, -1)
    assert found(node, 0) == (-1, -1, -1)


def test_nothing_is_stored_elsewhere(five: Any) -> None:
    assert found(five, LATEST_TIERED) == (-1, -1, -1)
    assert found(five, PENDING_UPLOAD) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "first"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)],
)
def test_special_times_came_with_versions(five: Any, timestamp: int, first: int) -> None:
    assert one(five, asked(timestamp), first).error_code == 0
    answer = one(five, asked(timestamp), first - 1)
    assert (answer.error_code, answer.offset, answer.timestamp) == (UnsupportedVersion.code, -1, -1)


def test_other_negative_times_mean_nothing_yet(five: Any) -> None:
    assert one(five, asked(-7)).error_code == UnsupportedVersion.code


def test_every_version_can_be_answered(five: Any) -> None:
    for version in range(1, 12):
        answer = one(five, asked(LATEST), version)
        assert (answer.offset, answer.leader_epoch) == (5, 3 if version >= 4 else -1)


# --- who may see what ---------------------------------------------------------------------------


def test_an_open_transaction_hides_what_follows_from_readers_of_committed_records(five: Any) -> None:
    five.produce("a", 60, 70, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, base_sequence=0)
    assert found(five, LATEST)[0] == 7
    assert found(five, LATEST, isolation_level=READ_COMMITTED)[0] == 5
    assert found(five, 60) == (5, 60, 3)
    assert found(five, 60, isolation_level=READ_COMMITTED) == (-1, -1, -1)
    assert found(five, MAX_TIMESTAMP, isolation_level=READ_COMMITTED) == (-1, -1, -1)


@pytest.fixture
def lagging(node: Any) -> Any:
    """A leader of two whose follower has fetched nothing: its log ends at 3, its high watermark is 0."""
    node.register(2)
    node.create("a", replicas=(1, 2), leader_epoch=3)
    node.produce("a", 10, 20, 30)
    assert (node.partition("a").log.high_watermark, node.partition("a").log.end_offset) == (0, 3)
    return node


def test_consumers_see_up_to_the_high_watermark_and_replicas_up_to_the_end(lagging: Any) -> None:
    assert found(lagging, LATEST)[0] == 0
    assert found(lagging, 20) == (-1, -1, -1)
    assert found(lagging, LATEST, replica_id=2)[0] == 3
    assert found(lagging, LATEST, replica_id=-2)[0] == 3
    assert found(lagging, 20, replica_id=2) == (1, 20, 3)


def test_a_new_leader_does_not_know_the_end_before_its_high_watermark_is_its_own(lagging: Any) -> None:
    partition = lagging.partition("a")
    partition.become_leader(4, 1)
    for timestamp in (LATEST, 20, MAX_TIMESTAMP):
        answer = one(lagging, asked(timestamp))
        assert (answer.error_code, answer.offset) == (OffsetNotAvailable.code, -1)
    assert one(lagging, asked(LATEST), 4).error_code == LeaderNotAvailable.code
    assert found(lagging, EARLIEST)[0] == 0
    assert found(lagging, LATEST, replica_id=2)[0] == 3
    partition.log.advance_high_watermark(3)
    assert found(lagging, LATEST) == (3, -1, 4)


# --- refusals -----------------------------------------------------------------------------------


def test_the_leader_epoch_is_checked(five: Any) -> None:
    assert one(five, asked(LATEST, epoch=3)).error_code == 0
    assert one(five, asked(LATEST, epoch=2)).error_code == FencedLeaderEpoch.code
    assert one(five, asked(LATEST, epoch=4)).error_code == UnknownLeaderEpoch.code


def test_unknown_partitions_and_topics_are_told_apart_from_those_of_other_brokers(five: Any) -> None:
    five.register(2)
    five.create("theirs", replicas=(2,))
    assert one(five, asked(LATEST, index=9)).error_code == UnknownTopicOrPartition.code
    assert one(five, asked(LATEST, topic="nope")).error_code == UnknownTopicOrPartition.code
    assert one(five, asked(LATEST, topic="theirs")).error_code == NotLeaderOrFollower.code


def test_only_a_debugging_consumer_may_ask_a_follower(five: Any) -> None:
    five.partition("a").stop_leading(2, 4, 9)
    assert one(five, asked(LATEST)).error_code == NotLeaderOrFollower.code
    assert one(five, asked(LATEST, replica_id=-2)).error_code == 0
    assert one(five, asked(LATEST, replica_id=-2, epoch=3)).error_code == FencedLeaderEpoch.code


def test_a_partition_that_is_named_twice_is_refused_once(node: Any) -> None:
    node.create("a", 2)
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="a", partitions=partitions)])
    (topic,) = node.call(list_offsets, request).topics
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(0, InvalidRequest.code), (1, 0)]


def test_a_failed_disk_is_a_storage_error(five: Any) -> None:
    five.partition("a").fail()
    assert one(five, asked(LATEST)).error_code == KafkaStorageError.code


def test_an_error_of_the_disk_takes_its_directory_offline(five: Any) -> None:
    for file in Path(five.partition("a").log.directory).glob("*.log"):
        file.unlink()
    assert one(five, old(LATEST, 1), 0).error_code == KafkaStorageError.code
    assert isinstance(five.log_directories[0].error, FileNotFoundError)


# --- version 0 ----------------------------------------------------------------------------------


def old(timestamp: int, at_most: int, replica_id: int = -1) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=at_most)
    return ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsTopic(name="a", partitions=[partition])]
    )


def test_version_0_lists_where_segments_begin_newest_first(node: Any) -> None:
    node.create("a", configs={"segment.bytes": "1048576"})
    partition = node.partition("a")
    for _ in range(3):
        node.produce("a", 10, 20)
        partition.log.roll(0)
    node.produce("a", 10)
    assert one(node, old(LATEST, 9), 0).old_style_offsets == [7, 6, 4, 2, 0]
    assert one(node, old(LATEST, 2), 0).old_style_offsets == [7, 6]
    assert one(node, old(EARLIEST, 9), 0).old_style_offsets == [0]
    assert one(node, old(0, 9), 0).old_style_offsets == []


def test_version_0_shows_consumers_nothing_past_the_high_watermark(lagging: Any) -> None:
    assert one(lagging, old(LATEST, 9), 0).old_style_offsets == [0, 0]
    assert one(lagging, old(LATEST, 9, replica_id=2), 0).old_style_offsets == [3, 0]


def test_version_0_knows_only_latest_and_earliest(five: Any) -> None:
    assert one(five, old(MAX_TIMESTAMP, 1), 0).error_code == UnsupportedVersion.code
    assert one(five, old(LATEST, 0), 0).old_style_offsets == []
