"""Avro under any schema: what is kept says the same again, and what is called compatible can be read.

The reader that is asked is fastavro's. The schemas it gets have no namespaces, which count for more there
than in Java.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.avro.schema import parse

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
props = st.dictionaries(st.sampled_from(["x", "confluent:tags", "logicalType", "scale"]), values, max_size=2)
maybe_doc = st.sampled_from([{}, {"doc": ""}, {"doc": 'a "doc" \u00e9\n'}])


@st.composite
def schemas(draw: st.DrawFn, plain: bool = False) -> Any:
    """With `plain`, nothing but what matters to who reads: see above."""
    defined: list[tuple[str, str]] = []
    count = 0

    def attributes() -> dict[str, Any]:
        return {} if plain else {**draw(props), **draw(maybe_doc)}

    def name(kind: str) -> dict[str, Any]:
        nonlocal count
        count += 1
        named: dict[str, Any] = {"type": kind, "name": f"{kind[0].upper()}{count}"}
        if not plain:
            named |= (
                {"namespace": space}
                if (space := draw(st.sampled_from(["", "n", "n.m", None]))) is not None
                else {}
            )
            named |= {"aliases": ["Z", "q.Y"]} if draw(st.booleans()) else {}
        return named

    def schema(depth: int, union: bool = True) -> Any:
        kinds = ["primitive", "primitive", "enum", "fixed", "again"]
        if depth:
            kinds += ["record", "record", "array", "map"] + ["union"] * union
        match draw(st.sampled_from(kinds)):
            case "record":
                made = name("record")
                defined.append(("record", made["name"]))
                made["fields"] = [parted(depth - 1, index) for index in range(draw(st.integers(0, 3)))]
                return made | attributes()
            case "enum":
                made = {**name("enum"), "symbols": ["A", "B"]} | attributes()
                defined.append(("enum", made["name"]))
                return made | ({"default": "A"} if draw(st.booleans()) else {})
            case "fixed":
                made = {**name("fixed"), "size": draw(st.integers(0, 3))} | attributes()
                defined.append(("fixed", made["name"]))
                return made
            case "array":
                return {"type": "array", "items": schema(depth - 1)} | attributes()
            case "map":
                return {"type": "map", "values": schema(depth - 1)} | attributes()
            case "union":
                branches = [schema(depth - 1, union=False) for _ in range(draw(st.integers(1, 3)))]
                return list({branch_name(branch): branch for branch in branches}.values())
            case "again" if defined and plain:
                kind, again = draw(st.sampled_from(defined))
                return ["null", again] if kind == "record" and union else again if kind != "record" else "int"
        kind = draw(st.sampled_from(PRIMITIVES))
        return {"type": kind} | attributes() if draw(st.booleans()) else kind

    def parted(depth: int, index: int) -> dict[str, Any]:
        part = {"name": f"f{index}", "type": schema(depth)} | ({} if plain else draw(props))
        if part["type"] == "int" and draw(st.booleans()):
            part["default"] = draw(st.integers(-5, 5))
        if isinstance(part["type"], list) and "null" in part["type"][:1] and draw(st.booleans()):
            part["default"] = None
        return part

    return schema(3)


@st.composite
def evolved(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema, and what somebody made of it."""

    def changed(schema: Any) -> Any:
        match schema:
            case str():
                return draw(
                    st.sampled_from(
                        [schema, schema, schema, "long", "double", "string", "bytes", ["null", schema]]
                    )
                )
            case list():
                kept = [branch if isinstance(branch, str) else changed(branch) for branch in schema]
                if draw(st.integers(0, 3)) == 0:
                    kept = kept[::-1]
                if draw(st.integers(0, 3)) == 0 and "boolean" not in kept:
                    kept.append("boolean")
                return kept[1:] if len(kept) > 1 and draw(st.integers(0, 5)) == 0 else kept
            case {"type": "record", "fields": fields, **rest}:
                made = [{**part, "type": changed(part["type"])} for part in fields]
                for part in made:
                    if isinstance(part["type"], (str, list)):
                        part.pop("default", None)
                action = draw(st.integers(0, 6))
                if action == 0:
                    made = made[1:]
                elif action == 1:
                    made.append({"name": "added", "type": "int", "default": 1})
                elif action == 2:
                    made.append({"name": "added", "type": "int"})
                elif action == 3 and made:
                    made[0] |= {"name": "renamed", "aliases": [made[0]["name"]]}
                return {"type": "record", **rest, "fields": made}
            case {"type": "array", "items": items, **rest}:
                return {"type": "array", "items": changed(items), **rest}
            case {"type": "map", "values": of, **rest}:
                return {"type": "map", "values": changed(of), **rest}
            case {"type": str(kind), **rest} if kind in PRIMITIVES:
                return changed(kind)
        return schema

    before = draw(schemas(plain=True))
    return before, changed(before)


def branch_name(branch: Any) -> str:
    return branch if isinstance(branch, str) else str(branch.get("name", branch["type"]))


def valid(schema: Any) -> Any:
    try:
        return parse(json.dumps(schema), {})
    except InvalidSchema:
        return None


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_what_is_kept_of_a_schema_says_the_same_again(schema: Any) -> None:
    parsed = valid(schema)
    if parsed is None:
        return
    again = parse(parsed.canonical, {})
    assert again.canonical == parsed.canonical
    assert parsed.refused(parsed) == again.refused(parsed) == parsed.refused(again) == []


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_normalizing_twice_is_normalizing_once(schema: Any) -> None:
    parsed = valid(schema)
    if parsed is None:
        return
    try:
        normalized = parsed.normalized
    except InvalidSchema:
        return
    assert parse(normalized, {}).normalized == normalized


@settings(max_examples=300)
@given(st.text() | values.map(lambda value: json.dumps(value)))
def test_noise_is_a_schema_or_refused(text: str) -> None:
    try:
        parse(text, {})
    except InvalidSchema as error:
        assert str(error)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(evolved(), st.data())
def test_what_is_called_compatible_can_be_read(pair: tuple[Any, Any], data: st.DataObject) -> None:
    for writer, reader in (pair, pair[::-1]):
        written, read = valid(writer), valid(reader)
        if written is None or read is None or read.refused(written):
            continue
        writer_schema = fastavro.parse_schema(json.loads(written.canonical))
        reader_schema = fastavro.parse_schema(json.loads(read.canonical))
        for _ in range(3):
            datum = Datum(writer, data).of(writer)
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, writer_schema, datum)
            buffer.seek(0)
            fastavro.schemaless_reader(buffer, writer_schema, reader_schema)
            assert buffer.read() == b""


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.text(max_size=3).map(str.encode),  # Those that are read as text have to be text.
    "string": st.text(max_size=3),
}


class Datum:
    """Values that a schema may have, for fastavro to write: a union's with the branch they are of."""

    def __init__(self, schema: Any, data: st.DataObject) -> None:
        self._draw = data.draw
        self._named: dict[str, Any] = {}
        self._collect(schema)

    def _collect(self, schema: Any) -> None:
        match schema:
            case list():
                for branch in schema:
                    self._collect(branch)
            case dict():
                if "name" in schema:
                    self._named[schema["name"]] = schema
                for part in schema.get("fields", []):
                    self._collect(part["type"])
                self._collect(schema.get("items"))
                self._collect(schema.get("values"))

    def of(self, schema: Any, depth: int = 0) -> Any:
        assume(depth < 12)  # A record that always holds itself has no values.
        if isinstance(schema, list):
            branch = self._draw(st.sampled_from(["null"] if depth > 5 and "null" in schema else schema))
            return branch_name(branch), self.of(branch, depth + 1)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in SCALARS:
            return self._draw(SCALARS[kind])
        count = self._draw(st.integers(0, 2)) if kind in ("array", "map") else 0
        match kind:
            case "record":
                return {part["name"]: self.of(part["type"], depth + 1) for part in schema["fields"]}
            case "enum":
                return self._draw(st.sampled_from(schema["symbols"]))
            case "fixed":
                return self._draw(st.binary(min_size=schema["size"], max_size=schema["size"]))
            case "array":
                return [self.of(schema["items"], depth + 1) for _ in range(count)]
            case "map":
                return {f"key {index}": self.of(schema["values"], depth + 1) for index in range(count)}
        return self.of(self._named[kind], depth)
