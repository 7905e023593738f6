from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.server.handlers.offset_for_leader_epoch import offset_for_leader_epoch


def end_of(
    node: Any, epoch: int, *, topic: str = "a", index: int = 0, current: int = -1, version: int = 4
) -> tuple[int, int, int]:
    """The error code, the epoch that was found and its end offset."""
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    response = node.call(offset_for_leader_epoch, request, version)
    ((answer,),) = [topic.partitions for topic in response.topics]
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.fixture
def led(node: Any) -> Any:
    """Epoch 2 wrote offsets 0 and 1, epoch 5 wrote offset 2."""
    node.create("a", leader_epoch=2)
    node.produce("a", 1, 2)
    node.partition("a").become_leader(5, 1)
    node.produce("a", 3)
    return node


def test_an_epoch_ends_where_the_next_begins_and_the_current_one_at_the_end(led: Any) -> None:
    assert end_of(led, 2) == (0, 2, 2)
    assert end_of(led, 5) == (0, 5, 3)


def test_an_epoch_that_wrote_nothing_ends_with_the_one_before(led: Any) -> None:
    assert end_of(led, 4) == (0, 2, 2)


def test_an_epoch_before_all_known_has_lost_its_records(led: Any) -> None:
    assert end_of(led, 1) == (0, 1, 0)


def test_an_epoch_after_all_known_is_not_an_error(led: Any) -> None:
    assert end_of(led, 6) == (0, -1, -1)
    assert end_of(led, -1) == (0, -1, -1)


def test_version_0_knows_only_offsets(led: Any) -> None:
    assert end_of(led, 2, version=0) == (0, -1, 2)


def test_the_current_epoch_is_checked(led: Any) -> None:
    assert end_of(led, 2, current=5)[0] == 0
    assert end_of(led, 2, current=4) == (FencedLeaderEpoch.code, -1, -1)
    assert end_of(led, 2, current=6) == (UnknownLeaderEpoch.code, -1, -1)


def test_only_the_leader_answers(led: Any) -> None:
    led.register(2)
    led.create("theirs", replicas=(2,))
    assert end_of(led, 0, topic="theirs")[0] == NotLeaderOrFollower.code
    assert end_of(led, 0, topic="nope")[0] == UnknownTopicOrPartition.code
    assert end_of(led, 0, index=3)[0] == UnknownTopicOrPartition.code
    led.partition("a").stop_leading(2, 6, 2)
    assert end_of(led, 0)[0] == NotLeaderOrFollower.code


def test_a_failed_disk_is_a_storage_error(led: Any) -> None:
    led.partition("a").fail()
    assert end_of(led, 2)[0] == KafkaStorageError.code
