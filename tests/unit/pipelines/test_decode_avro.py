from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from ottla.pipelines.avro_types import arrow_type
from ottla.pipelines.decode_avro import AvroRows, _parsed, _texts
from ottla.pipelines.decode_rows import decode_array
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry import Registry, RegistryUnavailable
from ottla.pipelines.registry import _registries as registries
from tests.unit.pipelines.registry_server import RegistryServer, framed

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": ["null", "string"]}],
}


def encoded(schema: Any, value: Any, identifier: int) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return framed(identifier, body.getvalue())


def decoded(registry: RegistryServer, subject: str, records: list[bytes | None]) -> list[dict[str, Any]]:
    """Values and errors of records, as a flow over this subject has them."""
    texts = _texts(registry.url, Registry(registry.url).latest(subject))
    wire_type = arrow_type(*_parsed(texts, logical_types=True))
    rows = AvroRows(registry.url, texts)
    result: list[dict[str, Any]] = decode_array(
        pa.array(records, pa.binary()), rows, wire_type, _stored(wire_type)
    ).to_pylist()
    return result


def _stored(wire_type: pa.DataType) -> pa.DataType:
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

    return to_arrow_type(from_arrow_type(wire_type, prefer_timestamp_ntz=True), timezone="UTC")


def test_records_become_rows_and_a_record_without_value_stays_one(registry: RegistryServer) -> None:
    identifier = registry.register("orders", ORDER)
    records = [encoded(ORDER, {"id": 1, "customer": "ada"}, identifier), None]
    assert decoded(registry, "orders", records) == [
        {"value": {"id": 1, "customer": "ada"}, "error": None},
        {"value": None, "error": None},
    ]


def test_a_record_of_an_older_schema_is_read_by_the_newest(registry: RegistryServer) -> None:
    old = {**ORDER, "fields": [{"name": "id", "type": "int"}]}
    first = registry.register("orders", old)
    extended = [*ORDER["fields"][:1], {"name": "state", "type": "string", "default": "new"}]
    registry.register("orders", {**ORDER, "fields": extended})
    assert decoded(registry, "orders", [encoded(old, {"id": 7}, first)]) == [
        {"value": {"id": 7, "state": "new"}, "error": None}
    ]


def test_a_bad_record_says_why_and_costs_only_itself(registry: RegistryServer) -> None:
    identifier = registry.register("orders", ORDER)
    other = registry.register("others", '{"type": "object"}', "JSON")
    good = encoded(ORDER, {"id": 1, "customer": None}, identifier)
    rows = decoded(
        registry,
        "orders",
        [b"\1\0\0\0\1", good, good[:-1], good + b"more", framed(99, b""), framed(other, b"")],
    )
    assert [row["error"] is None for row in rows] == [False, True, False, False, False, False]
    assert rows[0]["error"] == "starts with byte 1 instead of the magic byte 0"
    assert rows[2]["error"].startswith("is not Avro of its schema: ")
    assert rows[3]["error"] == "goes on after the end of its Avro record"
    assert "has no schema id 99" in rows[4]["error"]
    assert rows[5]["error"] == f"has schema id {other}, which is JSON and not AVRO"


def test_a_registry_that_is_gone_fails_the_batch_instead_of_blaming_records(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = "http://127.0.0.1:1"
    monkeypatch.setitem(registries, nobody, Registry(nobody, pauses=()))
    registry.register("orders", ORDER)
    texts = _texts(registry.url, Registry(registry.url).latest("orders"))
    with pytest.raises(RegistryUnavailable):
        AvroRows(nobody, texts).row(framed(1, b"\2\0"))


def test_every_type_has_a_column(registry: RegistryServer) -> None:
    schema = {
        "type": "record",
        "name": "Everything",
        "fields": [
            {"name": "flag", "type": "boolean"},
            {"name": "small", "type": "float"},
            {"name": "raw", "type": "bytes"},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "sizes", "type": {"type": "map", "values": "int"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            },
            {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "number", "type": ["null", "int", "long"]},
            {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": ORDER["fields"]}},
            {"name": "again", "type": ["null", "Inner"]},
        ],
    }
    value = {
        "flag": True,
        "small": 0.5,
        "raw": b"\0\1",
        "state": "OLD",
        "hash": b"ab",
        "tags": ["x"],
        "sizes": {"a": 1},
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
        "local": datetime(2026, 1, 2, 3, 4, 5, 6),
        "price": Decimal("12.34"),
        "uuid": "6bdbdadd-ca1d-4233-b997-0bed19d24fa7",
        "number": 2**40,
        "inner": {"id": 1, "customer": None},
        "again": {"id": 2, "customer": "b"},
    }
    identifier = registry.register("everything", schema)
    (row,) = decoded(registry, "everything", [encoded(schema, value, identifier)])
    assert row == {"value": {**value, "sizes": [("a", 1)]}, "error": None}


def test_types_of_other_subjects_are_found(registry: RegistryServer) -> None:
    inner = {"type": "record", "name": "shop.Customer", "fields": [{"name": "name", "type": "string"}]}
    outer = {"type": "record", "name": "shop.Sale", "fields": [{"name": "by", "type": "shop.Customer"}]}
    registry.register("customer", inner)
    references = [{"name": "shop.Customer", "subject": "customer", "version": 1}]
    identifier = registry.register("sale", outer, references=references)
    whole = {**outer, "fields": [{"name": "by", "type": inner}]}
    (row,) = decoded(registry, "sale", [encoded(whole, {"by": {"name": "ada"}}, identifier)])
    assert row["value"] == {"by": {"name": "ada"}}


def test_a_value_that_is_no_record_is_one_column(registry: RegistryServer) -> None:
    identifier = registry.register("keys", '"string"')
    (row,) = decoded(registry, "keys", [encoded("string", "ada", identifier)])
    assert row == {"value": "ada", "error": None}


def test_a_decimal_that_does_not_fit_is_a_bad_record(registry: RegistryServer) -> None:
    def price(precision: int) -> dict[str, Any]:
        kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}
        return {"type": "record", "name": "Price", "fields": [{"name": "price", "type": kind}]}

    wide = registry.register("prices", price(10))
    narrow = registry.register("prices", price(3))
    rows = decoded(
        registry,
        "prices",
        [
            encoded(price(10), {"price": Decimal("12345.67")}, wide),
            encoded(price(3), {"price": Decimal("1.23")}, narrow),
        ],
    )
    assert rows[0]["value"] is None
    assert rows[0]["error"] is not None
    assert rows[1] == {"value": {"price": Decimal("1.23")}, "error": None}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (["null", "string", "long"], "union of 2 types"),
        (
            {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]},
            "Node contains itself",
        ),
    ],
)
def test_what_has_no_columns_is_refused_when_the_flow_is_built(kind: Any, reason: str) -> None:
    schema = {"type": "record", "name": "Root", "fields": [{"name": "field", "type": kind}]}
    named: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named_schemas=named)
    with pytest.raises(PipelineError, match=reason):
        arrow_type(parsed, named)
