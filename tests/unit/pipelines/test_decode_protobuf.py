from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from ottla.pipelines.decode_protobuf import ProtobufRows, _file
from ottla.pipelines.decode_rows import decode_array
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.proto_types import arrow_type
from tests.unit.pipelines.registry_server import RegistryServer, compiled, framed

ORDERS = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  message Line { string item = 1; uint32 count = 2; }
  int64 id = 1;
  string customer = 2;
  State state = 3;
  optional int32 rank = 4;
  uint64 big = 5;
  bytes raw = 6;
  repeated Line lines = 7;
  map<string, double> prices = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.Duration took = 10;
  google.protobuf.Int64Value maybe = 11;
  google.protobuf.Struct open = 12;
  repeated string tags = 13;
  oneof pay { string card = 14; bool cash = 15; }
}
message Refund { int64 id = 1; message Reason { string text = 1; } }
"""
FIRST, SECOND, NESTED = b"\0", b"\2\2", b"\4\2\0"


def message(registry: RegistryServer, identifier: int, name: str) -> Any:
    found = _file(registry.url, identifier)
    for step in name.split("."):
        types = getattr(found, "message_types_by_name", None) or found.nested_types_by_name
        found = types[step]
    return GetMessageClass(found)


def decoded(rows: ProtobufRows, records: list[bytes | None]) -> list[dict[str, Any]]:
    kind = arrow_type(rows.descriptor())
    result: list[dict[str, Any]] = decode_array(pa.array(records, pa.binary()), rows, kind, kind).to_pylist()
    return result


@pytest.fixture(params=["descriptor", "text"])
def orders(registry: RegistryServer, request: pytest.FixtureRequest) -> int:
    """The schema's id, in a registry that serves compiled descriptors and in one that has only the text."""
    registry.serialize = compiled if request.param == "descriptor" else None
    return registry.register("orders", ORDERS, "PROTOBUF")


def test_messages_become_rows_of_every_type(registry: RegistryServer, orders: int) -> None:
    order = message(registry, orders, "Order")(
        id=1, customer="ada", state=1, rank=0, big=2**63, raw=b"\0", tags=["a", "b"], cash=True
    )
    order.lines.add(item="tea", count=2**32 - 1)
    order.prices["tea"] = 1.5
    order.at.FromDatetime(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    order.took.FromTimedelta(timedelta(seconds=2, microseconds=5))
    order.maybe.value = 0
    order.open["a"] = 1
    rows = ProtobufRows(registry.url, orders, None)
    (row,) = decoded(rows, [framed(orders, order.SerializeToString(), FIRST)])
    assert row["error"] is None
    assert row["value"] == {
        "id": 1,
        "customer": "ada",
        "state": "PAID",
        "rank": 0,
        "big": Decimal(2**63),
        "raw": b"\0",
        "lines": [{"item": "tea", "count": 2**32 - 1}],
        "prices": [("tea", 1.5)],
        "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "took": timedelta(seconds=2, microseconds=5),
        "maybe": 0,
        "open": '{"a": 1.0}',
        "tags": ["a", "b"],
        "card": None,
        "cash": True,
    }


def test_what_is_not_set_is_null_where_protobuf_can_tell_and_the_default_elsewhere(
    registry: RegistryServer, orders: int
) -> None:
    (row,) = decoded(ProtobufRows(registry.url, orders, None), [framed(orders, b"", FIRST)])
    value = row["value"]
    assert (value["id"], value["customer"], value["state"], value["tags"]) == (0, "", "NEW", [])
    assert [value[name] for name in ("rank", "at", "maybe", "open", "card", "cash")] == [None] * 6


def test_a_message_is_chosen_by_name_and_records_of_another_are_bad(
    registry: RegistryServer, orders: int
) -> None:
    refund = framed(orders, message(registry, orders, "Refund")(id=3).SerializeToString(), SECOND)
    reason = framed(
        orders, message(registry, orders, "Refund.Reason")(text="late").SerializeToString(), NESTED
    )
    order = framed(orders, b"", FIRST)
    rows = decoded(ProtobufRows(registry.url, orders, "shop.Refund"), [refund, order])
    assert rows == [
        {"value": {"id": 3}, "error": None},
        {"value": None, "error": "is a shop.Order and not a shop.Refund"},
    ]
    (row,) = decoded(ProtobufRows(registry.url, orders, "Refund.Reason"), [reason])
    assert row["value"] == {"text": "late"}
    with pytest.raises(PipelineError, match="no message Sale; it has: Order, Refund"):
        ProtobufRows(registry.url, orders, "Sale").descriptor()


def test_bad_records_say_why(registry: RegistryServer, orders: int) -> None:
    rows = decoded(
        ProtobufRows(registry.url, orders, None),
        [b"\0", framed(orders, b"\x0a", FIRST), framed(orders, b"", b"\2\x14"), framed(55, b"", FIRST), None],
    )
    assert rows[0]["error"] == "1 bytes are too few for a schema id"
    assert rows[1]["error"].startswith("is not Protobuf of shop.Order")
    assert rows[2]["error"] == f"names message [10], which schema id {orders} does not have"
    assert "has no schema id 55" in rows[3]["error"]
    assert rows[4] == {"value": None, "error": None}


def test_records_of_another_version_are_read_by_the_newest(registry: RegistryServer) -> None:
    registry.serialize = compiled
    old = registry.register("sales", 'syntax = "proto3"; message Sale { int64 id = 1; }', "PROTOBUF")
    new = registry.register(
        "sales", 'syntax = "proto3"; message Sale { int64 id = 1; string by = 2; }', "PROTOBUF"
    )
    record = framed(old, message(registry, old, "Sale")(id=4).SerializeToString(), FIRST)
    (row,) = decoded(ProtobufRows(registry.url, new, None), [record])
    assert row["value"] == {"id": 4, "by": ""}


def test_imports_of_other_subjects_are_found(registry: RegistryServer) -> None:
    registry.register("money", 'syntax = "proto3"; message Money { int64 cents = 1; }', "PROTOBUF")
    references = [{"name": "money.proto", "subject": "money", "version": 1}]
    text = 'syntax = "proto3"; import "money.proto"; message Bill { Money total = 1; }'
    bill = registry.register("bill", text, "PROTOBUF", references)
    made = message(registry, bill, "Bill")()
    made.total.cents = 5
    (row,) = decoded(ProtobufRows(registry.url, bill, None), [framed(bill, made.SerializeToString(), FIRST)])
    assert row["value"] == {"total": {"cents": 5}}


def test_a_message_that_contains_itself_is_refused(registry: RegistryServer) -> None:
    text = 'syntax = "proto3"; message Node { Node next = 1; }'
    identifier = registry.register("nodes", text, "PROTOBUF")
    with pytest.raises(PipelineError, match="Node contains itself"):
        arrow_type(ProtobufRows(registry.url, identifier, None).descriptor())


def test_a_schema_that_is_no_protobuf_is_said_so(registry: RegistryServer) -> None:
    identifier = registry.register("odd", "%%%", "PROTOBUF")
    with pytest.raises(PipelineError, match="Protobuf schema cannot be read"):
        _file(registry.url, identifier)
