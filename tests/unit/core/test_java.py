from __future__ import annotations

import pytest

from ottla.core.java import absolute, hash_code, host_address


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),  # two UTF-16 units
        ("\ud83d", 0xD83D),  # half a pair
    ],
)
def test_strings_hash_as_in_java(text: str, hashed: int) -> None:
    assert hash_code(text) == hashed


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("tx-group", 10),
        ("vg", 11),
        ("grp-classic", 46),
        ("grp-consumer", 38),
        ("tx-golden", 20),
        ("polygenelubricants", 0),
    ],
)
def test_keys_fall_on_the_partitions_that_kafka_gives_them(key: str, partition: int) -> None:
    assert absolute(hash_code(key)) % 50 == partition


def test_the_least_integer_has_no_absolute_value_and_becomes_zero() -> None:
    assert absolute(-(2**31)) == 0
    assert absolute(-(2**31) + 1) == 2**31 - 1
    assert absolute(5) == 5


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("", ""),
    ],
)
def test_an_address_is_written_as_java_writes_it(address: str, expected: str) -> None:
    assert host_address(address) == expected
