"""Bootstrap addresses as people write them."""

from __future__ import annotations

import pytest

from ottla.client.addresses import Address, parse_bootstrap
from ottla.client.errors import BadAddress


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("localhost", [("localhost", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("PLAINTEXT://kafka:9094", [("kafka", 9094)]),
    ],
)
def test_addresses(text: str, expected: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == expected


@pytest.mark.parametrize("text", ["", " , ", "host:", "host:x", "host:0", "host:70000", ":9092"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(BadAddress, match="it should look like localhost:9092"):
        parse_bootstrap(text)


def test_an_address_prints_as_it_is_written() -> None:
    assert str(Address("::1", 1)) == "[::1]:1"
    assert str(Address("host", 1)) == "host:1"
