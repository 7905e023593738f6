"""Which door a connection gets to, and what all of them share."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from ottla import Broker
from ottla.config.broker import broker_settings
from ottla.config.listeners import SocketAddress, offered_doors
from ottla.config.settings import ConfigError
from ottla.protocol import codec, headers
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.server.broker import new_event_loop
from ottla.server.doors import door_for

SECONDS = 20.0
QUICK = {"ottla.durability": "kafka"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=QUICK) as broker:
        yield broker


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(broker.addresses[0], timeout=SECONDS)


def ask(connection: socket.socket, line: bytes) -> bytes:
    """The first line of the answer to a line."""
    connection.sendall(line + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        part = connection.recv(1)
        if not part:
            break
        answer += part
    return answer


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def api_versions() -> bytes:
    head = headers.request_head(ApiVersionsRequest.api_key, 3, 7, "test")
    body = head + codec.encode(ApiVersionsRequest(), 3)
    return struct.pack(">i", len(body)) + body


def kafka_answers(connection: socket.socket) -> bool:
    connection.sendall(api_versions())
    data = b""
    while len(data) < 8:
        part = connection.recv(65536)
        if not part:
            return False
        data += part
    return int.from_bytes(data[4:8], "big") == 7


# --- first bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "door"),
    [
        (b"PRI ", "grpc"),
        (b"GET ", "http"),
        (b"POST", "http"),
        (b"HEAD", "http"),
        (b"OPTI", "http"),
        (b"CONN", "http"),
        (b"CONS", "text"),
        (b"PROD", "text"),
        (b'"PRO', "text"),
        (b"help", "text"),
        (b"    ", "text"),
        (b"\r\n\r\n", "text"),
        (b"\x16\x03\x01\x02", None),  # the start of TLS
        (b"\xff\xff\xff\xff", None),
        (b"GET\x00", None),
    ],
)
def test_the_first_four_bytes_decide(first: bytes, door: str | None) -> None:
    assert door_for(first) == door


def test_no_letters_are_a_size_that_kafka_takes() -> None:
    assert int.from_bytes(b"    ", "big") > broker_settings({}).socket_request_max_bytes
    assert int.from_bytes(b"\t\t\t\t", "big") > broker_settings({}).socket_request_max_bytes


def test_every_door_is_on_the_one_port(broker: Broker) -> None:
    with connect(broker) as kafka, connect(broker) as text, connect(broker) as http:
        assert kafka_answers(kafka)
        assert ask(text, b"CREATE one") == b"OK one 1\n"
        assert ask(http, b"GET /health HTTP/1.1\r\nHost: x\r\n\r") == b"HTTP/1.1 200 OK\r\n"


def test_a_connection_that_has_spoken_kafka_stays_with_it(broker: Broker) -> None:
    """Or else a record that is read from the wrong place could be taken for a command."""
    with connect(broker) as connection:
        assert kafka_answers(connection)
        connection.sendall(b"PRODUCE t k v\n")
        while connection.recv(65536):
            pass
    with connect(broker) as text:
        assert ask(text, b"CONSUME t 0 0").startswith(b"ERR UNKNOWN_TOPIC_OR_PARTITION ")


def test_a_connection_that_has_spoken_text_stays_with_it(broker: Broker) -> None:
    with connect(broker) as connection:
        assert ask(connection, b"CREATE stays") == b"OK stays 1\n"
        assert ask(connection, b"GET / HTTP/1.1").startswith(b"ERR INVALID_REQUEST ")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"\xff" * 64, b"GET\x00\x00\x00", b"\x7fELF"])
def test_what_no_door_understands_is_closed(broker: Broker, sent: bytes) -> None:
    with connect(broker) as connection:
        connection.sendall(sent)
        assert is_closed(connection)


def test_first_bytes_may_come_one_by_one(broker: Broker) -> None:
    with connect(broker) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"CREATE slow":
            connection.sendall(bytes([byte]))
        assert ask(connection, b"") == b"OK slow 1\n"


# --- which doors there are -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "host", "offered"),
    [
        ("", "127.0.0.1", {"kafka", "grpc", "http", "text"}),
        ("", "localhost", {"kafka", "grpc", "http", "text"}),
        ("", "0.0.0.0", {"kafka"}),
        ("", "192.0.2.1", {"kafka"}),
        ("kafka,http", "0.0.0.0", {"kafka", "http"}),
        ("kafka", "127.0.0.1", {"kafka"}),
        ("kafka,INSIDE:grpc,outside:http", "127.0.0.1", {"kafka", "grpc"}),
        ("Kafka, TEXT", "127.0.0.1", {"kafka", "text"}),
    ],
)
def test_listeners_offer_what_the_setting_says(setting: str, host: str, offered: set[str]) -> None:
    settings = broker_settings({"ottla.doors": setting})
    assert offered_doors(settings, SocketAddress("INSIDE", host, 9092)) == offered


def test_a_door_that_is_not_there_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="ftp is not a door"):
        broker_settings({"ottla.doors": "kafka,ftp"})


def test_a_door_that_is_not_offered_is_closed() -> None:
    with Broker(properties={**QUICK, "ottla.doors": "kafka,http"}) as broker:
        with connect(broker) as text:
            text.sendall(b"TOPICS\n")
            assert is_closed(text)
        with connect(broker) as http:
            assert ask(http, b"GET /health HTTP/1.1\r\nHost: x\r\n\r") == b"HTTP/1.1 200 OK\r\n"
        with connect(broker) as kafka:
            assert kafka_answers(kafka)


def test_a_listener_may_be_without_kafka() -> None:
    with Broker(properties={**QUICK, "ottla.doors": "text"}) as broker:
        with connect(broker) as text:
            assert ask(text, b"CREATE t") == b"OK t 1\n"
        with connect(broker) as kafka:
            kafka.sendall(api_versions())
            assert is_closed(kafka)


# --- what all doors share --------------------------------------------------------------------


def test_connections_of_every_door_count_towards_the_limit() -> None:
    with Broker(properties={**QUICK, "max.connections": "3"}) as broker, ExitStack() as opened:
        for _ in range(3):
            connection = opened.enter_context(connect(broker))
            ask(connection, b"TOPICS")
        refused = opened.enter_context(connect(broker))
        assert is_closed(refused)
        connection.close()
        answered = False
        while not answered:  # the place is free once the broker has seen the other one go
            with connect(broker) as again, suppress(ConnectionError):
                answered = ask(again, b"TOPICS") == b"END 0\n"


def test_a_broker_that_stops_closes_every_door() -> None:
    with ExitStack() as opened:
        with Broker(properties=QUICK) as broker:
            text, http, follower = (opened.enter_context(connect(broker)) for _ in range(3))
            ask(text, b"CREATE t")
            ask(follower, b"FOLLOW t")
            ask(http, b"GET /health HTTP/1.1\r\nHost: x\r\n\r")
        assert is_closed(text) and is_closed(follower)
        while http.recv(65536):
            pass


def test_a_client_that_goes_away_in_the_middle_leaves_nothing_behind(broker: Broker) -> None:
    for sent in (b"FOLLOW gone\n", b"PRODUCE gone k", b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n", b"CONS"):
        with connect(broker) as connection:
            connection.sendall(sent)
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # close with a reset
    with connect(broker) as connection:
        assert ask(connection, b"CREATE gone") == b"OK gone 1\n"


def test_doors_open_on_every_event_loop() -> None:
    async def main() -> None:
        async with Broker(properties=QUICK) as broker:
            host, port = broker.addresses[0]
            for _ in range(2):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(b"TOPICS\n")
                assert await reader.readline() == b"END 0\n"
                writer.write(b"QUIT\n")
                assert await reader.read() == b"OK bye\n"
                writer.close()

    for new_loop in (asyncio.new_event_loop, new_event_loop):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(main())
