"""The text door, line by line."""

from __future__ import annotations

import socket

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from ottla import Broker
from ottla.client.partitioner import partition_of_key
from ottla.gateways.text import LINE_MAX
from tests.unit.gateways.conftest import QUICK, Caller


def test_the_examples_of_the_seed_work_as_they_are_written(broker: Broker, caller: Caller) -> None:
    assert caller.ask("PRODUCE Payments key1 HelloWorld") == "OK Payments 0 0"
    assert caller.ask_all("CONSUME Payments 0 0") == ["0 0 key1 HelloWorld", "END 1"]


def test_the_examples_of_the_seed_work_with_their_quotes(caller: Caller) -> None:
    assert caller.ask('    "PRODUCE Quoted key1 HelloWorld"') == "OK Quoted 0 0"
    assert caller.ask_all('    "CONSUME Quoted 0 0" ') == ["0 0 key1 HelloWorld", "END 1"]


def test_commands_are_known_in_any_case(caller: Caller) -> None:
    assert caller.ask("create Cases 2") == "OK Cases 2"
    assert caller.ask("Produce Cases k v") == f"OK Cases {partition_of_key(b'k', 2)} 0"


def test_messages_without_a_key_take_turns_also_over_several_connections(broker: Broker) -> None:
    partitions = []
    for command in ["CREATE Turns 3", *["PRODUCE Turns hello"] * 6]:
        with Caller(broker.addresses[0]) as caller:
            partitions.append(caller.ask(command).split()[2])
    assert partitions[1:] == ["0", "1", "2", "0", "1", "2"]


def test_a_key_goes_where_kafka_would_put_it(caller: Caller) -> None:
    caller.ask("CREATE Keys 5")
    for key in ("a", "key1", "žluť", "a long key with spaces"):
        expected = partition_of_key(key.encode(), 5)
        assert caller.ask(f'PRODUCE Keys "{key}" v').split()[2] == str(expected)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("k Hello big World", "k Hello big World"),
        ("- no key", "- no key"),
        ("alone", "- alone"),
        ('"a key" "a value"', '"a key" a value'),
        ("k -", "k -"),
        (r'k "two\nlines"', r'k "two\nlines"'),
        ('k ""', 'k ""'),
    ],
)
def test_messages_are_shown_as_they_can_be_written(caller: Caller, written: str, shown: str) -> None:
    _, topic, partition, offset = caller.ask(f"PRODUCE Shown {written}").split()
    assert caller.ask_all(f"CONSUME {topic} {partition} {offset}")[0] == f"0 {offset} {shown}"


def test_a_message_that_is_not_text_passes_through(caller: Caller) -> None:
    caller.type(b"PRODUCE Bytes k \xff\xfe")
    assert caller.line() == "OK Bytes 0 0"
    assert caller.ask_all("CONSUME Bytes 0 0") == [r'0 0 k "\xff\xfe"', "END 1"]


def test_consuming_ends_where_it_was_told_to(caller: Caller) -> None:
    for number in range(5):
        caller.ask(f"PRODUCE Some k {number}")
    assert caller.ask_all("CONSUME Some 0 1 2") == ["0 1 k 1", "0 2 k 2", "END 3"]
    assert caller.ask_all("CONSUME Some 0 latest") == ["END 5"]
    assert len(caller.ask_all("CONSUME Some 0 earliest")) == 6
    assert len(caller.ask_all("CONSUME Some 0 @0")) == 6
    assert caller.ask_all("CONSUME Some 0 @99999999999999") == ["END 5"]


def test_topics_and_their_offsets_are_listed(caller: Caller) -> None:
    caller.ask("CREATE Listed 2")
    caller.ask("PRODUCE Listed one")
    assert "Listed 2" in caller.ask_all("TOPICS")
    assert caller.ask_all("OFFSETS Listed") == ["0 0 1", "1 0 0", "END 2"]
    assert caller.ask_all("OFFSETS Listed nobody") == ["0 0 1 -", "1 0 0 -", "END 2"]


def test_help_says_every_command(caller: Caller) -> None:
    words = {line.split()[0] for line in caller.ask_all("HELP")}
    assert words == {"PRODUCE", "CONSUME", "FOLLOW", "TOPICS", "CREATE", "OFFSETS", "HELP", "QUIT", "END"}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("FROBNICATE", "INVALID_REQUEST"),
        ("PRODUCE", "INVALID_REQUEST"),
        ("PRODUCE topic", "INVALID_REQUEST"),
        ("PRODUCE bad/name k v", "INVALID_TOPIC_EXCEPTION"),
        ("PRODUCE __consumer_offsets k v", "INVALID_TOPIC_EXCEPTION"),
        ('PRODUCE topic "open', "INVALID_REQUEST"),
        ("CONSUME", "INVALID_REQUEST"),
        ("CONSUME nothing 0 0", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("CONSUME Errors 7 0", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("CONSUME Errors 0 99", "OFFSET_OUT_OF_RANGE"),
        ("CONSUME Errors zero 0", "INVALID_REQUEST"),
        ("CONSUME Errors 0 -1", "INVALID_REQUEST"),
        ("CONSUME Errors 0 99999999999999999999", "INVALID_REQUEST"),
        ("CONSUME Errors 99999999999 0", "INVALID_REQUEST"),
        ("CONSUME Errors 0 0 1 1", "INVALID_REQUEST"),
        ("CONSUME Errors 0 0 999999999", "INVALID_REQUEST"),
        ("CREATE Errors", "TOPIC_ALREADY_EXISTS"),
        ("CREATE Zero 0", "INVALID_PARTITIONS"),
        ("CREATE Many 2000000000", "POLICY_VIOLATION"),
        ("CREATE Many 20000000000", "INVALID_REQUEST"),
        ("CREATE", "INVALID_REQUEST"),
        ("OFFSETS nothing", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("FOLLOW nothing", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("\x01\x02\x03", "INVALID_REQUEST"),
    ],
)
def test_a_bad_line_is_answered_and_the_next_one_is_read(caller: Caller, line: str, error: str) -> None:
    caller.ask("CREATE Errors")
    answer = caller.ask(line)
    assert answer.startswith(f"ERR {error} ")
    assert len(answer.split()) > 4, "an error says what to do"
    assert caller.ask_all("OFFSETS Errors") == ["0 0 0", "END 1"]


def test_a_line_that_is_too_long_is_refused_and_skipped(caller: Caller) -> None:
    caller.type("TOPICS " + "x" * 5 * LINE_MAX)
    assert caller.line().startswith("ERR MESSAGE_TOO_LARGE ")
    assert caller.ask("PRODUCE After k v") == "OK After 0 0"


def test_a_longest_line_is_taken(caller: Caller) -> None:
    value = "x" * (LINE_MAX - len("PRODUCE Long k "))
    assert caller.ask(f"PRODUCE Long k {value}") == "OK Long 0 0"
    assert caller.ask_all("CONSUME Long 0 0")[0] == f"0 0 k {value}"


def test_empty_lines_and_carriage_returns_mean_nothing(caller: Caller) -> None:
    caller.type("", "   ", "\r")
    assert caller.ask("PRODUCE Returns k v\r") == "OK Returns 0 0"
    assert caller.ask_all("CONSUME Returns 0 0\r")[0] == "0 0 k v"


def test_quit_hangs_up(caller: Caller) -> None:
    caller.type("QUIT", "TOPICS")
    assert caller.line() == "OK bye"
    assert caller.is_closed()


def test_a_client_that_has_sent_everything_still_gets_its_answers(caller: Caller) -> None:
    caller.type("PRODUCE Half k v")
    caller.socket.sendall(b"CONSUME Half 0 0")  # and no end of line
    assert caller.hang_up() == b"OK Half 0 0\n0 0 k v\nEND 1\n"


def test_lines_that_come_together_or_in_pieces_are_the_same(caller: Caller) -> None:
    caller.type("PRODUCE Pieces k 1\nPRODUCE Pieces k 2")
    assert [caller.line(), caller.line()] == ["OK Pieces 0 0", "OK Pieces 0 1"]
    caller.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for character in "PRODUCE Pieces k 3\n":
        caller.socket.sendall(character.encode())
    assert caller.line() == "OK Pieces 0 2"


# --- following -------------------------------------------------------------------------------


def test_a_follower_sees_what_comes_until_it_says_something(broker: Broker, caller: Caller) -> None:
    with Caller(broker.addresses[0]) as other:
        other.ask("PRODUCE Live k before")
        assert caller.ask("FOLLOW Live") == "OK following Live"
        other.ask("PRODUCE Live k 1")
        assert caller.line() == "0 1 k 1"
        other.ask("PRODUCE Live k 2")
        assert caller.line() == "0 2 k 2"
        caller.type("TOPICS")
        assert caller.line() == "END"
        assert "Live 1" in caller.until_end()


def test_a_follower_may_begin_in_the_past_and_at_one_partition(broker: Broker, caller: Caller) -> None:
    caller.ask("CREATE Past 2")
    for value in ("a", "b", "c", "d"):  # to the partitions 0, 1, 0, 1
        caller.ask(f"PRODUCE Past {value}")
    assert caller.ask("FOLLOW Past 1 earliest") == "OK following Past"
    assert [caller.line(), caller.line()] == ["1 0 - b", "1 1 - d"]
    caller.type("QUIT")
    assert [caller.line(), caller.line()] == ["END", "OK bye"]


def test_a_follower_that_sends_no_more_is_still_told(broker: Broker, caller: Caller) -> None:
    with Caller(broker.addresses[0]) as other:
        other.ask("CREATE Tail")
        caller.type("FOLLOW Tail")
        assert caller.line() == "OK following Tail"
        caller.socket.shutdown(socket.SHUT_WR)
        other.ask("PRODUCE Tail k v")
        assert caller.line() == "0 0 k v"


def test_a_follower_goes_on_with_partitions_that_are_added(
    broker: Broker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.gateways.text.LOOK_AGAIN_SECONDS", 0.1)
    with Caller(broker.addresses[0]) as other:
        other.ask("CREATE Grows 1")
        assert caller.ask("FOLLOW Grows") == "OK following Grows"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions("Grows", 2)])["Grows"].result(20)
        assert other.ask("PRODUCE Grows a") == "OK Grows 0 0"
        assert other.ask("PRODUCE Grows b") == "OK Grows 1 0"
        assert {caller.line(), caller.line()} == {"0 0 - a", "1 0 - b"}


def test_a_follower_of_a_topic_that_is_deleted_is_told_so_and_stops(broker: Broker, caller: Caller) -> None:
    caller.ask("CREATE Doomed 1")
    assert caller.ask("FOLLOW Doomed") == "OK following Doomed"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["Doomed"])["Doomed"].result(20)
    # Its leader goes before its name does, so there may be a word about that first.
    *_, last = iter(caller.line, "END")
    assert last.startswith("ERR UNKNOWN_TOPIC_OR_PARTITION ")
    assert caller.ask("CREATE Doomed 1") == "OK Doomed 1"


def test_a_follower_of_a_quiet_topic_is_not_idle() -> None:
    with (
        Broker(properties={**QUICK, "connections.max.idle.ms": "300"}) as broker,
        Caller(broker.addresses[0]) as caller,
        Caller(broker.addresses[0]) as idle,
    ):
        caller.ask("CREATE Quiet 1")
        assert caller.ask("FOLLOW Quiet") == "OK following Quiet"
        idle.ask_all("TOPICS")
        assert idle.is_closed()
        with Caller(broker.addresses[0]) as other:
            other.ask("PRODUCE Quiet k v")
        assert caller.line() == "0 0 k v"


# --- limits ----------------------------------------------------------------------------------


def test_an_idle_connection_is_closed() -> None:
    with (
        Broker(properties={**QUICK, "connections.max.idle.ms": "300"}) as broker,
        Caller(broker.addresses[0]) as caller,
    ):
        caller.ask("TOPICS")
        assert caller.is_closed()


def test_a_reader_that_does_not_read_costs_the_broker_little(broker: Broker, caller: Caller) -> None:
    """Its answers wait in the log, and others go on."""
    value = "x" * 60_000
    for _ in range(100):
        caller.ask(f"PRODUCE Slow k {value}")
    with Caller(broker.addresses[0]) as slow:
        for _ in range(8):
            slow.type("CONSUME Slow 0 0")
        assert caller.ask("PRODUCE Other k v") == "OK Other 0 0"
        lines = sum(len(slow.until_end()) for _ in range(8))
    assert lines == 8 * 101
