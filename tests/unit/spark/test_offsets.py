"""Offsets as JSON, the limits of a batch, and how ranges become tasks."""

from __future__ import annotations

import json
import random

import pytest

from ottla.core.types import TopicPartition
from ottla.spark.offsets import BadOffsets, available, from_json, limited, parse_offsets, to_json
from ottla.spark.ranges import OffsetRange, between, bundle_ranges, split_ranges


def partitions(*offsets: int, topic: str = "t") -> dict[TopicPartition, int]:
    return {TopicPartition(topic, number): offset for number, offset in enumerate(offsets)}


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", number, 100, 100 + size) for number, size in enumerate(sizes)]


# --- JSON ----------------------------------------------------------------------------------


def test_offsets_are_written_as_the_kafka_connector_writes_them() -> None:
    offsets = {**partitions(23, 5, topic="b"), **partitions(7, topic="a")}
    assert json.dumps(to_json(offsets), separators=(",", ":")) == '{"a":{"0":7},"b":{"0":23,"1":5}}'


def test_the_same_offsets_are_the_same_text_whatever_their_order() -> None:
    offsets = partitions(*range(12))
    shuffled = list(offsets.items())
    random.Random(5).shuffle(shuffled)
    assert json.dumps(to_json(dict(shuffled))) == json.dumps(to_json(offsets))
    assert list(to_json(offsets)["t"]) == [str(number) for number in range(12)]


def test_what_is_written_reads_back() -> None:
    offsets = {**partitions(3, -1, topic="a.b"), **partitions(1 << 60, topic="c")}
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


@pytest.mark.parametrize(
    "text", ["", "1", "[]", '{"t": 1}', '{"t": {"-1": 1}}', '{"t": {"0": "1"}}', '{"t": {"0": true}}']
)
def test_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadOffsets, match="expected for example"):
        parse_offsets(text)


# --- limits --------------------------------------------------------------------------------


def test_a_limit_is_shared_in_proportion_to_what_partitions_have() -> None:
    assert limited(30, partitions(0, 0, 50), partitions(100, 200, 50)) == partitions(10, 20, 50)


def test_no_partition_that_has_something_gets_nothing() -> None:
    assert limited(10, partitions(0, 0), partitions(100_000, 3)) == partitions(9, 1)


def test_a_limit_above_what_there_is_takes_all() -> None:
    assert limited(1000, partitions(0, 5), partitions(10, 10)) == partitions(10, 10)


def test_nothing_new_is_nothing_whatever_the_limit() -> None:
    assert limited(5, partitions(10, 10), partitions(10, 10)) == partitions(10, 10)


def test_a_partition_that_shrank_keeps_its_end_for_others_to_report() -> None:
    assert limited(5, partitions(10, 0), partitions(4, 10)) == partitions(4, 5)


def test_new_partitions_count_from_their_beginning() -> None:
    assert available(partitions(5), partitions(8, 4)) == 7


# --- from checkpoint to ranges -------------------------------------------------------------


def test_a_batch_is_what_lies_between_two_offsets() -> None:
    found, losses = between(partitions(5, 0), partitions(8, 0), {})
    assert found == [OffsetRange("t", 0, 5, 8), OffsetRange("t", 1, 0, 0)]
    assert losses == []


def test_a_new_partition_is_read_from_its_beginning() -> None:
    new = TopicPartition("t", 1)
    found, losses = between(partitions(5), partitions(5, 9), {new: 0})
    assert OffsetRange("t", 1, 0, 9) in found
    assert losses == []


def test_a_new_partition_that_does_not_start_with_0_has_lost_something() -> None:
    new = TopicPartition("t", 1)
    found, losses = between(partitions(5), partitions(5, 9), {new: 4})
    assert OffsetRange("t", 1, 4, 9) in found
    assert losses == ["partition t-1 is new and starts at 4 instead of 0"]


def test_partitions_that_are_gone_are_a_loss_and_not_read() -> None:
    found, losses = between(partitions(5, 6), partitions(7), {})
    assert found == [OffsetRange("t", 0, 5, 7)]
    assert losses == ["partitions t-1 have been deleted"]


def test_a_new_partition_that_is_gone_again_is_a_loss() -> None:
    found, losses = between({}, partitions(7), {})
    assert found == []
    assert losses == ["partitions t-0 have been deleted before they were read"]


def test_an_end_before_the_start_is_a_loss() -> None:
    _, losses = between(partitions(9), partitions(4), {})
    assert "read up to offset 9 and now ends at 4" in losses[0]


# --- from ranges to tasks ------------------------------------------------------------------


def test_a_task_for_each_partition_that_has_something() -> None:
    assert split_ranges(ranges(10, 0, -3, 5), min_partitions=None, max_records=None) == [
        OffsetRange("t", 0, 100, 110),
        OffsetRange("t", 3, 100, 105),
    ]


def test_no_task_has_more_than_the_most() -> None:
    assert split_ranges(ranges(10), min_partitions=None, max_records=4) == [
        OffsetRange("t", 0, 100, 103),
        OffsetRange("t", 0, 103, 106),
        OffsetRange("t", 0, 106, 110),
    ]


def test_large_ranges_are_divided_until_there_are_enough_tasks() -> None:
    found = split_ranges(ranges(1, 40, 20), min_partitions=7, max_records=None)
    assert [(each.partition, each.size) for each in found] == [(0, 1), *[(1, 10)] * 4, *[(2, 10)] * 2]


def test_enough_ranges_are_left_whole() -> None:
    assert split_ranges(ranges(10, 10), min_partitions=2, max_records=None) == ranges(10, 10)


def test_both_limits_are_kept() -> None:
    found = split_ranges(ranges(10), min_partitions=5, max_records=4)
    assert len(found) >= 5
    assert max(each.size for each in found) <= 4


def test_nothing_to_read_is_no_task() -> None:
    assert split_ranges(ranges(0, 0), min_partitions=5, max_records=2) == []


def test_pieces_have_every_offset_once() -> None:
    generator = random.Random(3)
    for _ in range(200):
        whole = ranges(*(generator.randrange(0, 50) for _ in range(generator.randrange(1, 6))))
        pieces = split_ranges(
            whole,
            min_partitions=generator.choice([None, 1, 3, 10, 40]),
            max_records=generator.choice([None, 1, 7, 100]),
        )
        covered = sorted(
            (each.partition, offset) for each in pieces for offset in range(each.start, each.end)
        )
        wanted = sorted((each.partition, offset) for each in whole for offset in range(each.start, each.end))
        assert covered == wanted
        assert all(each.size > 0 for each in pieces)


def test_small_ranges_share_a_task_up_to_a_limit() -> None:
    found = bundle_ranges(ranges(4, 5, 1, 1, 20, 3, 7, 8), 10)
    assert [[each.size for each in bundle] for bundle in found] == [[4, 5, 1], [1], [20], [3, 7], [8]]
    assert [each for bundle in found for each in bundle] == ranges(4, 5, 1, 1, 20, 3, 7, 8)


def test_without_room_each_range_has_a_task() -> None:
    assert bundle_ranges(ranges(1, 1), 0) == [(each,) for each in ranges(1, 1)]
    assert bundle_ranges([], 10) == []
