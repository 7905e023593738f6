"""The options of a read: what they mean, and in which words a wrong one is refused."""

from __future__ import annotations

import re

import pytest

from ottla.core.types import TopicPartition
from ottla.spark.options import OPTIONS, ReadOptions, parse_read
from ottla.spark.positions import At, AtTimestamp, AtTimestamps, Earliest, Latest
from ottla.spark.properties import BadOption
from ottla.spark.subscription import Partitions, Pattern, Topics

NEEDED = {"kafka.bootstrap.servers": "here:9092", "subscribe": "orders"}
ORDERS_0 = TopicPartition("orders", 0)


def batch(**options: str) -> ReadOptions:
    return parse_read({**NEEDED, **dotted(options)}, streaming=False)


def stream(**options: str) -> ReadOptions:
    return parse_read({**NEEDED, **dotted(options)}, streaming=True)


def dotted(options: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in options.items()}


def refused(options: dict[str, str], *words: str, streaming: bool | None = None) -> None:
    with pytest.raises(BadOption, match=".*".join(map(re.escape, words))):
        parse_read(options, streaming=streaming)


# --- what to read --------------------------------------------------------------------------


def test_a_topic_and_a_broker_are_enough() -> None:
    assert batch() == ReadOptions(
        "here:9092", Topics(("orders",)), Earliest(), properties={"bootstrap.servers": "here:9092"}
    )
    assert stream().starting == Latest()


def test_names_of_options_know_no_case() -> None:
    options = {name.upper(): value for name, value in NEEDED.items()}
    read = parse_read({**options, "STARTINGoffsets": "EARLIEST", "MinPartitions": "4"}, streaming=True)
    assert read.starting == Earliest()
    assert read.min_partitions == 4


def test_topics_are_separated_by_commas() -> None:
    assert batch(subscribe=" orders, ,returns ,orders").subscription == Topics(("orders", "returns"))


def test_a_pattern_is_found_anywhere_in_a_name_but_never_in_an_internal_topic() -> None:
    options = {"kafka.bootstrap.servers": "here:9092", "subscribePattern": "o.?r"}
    pattern = parse_read(options).subscription
    assert isinstance(pattern, Pattern)
    topics = {"orders": [0], "motor": [0], "__consumer_offsets": [0], "returns": [0]}
    assert pattern.matching(topics) == ["orders", "motor"]


def test_partitions_are_assigned_by_number() -> None:
    options = {"kafka.bootstrap.servers": "here:9092", "assign": '{"orders": [2, 0], "returns": [0]}'}
    assert parse_read(options).subscription == Partitions(
        (ORDERS_0, TopicPartition("orders", 2), TopicPartition("returns", 0))
    )


@pytest.mark.parametrize(
    "assigned", ["orders", "{}", '{"orders": 1}', '{"orders": [-1]}', '{"orders": ["0"]}', "[]"]
)
def test_what_assigns_no_partition_is_refused(assigned: str) -> None:
    refused({"kafka.bootstrap.servers": "here:9092", "assign": assigned}, "option 'assign'")


def test_exactly_one_way_to_say_what_to_read_is_taken() -> None:
    refused({"kafka.bootstrap.servers": "here:9092"}, "'subscribe', 'subscribePattern' and 'assign'")
    refused({**NEEDED, "assign": '{"orders": [0]}'}, "only one of the options 'subscribe' and 'assign'")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribePattern": " "}, "is empty"),
        ({"subscribePattern": "orders("}, "no regular expression"),
    ],
)
def test_an_empty_subscription_is_refused(options: dict[str, str], words: str) -> None:
    refused({"kafka.bootstrap.servers": "here:9092", **options}, words)


def test_the_address_of_a_broker_is_needed() -> None:
    refused({"subscribe": "orders"}, "'kafka.bootstrap.servers' is missing")


# --- where to start and end ----------------------------------------------------------------


def test_offsets_are_json_by_topic_and_partition() -> None:
    text = '{"orders": {"0": 23, "1": -2}, "returns": {"0": -1}}'
    assert stream(startingOffsets=text).starting == At(
        {ORDERS_0: 23, TopicPartition("orders", 1): -2, TopicPartition("returns", 0): -1}
    )


def test_one_time_wins_over_times_and_these_over_offsets() -> None:
    by_partition = '{"orders": {"0": 7}}'
    read = stream(startingTimestamp="5", startingOffsetsByTimestamp=by_partition, startingOffsets="latest")
    assert read.starting == AtTimestamp(5, else_latest=False)
    assert "option startingOffsets is ignored, as startingTimestamp is set" in read.warnings
    read = stream(startingOffsetsByTimestamp=by_partition, startingOffsets="earliest")
    assert read.starting == AtTimestamps({ORDERS_0: 7}, else_latest=False)


def test_a_time_that_no_record_has_reached_is_an_error_or_the_end_as_the_strategy_says() -> None:
    assert stream(startingTimestamp="5", startingOffsetsByTimestampStrategy="LATEST").starting == AtTimestamp(
        5, else_latest=True
    )
    assert batch(endingTimestamp="5").ending == AtTimestamp(5, else_latest=True)
    refused({**NEEDED, "startingOffsetsByTimestampStrategy": "newest"}, "is error or latest, not 'newest'")


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    value = {"endingOffsets": "latest", "endingTimestamp": "1"}.get(name, '{"orders": {"0": 1}}')
    refused({**NEEDED, name: value}, f"'{name}' is for batch queries", streaming=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, "cannot be latest in a batch query"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "orders-0 cannot be latest (-1) in a batch query"),
        ({"endingOffsets": "earliest"}, "cannot be earliest in a batch query"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "orders-0 cannot be earliest (-2) in a batch query"),
        (
            {"startingOffsets": '{"orders": {"0": 9}}', "endingOffsets": '{"orders": {"0": 8}}'},
            "the starting offset of orders-0 is 9, the ending one is less: 8",
        ),
        (
            {"startingOffsets": '{"orders": {"0": 9}}', "endingOffsets": '{"orders": {"1": 9}}'},
            "have to name the same partitions; starting: orders-0; ending: orders-1",
        ),
        (
            {"startingTimestamp": "9", "endingTimestamp": "8"},
            "startingTimestamp (9) is after endingTimestamp (8)",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"orders": {"0": 9}}',
                "endingOffsetsByTimestamp": '{"orders": {"0": 8}}',
            },
            "the starting timestamp of orders-0 is 9, the ending one is less: 8",
        ),
    ],
)
def test_a_batch_that_would_read_nothing_is_refused(options: dict[str, str], words: str) -> None:
    refused({**NEEDED, **options}, words, streaming=False)


@pytest.mark.parametrize(
    "text", ["newest", "23", '{"orders": 23}', '{"orders": {"x": 1}}', '{"orders": {"0": 1.5}}']
)
def test_offsets_that_are_no_offsets_are_refused_with_an_example(text: str) -> None:
    refused({**NEEDED, "startingOffsets": text}, "startingOffsets", "expected for example", '"0": 23')


def test_an_offset_below_the_two_special_ones_is_refused() -> None:
    refused({**NEEDED, "startingOffsets": '{"orders": {"0": -3}}'}, "-1 for latest or -2 for earliest")


def test_a_batch_reads_all_there_is_unless_it_is_told_otherwise() -> None:
    assert (batch().starting, batch().ending) == (Earliest(), Latest())


# --- the rest ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500", 500), ("30s", 30_000), ("15m", 900_000), ("2min", 120_000), ("1h", 3_600_000), ("250 ms", 250)],
)
def test_a_delay_is_a_time_with_its_unit(text: str, milliseconds: int) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == milliseconds


def test_the_least_of_a_batch_cannot_be_more_than_the_most() -> None:
    refused(
        {**NEEDED, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "9"}, "(10) is higher than", "(9)"
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("maxOffsetsPerTrigger", "0", "is at least 1, not 0"),
        ("minPartitions", "two", "is a whole number, not 'two'"),
        ("maxRecordsPerPartition", "-5", "is at least 1, not -5"),
        ("maxTriggerDelay", "soon", "is a time such as 30s"),
        ("failOnDataLoss", "yes", "is true or false, not 'yes'"),
        ("kafka.isolation.level", "strict", "read_uncommitted or read_committed, not 'strict'"),
        ("kafka.check.crcs", "no", "is true or false, not 'no'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(name: str, value: str, words: str) -> None:
    refused({**NEEDED, name: value}, f"'{name}'", words)


def test_the_isolation_level_can_be_given_as_kafkas_property_or_by_itself() -> None:
    assert not batch().read_committed
    assert batch(kafka__isolation__level="read_committed").read_committed
    assert batch(isolation__level="READ_COMMITTED").read_committed
    refused(
        {**NEEDED, "isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"},
        "and differ",
    )


def test_progress_is_committed_to_a_group_that_has_a_name() -> None:
    read = stream(commitOffsets="true", kafka__group__id="billing")
    assert (read.commit_offsets, read.group_id) == (True, "billing")
    refused({**NEEDED, "commitOffsets": "true"}, "'commitOffsets' needs 'kafka.group.id'")


def test_a_prefix_names_the_client_unless_a_group_is_given() -> None:
    assert stream(groupIdPrefix="billing").client_id == "billing"
    assert stream(groupIdPrefix="billing", kafka__client__id="me").client_id == "me"
    assert "groupIdPrefix is ignored" in stream(groupIdPrefix="billing", kafka__group__id="g").warnings[0]


def test_limits_of_a_stream_are_no_error_in_a_batch_but_noted() -> None:
    assert batch(maxOffsetsPerTrigger="5").warnings == (
        "option maxOffsetsPerTrigger is ignored in batch queries",
    )


def test_a_timeout_can_be_given_in_each_of_its_places() -> None:
    assert batch().timeout_ms == 120_000
    assert batch(kafka__request__timeout__ms="9").timeout_ms == 9
    assert batch(kafkaConsumer__pollTimeoutMs="7", kafka__request__timeout__ms="9").timeout_ms == 7


def test_the_size_of_a_fetch_is_the_smaller_of_its_limits() -> None:
    assert batch().max_fetch_bytes is None
    read = batch(kafka__fetch__max__bytes="9000", kafka__max__partition__fetch__bytes="5000")
    assert read.max_fetch_bytes == 5000


# --- unknown and unsupported ---------------------------------------------------------------


def test_a_misspelt_option_is_refused_with_the_right_name() -> None:
    refused({**NEEDED, "startingOffset": "earliest"}, "unknown option 'startingoffset'", "'startingOffsets'?")
    refused({**NEEDED, "kafka.group.idd": "g"}, "unknown option 'kafka.group.idd'", "'kafka.group.id'?")


def test_an_option_of_nothing_we_know_is_refused_with_all_there_are() -> None:
    refused({**NEEDED, "header": "true"}, "unknown option 'header'")
    with pytest.raises(BadOption) as error:
        parse_read({**NEEDED, "quux": "1"})
    assert all(name in str(error.value) for name in OPTIONS)


def test_an_option_of_the_writer_is_refused_in_a_read() -> None:
    refused({**NEEDED, "topic": "orders"}, "unknown option 'topic'")


def test_a_path_is_refused() -> None:
    refused({**NEEDED, "path": "/data"}, "a topic is read, not a path")


@pytest.mark.parametrize(
    "name",
    [
        "key.deserializer",
        "value.deserializer",
        "auto.offset.reset",
        "enable.auto.commit",
        "interceptor.classes",
    ],
)
def test_what_the_connector_refuses_is_refused_with_what_to_do_instead(name: str) -> None:
    refused({**NEEDED, f"kafka.{name}": "x"}, f"option 'kafka.{name}' is not supported: ")


def test_properties_that_tune_kafkas_consumer_are_taken() -> None:
    read = batch(kafka__max__poll__records="500", kafka__session__timeout__ms="100")
    assert read.properties["max.poll.records"] == "500"


def test_security_properties_are_left_to_the_client() -> None:
    read = batch(
        kafka__security__protocol="SASL_SSL",
        kafka__sasl__mechanism="PLAIN",
        kafka__ssl__truststore__type="PEM",
    )
    assert read.properties["sasl.mechanism"] == "PLAIN"
