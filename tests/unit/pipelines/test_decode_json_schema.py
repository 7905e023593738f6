from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.decode_json_schema import JsonSchemaRows
from ottla.pipelines.decode_rows import BadRecord
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.json_schema_types import spark_type
from tests.unit.pipelines.registry_server import RegistryServer, framed

ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "amount": {"type": "number", "minimum": 0}},
    "required": ["id"],
}


def test_a_record_that_follows_its_schema_is_good_and_others_say_where_they_do_not(
    registry: RegistryServer,
) -> None:
    identifier = registry.register("orders", ORDER, "JSON")
    rows = JsonSchemaRows(registry.url)
    assert rows.row(framed(identifier, b'{"id": 1, "amount": 2.5}')) is None
    with pytest.raises(BadRecord, match=r"at \$\.amount: -1 is less than the minimum of 0"):
        rows.row(framed(identifier, b'{"id": 1, "amount": -1}'))
    with pytest.raises(BadRecord, match="'id' is a required property"):
        rows.row(framed(identifier, b"{}"))
    with pytest.raises(BadRecord, match="is not JSON"):
        rows.row(framed(identifier, b"{"))
    with pytest.raises(BadRecord, match="which is AVRO and not JSON"):
        rows.row(framed(registry.register("other", '"string"'), b"{}"))


def test_references_are_followed(registry: RegistryServer) -> None:
    registry.register("customer", {"type": "object", "required": ["name"]}, "JSON")
    schema = {"type": "object", "properties": {"by": {"$ref": "customer.json"}}}
    references = [{"name": "customer.json", "subject": "customer", "version": 1}]
    identifier = registry.register("sales", schema, "JSON", references)
    rows = JsonSchemaRows(registry.url)
    assert rows.row(framed(identifier, b'{"by": {"name": "ada"}}')) is None
    with pytest.raises(BadRecord, match="'name' is a required property"):
        rows.row(framed(identifier, b'{"by": {}}'))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"type": "integer"}, "bigint"),
        ({"type": ["null", "number"]}, "double"),
        ({"type": "string", "format": "date-time"}, "string"),
        ({"enum": ["a", "b"]}, "string"),
        ({"type": ["integer", "string"]}, "string"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "bigint"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        ({"type": "array"}, "string"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map<string,double>"),
        ({"type": "object"}, "string"),
        ({"$ref": "#/definitions/Point"}, "struct<x:double>"),
        ({"$ref": "point.json#/definitions/Point"}, "struct<y:bigint>"),
        ({"$ref": "#"}, "string"),
        (True, "string"),
    ],
)
def test_types_of_a_schema_and_text_for_what_it_leaves_open(schema: Any, expected: str) -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    other = {"definitions": {"Point": {"type": "object", "properties": {"y": {"type": "integer"}}}}}
    root = {"type": "object", "properties": {"field": schema}, "definitions": {"Point": point}}
    found = spark_type(root, {"point.json": other})
    assert found.simpleString() == f"struct<field:{expected}>"


def test_a_schema_without_columns_and_a_reference_to_nothing_are_refused() -> None:
    with pytest.raises(PipelineError, match="no object with properties"):
        spark_type({"type": "string"}, {})
    with pytest.raises(PipelineError, match="refers to #/definitions/Gone, which is not there"):
        spark_type({"type": "object", "properties": {"a": {"$ref": "#/definitions/Gone"}}}, {})
    with pytest.raises(PipelineError, match="not among its references"):
        spark_type({"type": "object", "properties": {"a": {"$ref": "gone.json"}}}, {})
