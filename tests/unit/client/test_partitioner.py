"""Keys go where Kafka's own producer sends them."""

from __future__ import annotations

import pytest

from ottla.client.partitioner import RoundRobin, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", 275646681),
        ("a", -1563381124),
        ("ab", 316155434),
        ("abc", 479470107),
        ("abcd", -1323649548),
        ("key0", 452605474),
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("héllo", 614509002),
    ],
)
def test_murmur2_is_that_of_java(key: str, expected: int) -> None:
    assert murmur2(key.encode()) == expected


def test_the_sign_of_the_hash_is_dropped_not_turned() -> None:
    assert murmur2(b"abcd") < 0
    assert partition_of_key(b"abcd", 7) == (murmur2(b"abcd") & 0x7FFF_FFFF) % 7


def test_without_a_key_partitions_take_turns() -> None:
    turns = RoundRobin()

    assert [turns.choose([0, 2, 5]) for _ in range(7)] == [0, 2, 5, 0, 2, 5, 0]
