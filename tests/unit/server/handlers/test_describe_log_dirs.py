from __future__ import annotations

import errno
from typing import Any

import pytest

from ottla.protocol.errors import KafkaStorageError
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from ottla.protocol.stored import metadata as stored
from ottla.server.handlers.describe_log_dirs import describe_log_dirs


def only(
    node: Any, topics: list[DescribableLogDirTopic] | None = None, version: int = 5
) -> DescribeLogDirsResult:
    response = node.call(describe_log_dirs, DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == 0
    (result,) = response.results
    return result  # type: ignore[no-any-return]


def shape(result: DescribeLogDirsResult) -> dict[str, list[int]]:
    return {topic.name: [p.partition_index for p in topic.partitions] for topic in result.topics}


def test_null_describes_every_log(node: Any) -> None:
    node.create("a", 2)
    node.create("b")
    node.produce("a", 1, 2, 3)
    result = only(node)
    assert result.log_dir == node.log_directories[0].path
    assert shape(result) == {"a": [0, 1], "b": [0]}
    first, second = result.topics[0].partitions
    assert first.partition_size == node.partition("a").log.size > 60
    assert (second.partition_size, second.offset_lag, second.is_future_key) == (0, 0, False)


def test_only_what_is_asked_for_is_described(node: Any) -> None:
    node.create("a", 3)
    node.create("b")
    asked = [
        DescribableLogDirTopic(topic="a", partitions=[2, 9]),
        DescribableLogDirTopic(topic="nope", partitions=[0]),
    ]
    assert shape(only(node, asked)) == {"a": [2]}
    assert shape(only(node, [])) == {}


def test_the_space_on_the_volume_is_told_from_version_4(node: Any) -> None:
    result = only(node)
    assert 0 < result.usable_bytes <= result.total_bytes
    assert only(node, version=3).total_bytes == -1


def test_a_follower_shows_how_far_it_is_behind(node: Any) -> None:
    node.create("a")
    node.partition("a").log.high_watermark = 5  # the leader has told of offsets that are not here yet
    assert only(node).topics[0].partitions[0].offset_lag == 5


def test_a_cordoned_directory_is_marked(node: Any) -> None:
    assert not only(node).is_cordoned
    node.apply(
        stored.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=5, cordoned_log_dirs=[node.log_directories[0].id]
        )
    )
    assert only(node).is_cordoned
    assert not only(node, version=4).is_cordoned


def test_a_directory_that_has_failed_says_so(node: Any) -> None:
    node.create("a")
    node.log_directories[0].fail(OSError(errno.EIO, "the disk is gone"))
    result = only(node)
    assert (result.error_code, result.log_dir) == (KafkaStorageError.code, node.log_directories[0].path)
    assert (result.topics, result.total_bytes) == ([], -1)


@pytest.mark.parametrize("version", range(6))
def test_every_version_can_be_answered(node: Any, version: int) -> None:
    node.create("a")
    assert shape(only(node, version=version)) == {"a": [0]}
