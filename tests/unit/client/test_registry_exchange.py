"""The client of a schema registry, where the registry is slow, strange or no registry at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from ottla.client import registry_exchange
from ottla.client.errors import BadAddress, Disconnected, NoAnswer, Unreachable
from ottla.client.registry_exchange import Exchange, NoRegistry, RegistryRefused, parse_url
from ottla.client.schema_registry import Registry
from ottla.registry.schemas import Schema, SchemaType

Act = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(act: Act) -> Iterator[str]:
    """An HTTP server that does this with every request; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        do_GET = do_POST = do_PUT = do_DELETE = lambda self: act(self)

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


@contextmanager
def exchange(act: Act, *, timeout: float = 20) -> Iterator[Exchange]:
    with server(act) as url, Exchange([parse_url(url)], timeout=timeout) as exchange:
        yield exchange


def say(status: int, body: bytes, kind: str = "application/json") -> Act:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return act


def say_json(value: Any, status: int = 200) -> Act:
    return say(status, json.dumps(value).encode())


def test_an_address_has_its_parts() -> None:
    place = parse_url("https://ann:a%40b@Registry.example/some where/")
    assert str(place) == "https://registry.example:443/some%20where"
    assert place.login == "ann:a@b"
    assert str(parse_url("http://[::1]:8081")) == "http://[::1]:8081"


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8081", "ftp://host", "http://", "http://host:x", "http://host:99999", "http://a\udcff"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadAddress, match="should look like http://host:port"):
        parse_url(url)


def test_a_password_in_an_address_is_not_told() -> None:
    with pytest.raises(BadAddress) as raised:
        parse_url("http://ann:secret@host:x")
    assert "secret" not in str(raised.value)


def test_a_name_and_password_are_sent_and_paths_are_quoted() -> None:
    seen = []

    def act(handler: BaseHTTPRequestHandler) -> None:
        seen.append((handler.path, handler.headers["Authorization"]))
        say_json([])(handler)

    with server(act) as url:
        place = parse_url(url.replace("//", "//ann:secret@") + "/base")
        with Exchange([place]) as exchange:
            assert exchange.ask("GET", "subjects", "a/b ü\udcff", limit=3, deleted=True, verbose=False) == []
    assert seen == [("/base/subjects/a%2Fb%20%C3%BC%FF?limit=3&deleted=true", "Basic YW5uOnNlY3JldA==")]


def test_one_that_is_still_starting_is_waited_for() -> None:
    answers = [say(503, b"Not yet", "text/plain"), say_json({"compatibilityLevel": "FULL"})]
    with exchange(lambda handler: answers.pop(0)(handler)) as asked:
        assert Registry(asked).level() == "FULL"


def test_one_that_never_starts_is_given_up() -> None:
    with (
        exchange(say(503, b"Not yet", "text/plain"), timeout=0.1) as asked,
        pytest.raises(RegistryRefused, match="Not yet"),
    ):
        asked.ask("GET", "config")


def test_one_that_does_not_answer_is_given_up() -> None:
    enough = Event()

    def act(handler: BaseHTTPRequestHandler) -> None:
        enough.wait(20)
        handler.close_connection = True

    with exchange(act, timeout=0.2) as asked:
        with pytest.raises(NoAnswer, match=r"within 0\.2 s"):
            asked.ask("GET", "config")
        enough.set()


def test_errors_have_the_registrys_code_and_message() -> None:
    with exchange(say_json({"error_code": 40401, "message": "Subject 'x' not found."}, 404)) as asked:
        with pytest.raises(RegistryRefused) as raised:
            asked.ask("GET", "subjects", "x")
        assert (raised.value.code, raised.value.status) == (40401, 404)
        assert str(raised.value) == "Subject 'x' not found (40401)"
        registry = Registry(asked)
        assert registry.own_level("x") is None
        assert registry.look_up("x", Schema(SchemaType.AVRO, '"int"')) is None


def test_an_answer_that_comes_before_all_was_sent_is_read() -> None:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 413 \r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nToo much")
        handler.wfile.flush()
        while handler.rfile.read1(1 << 16):  # so that the answer is not lost with the connection
            pass

    with exchange(act) as asked, pytest.raises(RegistryRefused, match=r"Too much \(413\)"):
        asked.ask("POST", "subjects", "x", "versions", value={"schema": "x" * 100})


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def speak_otherwise(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 mail.example\r\n")
    handler.close_connection = True


def break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (hang_up, Disconnected),
        (break_off, Disconnected),
        (speak_otherwise, NoRegistry),
        (say(200, b"<html>", "text/html"), NoRegistry),
        (say(200, b""), NoRegistry),
        (say(200, b"[" * 100_000), NoRegistry),
        (say(302, b"", "text/html"), NoRegistry),
        (say(404, b"<html>", "text/html"), NoRegistry),
        (say_json({"hello": 1}), NoRegistry),
        (say_json([{"subject": "a"}]), NoRegistry),
        (say_json([{"subject": "a", "version": 1, "id": 1, "schema": "", "schemaType": "XML"}]), NoRegistry),
        (say_json(7), NoRegistry),
    ],
)
def test_what_is_no_registry_is_told_from_one(act: Act, error: type[Exception]) -> None:
    with exchange(act) as asked, pytest.raises(error):
        Registry(asked).all_versions()


def test_an_answer_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_exchange, "ANSWER_MAX", 100)
    with (
        exchange(say(200, b"[" + b" " * 100)) as asked,
        pytest.raises(NoRegistry, match="more than 100 bytes"),
    ):
        asked.ask("GET", "subjects")


def test_a_registry_that_does_not_know_of_pages_is_read_once() -> None:
    versions = [
        {"subject": "a", "version": number, "id": number, "schema": '"int"'} for number in range(1, 251)
    ]
    for count in (0, 100, 250):
        with exchange(say_json(versions[:count])) as asked:
            assert [each.version for each in Registry(asked).all_versions()] == list(range(1, count + 1))


def test_what_reads_keeps_its_connection_and_what_writes_has_its_own() -> None:
    ports = []

    def act(handler: BaseHTTPRequestHandler) -> None:
        ports.append(handler.client_address[1])
        say_json([])(handler)

    with exchange(act) as asked:
        for method in ("GET", "GET", "DELETE", "GET"):
            asked.ask(method, "subjects")
    assert ports[0] == ports[1] and ports[1] != ports[2]


def test_one_that_closes_after_each_answer_is_asked_again() -> None:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n[]")

    with exchange(act) as asked:
        assert [asked.ask("GET", "subjects") for _ in range(3)] == [[], [], []]


def test_where_nobody_listens_that_is_said() -> None:
    with server(hang_up) as url:
        gone = url
    with Exchange([parse_url(gone)]) as asked, pytest.raises(Unreachable, match="connection refused"):
        asked.ask("GET", "subjects")
