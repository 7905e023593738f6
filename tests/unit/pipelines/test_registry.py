from __future__ import annotations

import base64

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry import (
    Reference,
    Registry,
    RegistryUnavailable,
    Schema,
    UnknownSchema,
    cached_schema,
)
from tests.unit.pipelines.registry_server import RegistryServer

AT_ONCE = (0.0, 0.0)


def test_a_schema_is_found_by_its_id(registry: RegistryServer) -> None:
    identifier = registry.register("orders-value", '"string"')
    assert Registry(registry.url).by_id(identifier) == Schema(identifier, "AVRO", '"string"')


def test_the_latest_version_of_a_subject_is_found_with_its_references(registry: RegistryServer) -> None:
    registry.register("a/b c", "first", "JSON")
    references = [{"name": "other.json", "subject": "other", "version": 3}]
    identifier = registry.register("a/b c", "second", "JSON", references)
    found = Registry(registry.url).latest("a/b c")
    assert found == Schema(identifier, "JSON", "second", (Reference("other.json", "other", 3),))
    assert Registry(registry.url).version("a/b c", 1).text == "first"


def test_a_schema_that_does_not_exist_is_told_from_a_registry_in_trouble(registry: RegistryServer) -> None:
    with pytest.raises(UnknownSchema, match="has no schema id 9: Schema not found"):
        Registry(registry.url, pauses=AT_ONCE).by_id(9)
    with pytest.raises(UnknownSchema, match=r"Subject 'nobody' not found\."):
        Registry(registry.url, pauses=AT_ONCE).latest("nobody")
    assert len(registry.requests) == 2


def test_a_registry_in_trouble_is_asked_again(registry: RegistryServer) -> None:
    identifier = registry.register("orders-value", '"string"')
    registry.instead = [(500, {"message": "not now"}), (429, {"message": "slowly"})]
    assert Registry(registry.url, pauses=AT_ONCE).by_id(identifier).text == '"string"'
    assert len(registry.requests) == 3


def test_one_that_stays_in_trouble_is_given_up(registry: RegistryServer) -> None:
    registry.instead = [(503, {"message": "not now"})] * 3
    with pytest.raises(RegistryUnavailable, match="503 not now"):
        Registry(registry.url, pauses=AT_ONCE).by_id(1)
    assert len(registry.requests) == 3


def test_one_that_refuses_is_not_asked_again(registry: RegistryServer) -> None:
    registry.instead = [(401, {"message": "who are you"})]
    with pytest.raises(RegistryUnavailable, match="refuses schema id 1: 401 who are you"):
        Registry(registry.url, pauses=AT_ONCE).by_id(1)
    assert len(registry.requests) == 1


def test_nobody_there_is_said_so() -> None:
    with pytest.raises(RegistryUnavailable, match="gives no schema id 1"):
        Registry("http://127.0.0.1:1", pauses=AT_ONCE).by_id(1)


def test_a_name_and_password_in_the_address_are_sent_and_not_shown(registry: RegistryServer) -> None:
    identifier = registry.register("orders-value", '"string"')
    known = Registry(registry.url.replace("http://", "http://ada:s%40fe@"))
    known.by_id(identifier)
    sent = registry.requests[0][1]["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"ada:s@fe"
    assert known.address == registry.url


def test_a_schema_is_asked_for_once_also_if_it_does_not_exist(registry: RegistryServer) -> None:
    identifier = registry.register("orders-value", '"string"')
    for _ in range(3):
        assert cached_schema(registry.url, identifier).text == '"string"'
        with pytest.raises(UnknownSchema):
            cached_schema(registry.url, 77)
    assert len(registry.requests) == 2


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(PipelineError, match="no address of a schema registry"):
        Registry("localhost:8081")
