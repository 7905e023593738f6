"""What nobody should send to the registry, and what nobody should write to its topic."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from uuid import uuid4

import pytest

from ottla import Broker
from ottla.gateways.quoting import quoted
from ottla.gateways.registry import api
from ottla.gateways.registry.thinking import LARGE, Lane, Thinking
from ottla.registry.errors import Busy, InvalidSchema
from ottla.registry.image import Image
from ottla.registry.parsing import KEPT_SIZE_MAX, parse, referenced
from ottla.registry.records import registered
from ottla.registry.schemas import Reference, Registered, Schema, SchemaType
from tests.unit.gateways.conftest import Caller
from tests.unit.gateways.test_registry import B_WITH_DEFAULT, A, B, Registry, record, said

HALF_A_PAIR = "\ud800"


@pytest.fixture
def registry(broker: Broker) -> Iterator[Registry]:
    registry = Registry(broker.bootstrap)
    with registry.http:
        yield registry


@pytest.fixture
def subject() -> str:
    return f"s-{uuid4().hex[:12]}"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/subjects?" + "&".join(f"a{number}=1" for number in range(1_000)), 400),
        ("GET", "/subjects/none/versions/00000000001" + "0" * 6_000, 42202),
        ("GET", "/subjects/none/versions/" + "9" * 6_000, 42202),
        ("GET", "/schemas/ids/1" + "0" * 6_000, 40403),
        ("GET", "/subjects/%ff%ed%a0%80/versions", 40401),
    ],
)
def test_addresses_may_be_anything(registry: Registry, method: str, path: str, code: int) -> None:
    assert registry.refused(method, path) == code


def test_an_id_counts_with_all_its_digits(registry: Registry, subject: str) -> None:
    registry.register(subject, record(A))  # so that there is an id 1
    assert registry.refused("GET", "/schemas/ids/000000000017777777") == 40403


@pytest.mark.parametrize(
    "body",
    [
        said('"string"', HALF_A_PAIR),
        said(HALF_A_PAIR),
        said(record(name="a" + HALF_A_PAIR)),
        said(f'{{"type":"record","name":"a","doc":"{HALF_A_PAIR}","fields":[]}}'),
        said({"type": "enum", "name": "e", "symbols": [HALF_A_PAIR]}),
        said('"string"', id=float("inf")),
        said('"string"', version=float("inf")),
        said('"string"', id=2**31),
        said('"string"', references=[{"name": "a", "subject": "b", "version": float("inf")}]),
        said('"string"', references=[{"name": HALF_A_PAIR, "subject": "b", "version": 1}]),
    ],
)
def test_what_cannot_be_kept_is_refused(registry: Registry, subject: str, body: dict[str, object]) -> None:
    for path in (f"/subjects/{subject}/versions", f"/subjects/{subject}"):
        assert registry.refused("POST", path, body) == 42201


def test_a_name_of_a_reference_is_text(registry: Registry, subject: str) -> None:
    registry.register(subject, record(A))
    for name, of in ((HALF_A_PAIR, subject), ("a", HALF_A_PAIR)):
        body = said('"string"', references=[{"name": name, "subject": of, "version": 1}])
        assert registry.refused("POST", f"/subjects/{subject}-user/versions", body) == 42201


@pytest.mark.parametrize(
    "body", [{}, {"compatibility": None}, {"normalize": True}, {"compatibility": "FULL", "normalize": True}]
)
def test_a_level_that_is_not_said_is_not_set(registry: Registry, subject: str, body: object) -> None:
    before = registry.get("/config")
    for path in ("/config", f"/config/{subject}"):
        assert registry.refused("PUT", path, body) == 42203
    assert registry.get("/config") == before
    assert registry.refused("GET", f"/config/{subject}") == 40408


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/nothing", b"", b"404"),
        ("/subjects/none/versions", b"", b"404"),
        ("/subjects", b"X: " + b"x" * 20_000 + b"\r\n", b"431"),
    ],
)
def test_an_error_has_no_body_where_none_is_wanted(
    broker: Broker, caplog: pytest.LogCaptureFixture, path: str, more: bytes, status: bytes
) -> None:
    head = f"HEAD {path} HTTP/1.1\r\nHost: x\r\n".encode() + more + b"\r\n"
    last = b"GET /subjects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(broker.addresses[0], timeout=20) as connection:
        connection.sendall(head + last)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    first, _, second = received.partition(b"\r\n\r\n")
    assert first.split()[1] == status
    # The next one is answered, unless this one was too much.
    assert second.startswith(b"HTTP/1.1 200") or (not second and status == b"431")
    assert not caplog.records


@pytest.mark.parametrize(
    "value",
    [
        '{"subject": "x", "version": 1e999, "id": 1, "schema": "{}"}',
        '{"subject": "x", "version": 1, "id": 1e999, "schema": "{}"}',
        '{"subject": "x", "version": 1, "id": ' + "9" * 4_300 + ', "schema": "{}"}',
        '{"subject": "x", "version": 1, "id": 5, "schema": "{}", "references": [{"version": 1e999}]}',
        '{"subject": "\\ud800", "version": 1, "id": 5, "schema": "\\ud800"}',
        '{"subject": "x", "version": 1, "id": 5, "schema": ' + "[" * 5_000,
    ],
)
def test_no_record_takes_the_registry_down(value: str) -> None:
    key = json.dumps({"keytype": "SCHEMA", "subject": "x", "version": 1, "magic": 1})
    endless = '{"keytype": "SCHEMA", "subject": "x", "version": 1e999, "magic": 1}'
    with Broker() as broker:
        registry = Registry(broker.bootstrap)
        with registry.http, Caller(broker.addresses[0]) as caller:
            registry.register("before", record(A))
            for words in ((key, value), (endless, value)):
                line = " ".join(quoted(word.encode()) for word in words)
                assert caller.ask(f"PRODUCE _schemas {line}").startswith("OK")
            assert "before" in registry.get("/subjects")
            registry.get("/schemas")
            assert 1 < registry.register("after", record(B)) < 10


def test_ids_end_somewhere() -> None:
    with Broker() as broker:
        registry = Registry(broker.bootstrap)
        with registry.http:
            registry.ask("PUT", "/mode/last", {"mode": "IMPORT"})
            registry.register("last", record(A), id=2**31 - 1, version=1)
            assert registry.refused("POST", "/subjects/next/versions", said(record(B))) == 50001
            assert registry.register("next", record(A)) == 2**31 - 1


@pytest.fixture
def thinking(broker: Broker) -> Thinking:
    assert broker._doors is not None
    return broker._doors.keep(Thinking)


@contextmanager
def busy(thinking: Thinking, size: int) -> Iterator[None]:
    """The thread for what has this size has something else to do."""
    is_busy, is_enough = Event(), Event()

    def work() -> bool:
        is_busy.set()
        return is_enough.wait(60)

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(asyncio.run, thinking.do(work, size))
        assert is_busy.wait(20)
        try:
            yield
        finally:
            is_enough.set()
        assert working.result()


def test_small_schemas_do_not_wait_for_large_ones(
    broker: Broker, registry: Registry, thinking: Thinking, subject: str
) -> None:
    large = record(A) | {"doc": "x" * LARGE}
    other = Registry(broker.bootstrap)
    with other.http, ThreadPoolExecutor(1) as threads:
        with busy(thinking, LARGE):
            waiting = threads.submit(other.register, f"{subject}-large", large)
            registry.register(subject, record(A))
            registry.register(subject, record(A, B_WITH_DEFAULT))
            assert not waiting.done()
        waiting.result()


def test_who_waits_too_long_is_told(
    registry: Registry, thinking: Thinking, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy(thinking, 1):
        monkeypatch.setattr(api, "ANSWER_SECONDS", 0.05)
        assert registry.refused("POST", f"/subjects/{subject}/versions", said(record(A))) == 50002
    monkeypatch.undo()
    assert subject not in registry.get("/subjects")
    registry.register(subject, record(A))


def test_not_everybody_may_wait() -> None:
    async def crowd() -> None:
        is_enough = Event()
        lane = Lane("crowd", waiting_max=2)
        with lane.thread:
            working = [asyncio.create_task(lane.do(lambda: is_enough.wait(60))) for _ in range(2)]
            await asyncio.sleep(0)  # they stand in line
            try:
                with pytest.raises(Busy):
                    await lane.do(bool)
            finally:
                is_enough.set()
            assert await asyncio.gather(*working) == [True, True]
            assert await lane.do(bool) is False

    asyncio.run(crowd())


def test_only_small_schemas_are_kept_parsed() -> None:
    small, large = json.dumps(record(A)), json.dumps(record(A) | {"doc": "x" * KEPT_SIZE_MAX})
    assert parse(SchemaType.AVRO, small, ()) is parse(SchemaType.AVRO, small, ())
    assert parse(SchemaType.AVRO, large, ()) is not parse(SchemaType.AVRO, large, ())


def test_there_is_an_end_to_what_a_schema_is_built_on() -> None:
    image = Image()
    for number in range(1, 11):
        text = Schema(SchemaType.AVRO, f"{number}" + "x" * 1_000_000)
        image.apply(*registered(Registered("a", number, number, text)))
    uses = tuple(Reference(str(number), "a", number) for number in range(1, 11))
    assert len(referenced(Schema(SchemaType.AVRO, "", uses[:5]), image)) == 5
    with pytest.raises(InvalidSchema, match="at most"):
        referenced(Schema(SchemaType.AVRO, "", uses), image)


def test_a_long_list_of_differences_is_cut(registry: Registry, subject: str) -> None:
    def message(kind: str) -> str:
        return (
            f'syntax = "proto3"; message A {{ {" ".join(f"{kind} f{n} = {n};" for n in range(1, 1_000))} }}'
        )

    registry.register(subject, message("string"), "PROTOBUF")
    path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
    answer = registry.ask("POST", path, said(message("int32"), "PROTOBUF"))[1]
    assert not answer["is_compatible"] and len(answer["messages"]) == 100


def test_a_topic_that_forgets_is_not_written_to() -> None:
    with Broker() as broker:
        registry = Registry(broker.bootstrap)
        with registry.http, Caller(broker.addresses[0]) as caller:
            assert caller.ask("PRODUCE _schemas k v").startswith("OK")  # which made it, as any other topic
            assert registry.refused("POST", "/subjects/a/versions", said(record(A))) == 50001
            assert registry.get("/subjects") == []


def test_many_may_be_the_first() -> None:
    def register(number: int) -> int:
        registry = Registry(broker.bootstrap)
        with registry.http:
            return registry.register("a", record(B_WITH_DEFAULT | {"name": f"f{number}"}))

    with Broker() as broker, ThreadPoolExecutor(16) as threads:
        ids = list(threads.map(register, range(16)))
    assert sorted(ids) == list(range(1, 17))
