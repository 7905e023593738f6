"""The text of a schema as Java's `Schema.toString` gives it, which is what a registry keeps and answers.

Attributes stand in one order, namespaces only where they change, and a named type is written out where it
comes up first and named from there on.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.avro.json import MAX_NESTING, Json
from ottla.registry.formats.avro.types import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    NoDefault,
    Record,
    Type,
    Union,
)


def rendered(schema: Type, referenced: Iterable[str]) -> Json:
    """`referenced` are full names of types that other schemas define, and that are only named."""
    return _Rendering(set(referenced)).of(schema, None, 0)


class _Rendering:
    def __init__(self, named: set[str]) -> None:
        self._named = named

    def of(self, schema: Type, space: str | None, depth: int) -> Json:
        # The JSON that was parsed is no deeper, but types that are used before they are defined, each in the
        # one before it, end up within each other.
        if depth > MAX_NESTING:
            raise InvalidSchema(f"Types are nested deeper than {MAX_NESTING} levels")
        match schema:
            case Union():
                return [self.of(branch, space, depth + 1) for branch in schema.branches]
            case Array():
                return {"type": "array", "items": self.of(schema.items, space, depth + 1), **schema.props}
            case Map():
                return {"type": "map", "values": self.of(schema.values, space, depth + 1), **schema.props}
            case Named():
                return self._of_named(schema, space, depth)
        return {"type": schema.kind, **schema.props} if schema.props else schema.kind

    def _of_named(self, schema: Named, space: str | None, depth: int) -> Json:
        name = schema.name
        if name.full in self._named:
            return name.within(space)
        self._named.add(name.full)
        is_error = isinstance(schema, Record) and schema.is_error
        json: dict[str, Json] = {"type": "error" if is_error else schema.kind, "name": name.simple}
        if name.space != space:
            json["namespace"] = name.space or ""
        if schema.doc is not None:
            json["doc"] = schema.doc
        match schema:
            case Record():
                json["fields"] = [self._of_field(field, name.space, depth + 2) for field in schema.fields]
            case Enum():
                json["symbols"] = list(schema.symbols)
                if schema.default is not None:
                    json["default"] = schema.default
            case Fixed():
                json["size"] = schema.size
        json.update(schema.props)
        if schema.aliases:
            json["aliases"] = [alias.within(name.space) for alias in schema.aliases]
        return json

    def _of_field(self, field: Field, space: str | None, depth: int) -> Json:
        json: dict[str, Json] = {"name": field.name, "type": self.of(field.type, space, depth + 1)}
        if field.doc is not None:
            json["doc"] = field.doc
        if not isinstance(field.default, NoDefault):
            json["default"] = field.default
        if field.order != "ascending":
            json["order"] = field.order
        if field.aliases:
            json["aliases"] = list(field.aliases)
        json.update(field.props)
        return json
