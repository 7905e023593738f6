"""The schema registry, over HTTP, on a broker that runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from ottla import Broker
from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.core.principal import ANONYMOUS
from ottla.gateways.quoting import quoted
from ottla.gateways.registry.asked import Query
from tests.unit.gateways.conftest import QUICK, Caller
from tests.unit.server.authorization.conftest import GUARDED, allowing

JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class Registry:
    def __init__(self, bootstrap: str) -> None:
        self.http = httpx.Client(base_url=f"http://{bootstrap}", timeout=20, headers=JSON)

    def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        body = None if value is None else json.dumps(value).encode()
        answer = self.http.request(method, path, content=body)
        assert answer.headers["content-type"] == JSON["Content-Type"]
        return answer.status_code, answer.json()

    def get(self, path: str) -> Any:
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer

    def refused(self, method: str, path: str, value: Any = None) -> int:
        """The code of the error that is the answer."""
        status, answer = self.ask(method, path, value)
        code: int = answer["error_code"]
        assert str(code).startswith(str(status)) and answer["message"]
        return code

    def register(self, subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> int:
        status, answer = self.ask("POST", f"/subjects/{subject}/versions", said(schema, kind, **more))
        assert status == 200, answer
        number: int = answer["id"]
        return number


def said(schema: Any, kind: str = "AVRO", **more: Any) -> dict[str, Any]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind}) | more


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


A = {"name": "a", "type": "string"}
B = {"name": "b", "type": "int"}
B_WITH_DEFAULT = {"name": "b", "type": "int", "default": 0}


@pytest.fixture
def registry(broker: Broker) -> Iterator[Registry]:
    registry = Registry(broker.bootstrap)
    with registry.http:
        yield registry


@pytest.fixture
def subject() -> str:
    return f"s-{uuid4().hex[:12]}"


def test_a_schema_is_registered_once_and_found_in_every_way(registry: Registry, subject: str) -> None:
    schema_id = registry.register(subject, record(A))
    assert registry.register(subject, record(A)) == schema_id
    text = registry.get(f"/schemas/ids/{schema_id}")["schema"]
    assert json.loads(text) == record(A)
    version = {"subject": subject, "version": 1, "id": schema_id, "schema": text}
    assert registry.get(f"/subjects/{subject}/versions") == [1]
    for name in ("1", "latest", "-1"):
        assert registry.get(f"/subjects/{subject}/versions/{name}") == version
    assert registry.ask("POST", f"/subjects/{subject}", said(record(A))) == (200, version)
    assert subject in registry.get("/subjects")
    assert registry.get(f"/schemas/ids/{schema_id}/versions") == [{"subject": subject, "version": 1}]
    assert registry.get(f"/schemas/ids/{schema_id}/subjects") == [subject]
    assert registry.get(f"/schemas/ids/{schema_id}/schema") == record(A), "as it stands, not in a string"
    assert registry.get(f"/subjects/{subject}/versions/1/schema") == record(A)


def test_layout_makes_no_other_schema(registry: Registry, subject: str) -> None:
    first = registry.register(subject, json.dumps(record(A), indent=4))
    assert registry.register(subject, record(A)) == first
    assert registry.get(f"/subjects/{subject}/versions") == [1]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("AVRO", record(A)),
        ("JSON", {"type": "object", "properties": {"a": {"type": "string"}}}),
        ("PROTOBUF", 'syntax = "proto3";\nmessage R {\n  string a = 1;\n}\n'),
    ],
)
def test_every_kind_is_kept_and_told(registry: Registry, subject: str, kind: str, schema: Any) -> None:
    schema_id = registry.register(subject, schema, kind)
    found = registry.get(f"/schemas/ids/{schema_id}")
    assert found.get("schemaType", "AVRO") == kind
    assert registry.register(subject, found["schema"], kind) == schema_id
    assert sorted(registry.get("/schemas/types")) == ["AVRO", "JSON", "PROTOBUF"]


def test_a_protobuf_schema_is_given_compiled(registry: Registry, subject: str) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    text = 'syntax = "proto3"; package shop; message Order { string id = 1; }'
    schema_id = registry.register(subject, text, "PROTOBUF")
    compiled = registry.get(f"/schemas/ids/{schema_id}?format=serialized")["schema"]
    file = FileDescriptorProto.FromString(base64.b64decode(compiled))
    assert (file.package, [each.name for each in file.message_type]) == ("shop", ["Order"])


def test_what_a_reader_could_not_read_is_refused(registry: Registry, subject: str) -> None:
    registry.register(subject, record(A))
    assert registry.refused("POST", f"/subjects/{subject}/versions", said(record(A, B))) == 40901
    assert registry.get(f"/subjects/{subject}/versions") == [1]
    registry.register(subject, record(A, B_WITH_DEFAULT))
    path = f"/compatibility/subjects/{subject}/versions"
    assert registry.ask("POST", f"{path}/latest", said(record(A, B)))[1] == {"is_compatible": True}
    status, answer = registry.ask("POST", f"{path}/1?verbose=true", said(record(A, B)))
    assert status == 200 and not answer["is_compatible"] and "b" in answer["messages"][0]
    assert registry.refused("POST", f"{path}/9", said(record(A))) == 40402
    assert registry.refused("POST", "/compatibility/subjects/new/versions/1", said(record(A))) == 40402
    assert registry.ask("POST", "/compatibility/subjects/new/versions/latest", said(record(B)))[1] == {
        "is_compatible": True
    }


def test_a_level_says_what_is_compared(registry: Registry, subject: str) -> None:
    level = f"/config/{subject}"
    registry.register(subject, record(A))
    assert registry.refused("GET", level) == 40408
    assert registry.get(f"{level}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert registry.ask("PUT", level, {"compatibility": "FORWARD"}) == (200, {"compatibility": "FORWARD"})
    assert registry.get(level) == {"compatibilityLevel": "FORWARD"}
    registry.register(subject, record(A, B))  # who has the old one reads past it
    assert registry.refused("POST", f"/subjects/{subject}/versions", said(record(B))) == 40901
    assert registry.ask("PUT", level, {"compatibility": "none"})[0] == 200
    registry.register(subject, record(B))
    assert registry.refused("PUT", level, {"compatibility": "SOMEWHAT"}) == 42203
    assert registry.ask("DELETE", level) == (200, {"compatibilityLevel": "NONE"})
    assert registry.refused("DELETE", level) == 40401


def test_all_versions_count_where_that_is_said(registry: Registry, subject: str) -> None:
    registry.register(subject, record(A))
    registry.register(subject, record(A, B_WITH_DEFAULT))
    registry.ask("PUT", f"/config/{subject}", {"compatibility": "BACKWARD_TRANSITIVE"})
    assert registry.refused("POST", f"/subjects/{subject}/versions", said(record(A, B))) == 40901
    registry.ask("PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})
    registry.register(subject, record(A, B))


def test_a_schema_is_built_on_others(registry: Registry, subject: str) -> None:
    used, user = f"{subject}-used", f"{subject}-user"
    inner = registry.register(used, record(A, name="inner"))
    outer = record({"name": "i", "type": "inner"}, name="outer")
    assert registry.refused("POST", f"/subjects/{user}/versions", said(outer)) == 42201
    references = [{"name": "inner", "subject": used, "version": 1}]
    outer_id = registry.register(user, outer, references=references)
    assert registry.get(f"/schemas/ids/{outer_id}")["references"] == references
    assert registry.get(f"/subjects/{used}/versions/1/referencedby") == [outer_id]
    assert registry.refused("DELETE", f"/subjects/{used}") == 42206
    assert inner != outer_id
    missing = [{"name": "inner", "subject": used, "version": 7}]
    assert registry.refused("POST", f"/subjects/{user}/versions", said(outer, references=missing)) == 42201


def test_versions_and_subjects_are_deleted_in_two_steps(registry: Registry, subject: str) -> None:
    name = f"r{uuid4().hex}"  # which no other subject has
    first = registry.register(subject, record(A, name=name))
    registry.register(subject, record(A, B_WITH_DEFAULT, name=name))
    path = f"/subjects/{subject}"
    assert registry.refused("DELETE", f"{path}/versions/1?permanent=true") == 40407
    assert registry.ask("DELETE", f"{path}/versions/1") == (200, 1)
    assert registry.refused("DELETE", f"{path}/versions/1") == 40406
    assert registry.refused("GET", f"{path}/versions/1") == 40402
    assert registry.get(f"{path}/versions/1?deleted=true")["deleted"] is True
    assert registry.get(f"{path}/versions?deleted=true") == [1, 2]
    assert registry.get(f"{path}/versions?deletedOnly=true") == [1]
    assert registry.get(f"/schemas/ids/{first}")["schema"], "what was written with it is still read"
    assert registry.ask("DELETE", path) == (200, [2])
    assert registry.refused("GET", f"{path}/versions") == 40401
    assert subject not in registry.get("/subjects") and subject in registry.get("/subjects?deleted=true")
    assert registry.refused("DELETE", path) == 40404
    assert registry.ask("DELETE", f"{path}?permanent=true") == (200, [1, 2])
    assert registry.refused("GET", f"/schemas/ids/{first}") == 40403
    assert registry.refused("DELETE", path) == 40401


def test_a_mode_keeps_writers_out(registry: Registry, subject: str) -> None:
    registry.register(subject, record(A))
    assert registry.get("/mode") == {"mode": "READWRITE"}
    assert registry.refused("GET", f"/mode/{subject}") == 40409
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert registry.refused("POST", f"/subjects/{subject}/versions", said(record(B_WITH_DEFAULT))) == 42205
    assert registry.refused("DELETE", f"/subjects/{subject}") == 42205
    assert registry.refused("PUT", f"/mode/{subject}", {"mode": "SOMEHOW"}) == 42204
    assert registry.refused("PUT", f"/mode/{subject}", {"mode": "FORWARD"}) == 42204, "for all or for none"
    assert registry.ask("DELETE", f"/mode/{subject}") == (200, {"mode": "READONLY"})
    other = f"{subject}-imported"
    assert registry.ask("PUT", f"/mode/{other}", {"mode": "IMPORT"})[0] == 200
    assert registry.register(other, record(A, name=f"r{uuid4().hex}"), id=123_456, version=5) == 123_456
    assert registry.get(f"/subjects/{other}/versions") == [5]


def test_names_may_have_anything_in_them(registry: Registry, subject: str) -> None:
    name = f"{subject}/a b:ü?#%"
    registry.register(quote(name, safe=""), record(A))
    assert registry.get(f"/subjects/{quote(name, safe='')}/versions/1")["subject"] == name
    assert name in registry.get(f"/subjects?subjectPrefix={quote(subject)}")


def test_lists_are_given_in_parts(registry: Registry, subject: str) -> None:
    for number in range(5):
        registry.register(f"{subject}-{number}", record(A))
    names = [f"{subject}-{number}" for number in range(5)]
    assert registry.get(f"/subjects?subjectPrefix={subject}") == names
    assert registry.get(f"/subjects?subjectPrefix={subject}&offset=1&limit=2") == names[1:3]
    assert len(registry.get(f"/schemas?subjectPrefix={subject}&limit=2")) == 2
    found = registry.get(f"/schemas?subjectPrefix={subject}&latestOnly=true")
    assert [each["subject"] for each in found] == names


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"\xff", 400),
        (b"{}", 42201),
        (b'{"schema": 7}', 42201),
        (b'{"schema": "{"}', 42201),
        (b'{"schema": "nothing"}', 42201),
        (b'{"schema": "\\"string\\"", "schemaType": "XML"}', 42201),
        (b'{"schema": "\\"string\\"", "schemaType": ["AVRO"]}', 42201),
        (b'{"schema": "\\"string\\"", "references": [{}]}', 42201),
        (b'{"schema": "\\"string\\"", "references": 7}', 42201),
        (b'{"schema": "\\"string\\"", "id": "x"}', 42201),
        (b'{"schema": "\\"string\\"", "id": 5}', 42205),
        (b'{"schema": "\\"string\\"", "ruleSet": {"domainRules": []}}', 42201),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    registry: Registry, subject: str, body: bytes, code: int
) -> None:
    answer = registry.http.post(f"/subjects/{subject}/versions", content=body)
    assert answer.json()["error_code"] == code, answer.text
    assert subject not in registry.get("/subjects")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/subjects/none/versions", 40401),
        ("GET", "/subjects/none/versions/1", 40401),
        ("GET", "/subjects/none/versions/first", 42202),
        ("GET", "/schemas/ids/999999", 40403),
        ("GET", "/schemas/ids/99999999999999999999999999", 40403),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/schemas/somewhere", 404),
        ("GET", "/associations/resources/a/b", 404),
        ("GET", "/subjects?limit=many", 400),
        ("PATCH", "/subjects", 404),
        ("POST", "/schemas", 404),
        ("DELETE", "/subjects/none", 40401),
    ],
)
def test_what_is_not_there_has_a_code(registry: Registry, method: str, path: str, code: int) -> None:
    assert registry.refused(method, path) == code


def test_a_web_page_cannot_write(registry: Registry, subject: str) -> None:
    path, body = f"/subjects/{subject}/versions", json.dumps(said(record(A))).encode()
    plain = registry.http.post(path, content=body, headers={"Content-Type": "text/plain"})
    assert plain.json()["error_code"] == 415
    lured = registry.http.post(path, content=body, headers={"Origin": "http://elsewhere"})
    assert lured.status_code == 403
    assert registry.http.delete("/subjects/x", headers={"Origin": "http://elsewhere"}).status_code == 403
    assert subject not in registry.get("/subjects")


def test_many_writers_at_once_get_one_id_each(registry: Registry, subject: str) -> None:
    def register(number: int) -> int:
        return registry.register(f"{subject}-{number % 3}", record(A, name=f"x{subject[2:]}{number % 5}"))

    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    try:
        with ThreadPoolExecutor(8) as threads:
            ids = list(threads.map(register, range(30)))
    finally:
        registry.ask("PUT", "/config", {"compatibility": "BACKWARD"})
    assert len(set(ids)) == 5
    assert all(ids[number] == ids[number % 5] for number in range(30))


def test_schemas_are_in_a_topic_and_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, properties=QUICK) as broker:
        before = Registry(broker.bootstrap)
        with before.http:
            assert before.get("/subjects") == []
            assert "_schemas" not in broker.node.image.topics, "asking makes nothing"
            schema_id = before.register("a", record(A))
            before.ask("PUT", "/config", {"compatibility": "FULL"})
        with Caller(broker.addresses[0]) as caller:
            (line, _) = caller.ask_all("CONSUME _schemas 0 0 1")
            assert "SCHEMA" in line
    with Broker(data_dir=tmp_path, properties=QUICK) as broker:
        after = Registry(broker.bootstrap)
        with after.http:
            assert after.register("a", record(A)) == schema_id
            assert after.get("/config") == {"compatibilityLevel": "FULL"}
            assert after.register("b", record(B)) == schema_id + 1


def test_what_another_writes_into_the_topic_counts_at_once(
    broker: Broker, registry: Registry, subject: str
) -> None:
    registry.register(f"{subject}-first", record(A))
    key = json.dumps({"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1})
    value = json.dumps({"subject": subject, "version": 1, "id": 777_777, "schema": '"bytes"'})
    with Caller(broker.addresses[0]) as caller:
        for words in ((key, value), ("no key of ours", "{")):
            line = " ".join(quoted(word.encode()) for word in words)
            assert caller.ask(f"PRODUCE _schemas {line}").startswith("OK")
    assert registry.get(f"/subjects/{subject}/versions/1")["id"] == 777_777
    assert registry.register(f"{subject}-next", record(B, name=f"r{uuid4().hex}")) == 777_778


def test_access_rules_hold_for_the_registry_too() -> None:
    topic = (ResourceType.TOPIC, "_schemas")
    read, write = (Operation.READ, *topic), (Operation.WRITE, *topic)
    with Broker(properties=GUARDED) as broker:
        authorizer = broker.node.authorizer
        assert authorizer is not None
        registry = Registry(broker.bootstrap)
        with registry.http:
            body = said(record(A))
            assert registry.refused("GET", "/subjects") == 40301
            assert registry.refused("POST", "/subjects/a/versions", body) == 40301
            authorizer.load(allowing(str(ANONYMOUS), read))
            assert registry.get("/subjects") == []
            assert registry.refused("POST", "/subjects/a/versions", body) == 40301
            authorizer.load(
                allowing(str(ANONYMOUS), read, write, (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME))
            )
            registry.register("a", record(A))
            authorizer.load(allowing(str(ANONYMOUS), write))
            assert registry.refused("GET", "/schemas/ids/1") == 40301
            assert registry.refused("GET", "/config") == 40301


def test_a_list_has_an_end_whatever_limit_is_asked_for() -> None:
    numbers = list(range(30))
    assert Query({}).page(numbers, 10) == numbers[:10]
    assert Query({"limit": "20", "offset": "5"}).page(numbers, 10) == numbers[5:15]
    assert Query({"limit": "3"}).page(numbers, 10) == numbers[:3]
    assert Query({}).page(numbers) == numbers
