"""Decoders on real Spark: the columns they give, and which records they call bad."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fastavro
import httpx
import pytest
from google.protobuf.message_factory import GetMessageClass

from ottla import Broker
from ottla.pipelines import PipelineError, read
from ottla.pipelines.decode import Decoder, Subject
from tests.unit.pipelines.registry_server import framed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = "id long, customer string, at timestamp"


class Registry:
    """The registry of a broker."""

    def __init__(self, broker: Broker) -> None:
        self.url = f"http://{broker.bootstrap}"

    def register(self, subject: str, schema: str | dict[str, Any], kind: str = "AVRO") -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        path = f"{self.url}/subjects/{subject}/versions"
        answer = httpx.post(path, json={"schema": text, "schemaType": kind}, timeout=20)
        identifier: int = answer.raise_for_status().json()["id"]
        return identifier


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Broker() as broker:
        yield Registry(broker)


def decode(
    spark: SparkSession, decoder: Decoder, records: list[bytes | None], url: str | None = None
) -> tuple[str, list[tuple[Any, str | None]]]:
    """The type of the value, and value and error of each record."""
    from pyspark.sql import functions as F

    frame = spark.createDataFrame([(record,) for record in records], "value binary")
    decoded = decoder.decoded(F.col("value"), Subject("orders", "value", url))
    rows = decoded.add_to(frame, "decoded").select("decoded")
    kind: Any = rows.schema["decoded"].dataType
    values = [(each.decoded.value, each.decoded.error) for each in rows.collect()]
    plain = [(v.asDict(recursive=True) if hasattr(v, "asDict") else v, error) for v, error in values]
    return kind["value"].dataType.simpleString(), plain


def test_json_by_a_schema(spark: SparkSession) -> None:
    kind, rows = decode(
        spark,
        read.json(ORDER),
        [
            b'{"id": 1, "customer": "ada", "at": "2026-01-02T03:04:05Z"}',
            b'{"id": 2, "more": 1}',
            None,
            b"nope",
            b'{"id": "x"}',
            b'{"id": 1, "at": "yesterday"}',
            b"",
            b"[]",
            b"\xff",
        ],
    )
    assert kind == "struct<id:bigint,customer:string,at:timestamp>"
    first = rows[0][0]
    assert (first["id"], first["customer"]) == (1, "ada")
    assert first["at"].astimezone(UTC) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert rows[1] == ({"id": 2, "customer": None, "at": None}, None)
    assert rows[2] == (None, None)
    assert rows[3] == (None, "is not JSON of the expected schema: nope")
    assert [value for value, _ in rows[3:]] == [None] * 6
    assert all(error is not None for _, error in rows[3:])
    assert rows[8][1] == "is not UTF-8 text"


def test_csv_and_text(spark: SparkSession) -> None:
    kind, rows = decode(
        spark, read.csv("id long, name string", sep=";"), [b"1;a", b"x;a", b"1", b"1;a;b", b"", None]
    )
    assert kind == "struct<id:bigint,name:string>"
    assert rows[0] == ({"id": 1, "name": "a"}, None)
    assert [error is None for _, error in rows] == [True, False, False, False, False, True]
    assert decode(spark, read.string(), ["é".encode(), b"\xff", None]) == (
        "string",
        [("é", None), (None, "is not UTF-8 text"), (None, None)],
    )


def test_avro_of_a_registry(spark: SparkSession, registry: Registry) -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "prices", "type": {"type": "map", "values": "double"}},
            {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        ],
    }
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    identifier = registry.register("orders-value", schema)
    body = io.BytesIO()
    order = {"id": 1, "at": at, "prices": {"tea": 1.5}, "tags": ["a", None]}
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), order)
    good = framed(identifier, body.getvalue())
    kind, rows = decode(spark, read.avro(), [good, b"nope!", None], registry.url)
    assert kind == "struct<id:bigint,at:timestamp,prices:map<string,double>,tags:array<string>>"
    value, error = rows[0]
    assert error is None
    assert {**value, "at": value["at"].astimezone(UTC)} == order
    assert rows[1] == (None, "starts with byte 110 instead of the magic byte 0")
    assert rows[2] == (None, None)


def test_json_schema_of_a_registry(spark: SparkSession, registry: Registry) -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer", "minimum": 1}, "open": {}},
        "required": ["id"],
    }
    identifier = registry.register("json-value", schema, "JSON")
    records = [
        framed(identifier, b'{"id": 1, "open": {"a": [1]}}'),
        framed(identifier, b'{"id": 0}'),
        b'{"id": 1}',
        None,
    ]
    decoder = read.json_schema(registry.url, subject="json-value")
    kind, rows = decode(spark, decoder, records)
    assert kind == "struct<id:bigint,open:string>"
    assert rows[0] == ({"id": 1, "open": '{"a":[1]}'}, None)
    assert rows[1] == (None, "does not follow its JSON Schema at $.id: 0 is less than the minimum of 1")
    assert rows[2][1] == "starts with byte 123 instead of the magic byte 0"
    assert rows[3] == (None, None)
    unchecked = read.json_schema(registry.url, subject="json-value", schema="id int", validate=False)
    kind, rows = decode(spark, unchecked, records)
    assert kind == "struct<id:int>"
    assert [value for value, _ in rows] == [{"id": 1}, {"id": 0}, None, None]
    assert rows[2][1] == "does not start with the magic byte 0 and a schema id"


def test_protobuf_of_a_registry(spark: SparkSession, registry: Registry) -> None:
    from ottla.pipelines.decode_protobuf import _file

    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
        message Order { int64 id = 1; repeated string tags = 2; google.protobuf.Timestamp at = 3; }"""
    identifier = registry.register("proto-value", text, "PROTOBUF")
    message = GetMessageClass(_file(registry.url, identifier).message_types_by_name["Order"])
    order = message(id=1, tags=["a"])
    order.at.seconds = 60
    records = [framed(identifier, order.SerializeToString(), b"\0"), framed(identifier, b"\xff", b"\0"), None]
    kind, rows = decode(spark, read.protobuf(registry.url, subject="proto-value"), records)
    assert kind == "struct<id:bigint,tags:array<string>,at:timestamp>"
    value, error = rows[0]
    assert error is None
    assert (value["id"], value["tags"], value["at"].timestamp()) == (1, ["a"], 60.0)
    assert rows[1][0] is None
    assert rows[1][1] is not None
    assert rows[2] == (None, None)


def test_what_cannot_be_decoded_at_all_is_said_when_the_flow_is_built(
    spark: SparkSession, registry: Registry
) -> None:
    with pytest.raises(PipelineError, match="no schema registry is known"):
        decode(spark, read.avro(), [])
    with pytest.raises(PipelineError, match="Subject 'gone-value' not found"):
        decode(spark, read.avro(subject="gone-value"), [], registry.url)
    registry.register("string-value", json.dumps("string"))
    with pytest.raises(PipelineError, match="is AVRO, not PROTOBUF"):
        decode(spark, read.protobuf(subject="string-value"), [], registry.url)
    with pytest.raises(PipelineError, match="a schema names columns"):
        decode(spark, read.json("long"), [])
