from __future__ import annotations

import pytest

from ottla.protocol import errors
from ottla.protocol.errors import (
    InvalidRecord,
    InvalidTimestamp,
    InvalidTopic,
    KafkaError,
    NotLeaderOrFollower,
    UnknownServerError,
    error_class,
    error_name,
)

CODES = [code for code in range(-1, 134) if code != 0]


def test_every_code_has_a_class_of_its_own() -> None:
    classes = [error_class(code) for code in CODES]
    assert [cls.code for cls in classes] == CODES
    assert len(set(classes)) == 134


def test_names_are_kafkas() -> None:
    assert NotLeaderOrFollower.name == "NOT_LEADER_OR_FOLLOWER"
    assert InvalidTopic.name == "INVALID_TOPIC_EXCEPTION"
    assert error_name(0) == "NONE"
    assert error_name(100) == "UNKNOWN_TOPIC_ID"
    assert len({error_class(code).name for code in CODES}) == 134


def test_the_retriable_ones_are_those_that_clients_retry() -> None:
    retriable = [code for code in CODES if error_class(code).retriable]
    assert retriable == [
        2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89,
        100, 103, 106, 122, 123, 133,
    ]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_an_error_explains_itself_in_one_line(code: int) -> None:
    message = str(error_class(code)())
    assert message.endswith(".") and "\n" not in message and len(message) > 15


def test_the_raiser_may_say_more() -> None:
    assert str(NotLeaderOrFollower("partition 3 has moved")) == "partition 3 has moved"


def test_a_code_that_nobody_knows_is_an_unknown_server_error() -> None:
    assert error_class(9999) is UnknownServerError
    assert error_name(9999) == "UNKNOWN_SERVER_ERROR"


@pytest.mark.parametrize("cls", [InvalidRecord, InvalidTimestamp])
def test_errors_of_records_say_which_ones(cls: type[InvalidRecord]) -> None:
    assert cls().record_errors == []
    error = cls("two are bad", [(0, "no key"), (3, None)])
    assert error.record_errors == [(0, "no key"), (3, None)]
    assert str(error) == "two are bad"
    assert isinstance(error, KafkaError)
    assert str(cls()).endswith(".")


def test_the_module_has_no_error_without_a_code() -> None:
    declared = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, KafkaError)
    ]
    assert len(declared) == 135  # with KafkaError itself
