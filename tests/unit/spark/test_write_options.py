"""The options of a write."""

from __future__ import annotations

import pytest

from ottla.protocol.compression import ZSTD
from ottla.spark.properties import BadOption
from ottla.spark.write_options import PRODUCER_PROPERTIES, REFUSED_PROPERTIES, WriteOptions, parse_write

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}


def parse(**more: str) -> WriteOptions:
    return parse_write({**BROKER, **{name.replace("__", "."): value for name, value in more.items()}})


def test_a_write_is_exactly_once_unless_told_otherwise() -> None:
    assert parse(topic="t") == WriteOptions("localhost:9092", "t")
    assert parse().exactly_once
    assert not parse(semantic="at_least_once").exactly_once
    assert not parse(semantic="AT-LEAST-ONCE").exactly_once


def test_properties_of_the_producer_are_used() -> None:
    options = parse(
        kafka__compression__type="zstd",
        kafka__compression__zstd__level="7",
        kafka__max__request__size="2000000",
        kafka__batch__size="100000",
        kafka__transaction__timeout__ms="5000",
        kafka__delivery__timeout__ms="7000",
        kafka__client__id="me",
        kafka__partitioner__ignore__keys="true",
        includeTimestamp="true",
        kafka__security__protocol="SASL_PLAINTEXT",
        kafka__sasl__mechanism="PLAIN",
        kafka__sasl__username="u",
        kafka__sasl__password="p",
    )
    assert (options.codec, options.level) == (ZSTD, 7)
    assert (options.max_request_size, options.batch_size) == (2_000_000, 100_000)
    assert (options.transaction_timeout_ms, options.delivery_timeout_ms) == (5000, 7000)
    assert options.client_id == "me"
    assert options.ignore_keys
    assert options.include_timestamp
    assert options.security.username == "u"


def test_a_batch_is_no_larger_than_a_request() -> None:
    assert parse(kafka__max__request__size="1000").batch_size == 1000


@pytest.mark.parametrize("name", sorted(set(PRODUCER_PROPERTIES.split()) - set(REFUSED_PROPERTIES)))
def test_what_a_query_for_the_connector_may_have_set_is_taken(name: str) -> None:
    values = {
        "acks": "all",
        "compression.type": "lz4",
        "partitioner.ignore.keys": "false",
        "enable.idempotence": "true",
    }
    parse_write({**BROKER, f"kafka.{name}": values.get(name, "1")})


@pytest.mark.parametrize("name", sorted(REFUSED_PROPERTIES))
def test_what_would_not_be_done_is_refused(name: str) -> None:
    with pytest.raises(BadOption, match=f"'kafka.{name}' is not supported: "):
        parse_write({**BROKER, f"kafka.{name}": "x"})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("topics", "a", "unknown option 'topics': did you mean 'topic'"),
        ("path", "/tmp/x", r"not a path: write \.option\('topic', 'name'\)"),
        ("subscribe", "a", "'subscribe' is for reading"),
        ("startingOffsets", "earliest", "'startingOffsets' is for reading"),
        ("kafka.ack", "all", "did you mean 'kafka.acks'"),
        ("kafka.zzz", "g", "unknown option 'kafka.zzz': Kafka's producer has no such property"),
        ("semantic", "twice", "exactly_once .* or at_least_once, not 'twice'"),
        ("kafka.acks", "1", "a transaction needs all"),
        ("kafka.acks", "2", "all, 1 or 0, not '2'"),
        ("kafka.compression.type", "brotli", "none, gzip, snappy, lz4, zstd, not 'brotli'"),
        ("kafka.batch.size", "0", "'kafka.batch.size' is at least 1"),
        ("kafka.max.request.size", "big", "whole number, not 'big'"),
        ("includeTimestamp", "yes", "true or false"),
        ("kafka.security.protocol", "TLS", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_with_what_to_write(
    name: str, value: str, words: str
) -> None:
    with pytest.raises(BadOption, match=words):
        parse_write({**BROKER, name: value})


def test_the_address_of_a_broker_has_to_be_given() -> None:
    with pytest.raises(BadOption, match=r"'kafka\.bootstrap\.servers' is missing"):
        parse_write({"topic": "t"})


def test_other_acks_are_taken_where_there_is_no_transaction() -> None:
    assert parse(kafka__acks="1", semantic="at_least_once") == parse(semantic="at_least_once")
