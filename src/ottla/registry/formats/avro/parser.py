"""From JSON to types, as Avro's Java parser (1.12) goes about it.

A name may be used before it is defined. A type may be defined again if nothing that matters differs: neither
documentation nor aliases do. What belongs to a type but is of the wrong JSON type is passed over where that
parser passes over it (doc, namespace, an enum's default) and refused where it does not.

It differs in what it takes as the default of a field whose type is not defined to its end there: any that
fits. Java does not know that type yet, and refuses what it would take later. And an attribute that means
nothing to Avro may hold an integer of any size, over which Java stumbles in some types.
"""

from __future__ import annotations

from typing import Final

from ottla.registry.formats.avro.attributes import aliases_of, default_of, invalid, props_of, text_of
from ottla.registry.formats.avro.defaults import Defaults
from ottla.registry.formats.avro.json import Json, excerpt
from ottla.registry.formats.avro.names import MAX_NAME_CHARACTERS, NameRule, strict
from ottla.registry.formats.avro.redefinition import is_same_definition
from ottla.registry.formats.avro.types import (
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Named,
    Record,
    Type,
    Union,
    Unresolved,
)

RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
RESERVED_OF_ENUM: Final = RESERVED | {"default"}
RESERVED_OF_FIELD: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
MAX_FIXED_SIZE = 2**31 - 9  # The longest array there is in Java.


class Parser:
    """Texts that are parsed one after the other, each of which may use what those before it define."""

    def __init__(self) -> None:
        self.known: dict[str, Named] = {}
        self._containers: list[tuple[Type, str]] = []
        self._fields: list[Field] = []
        self._name_rule: NameRule = strict

    def parse(self, schema: Json, name_rule: NameRule, check_defaults: bool) -> Type:
        self._containers, self._fields, self._name_rule = [], [], name_rule
        root = self._resolved(self._type(schema, None, ""))
        if isinstance(root, Named):
            root = self.known[root.name.full]
        for container, path in self._containers:
            self._finish(container, path)
        if check_defaults:
            defaults = Defaults()
            for field in self._fields:
                defaults.check(field)
        return root

    # Calls itself at most once for each level of the JSON, of which there are MAX_NESTING.
    def _type(self, schema: Json, space: str | None, path: str) -> Type:
        if isinstance(schema, str):
            return self._find(schema, space, path)
        if isinstance(schema, list):
            branches = []
            for index, branch in enumerate(schema):
                branches.append(self._type(branch, space, f"{path}/{index}"))
            return self._contains(Union(branches=branches), path)
        if not isinstance(schema, dict):
            raise invalid(f"Neither a name, an object nor an array: {excerpt(schema)}", path)
        kind = text_of(schema, "type")
        match kind:
            case None:
                raise invalid(f"No type: {excerpt(schema)}", path)
            case "record" | "error":
                return self._record(schema, space, path)
            case "enum":
                return self._enum(schema, space, path)
            case "fixed":
                return self._fixed(schema, space, path)
            case "array":
                if "items" not in schema:
                    raise invalid(f"Array has no items type: {excerpt(schema)}", path)
                items = self._type(schema["items"], space, f"{path}/items")
                return self._contains(Array(items=items, props=props_of(schema, RESERVED)), path)
            case "map":
                if "values" not in schema:
                    raise invalid(f"Map has no values type: {excerpt(schema)}", path)
                values = self._type(schema["values"], space, f"{path}/values")
                return self._contains(Map(values=values, props=props_of(schema, RESERVED)), path)
        if kind in PRIMITIVES:
            return Type(kind=kind, props=props_of(schema, RESERVED))
        return self._find(kind, space, path)

    def _record(self, schema: dict[str, Json], space: str | None, path: str) -> Named:
        name = self._name(schema, space, path)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise invalid(f"Record has no fields: {excerpt(schema)}", path)
        record = Record(
            name=name,
            doc=text_of(schema, "doc"),
            aliases=self._aliases(schema, name, path),
            props=props_of(schema, RESERVED),
            is_error=schema["type"] == "error",
        )
        names = set()
        for index, field in enumerate(fields):
            at = f"{path}/fields/{index}"
            if not isinstance(field, dict):
                raise invalid(f"No field name: {excerpt(field)}", at)
            parsed = self._field(field, name.space, at)
            if parsed.name in names:
                raise invalid(f"Duplicate field {parsed.name} in record {name.full}", at)
            names.add(parsed.name)
            record.fields.append(parsed)
        self._containers.append((record, path))
        return self._define(record, path)

    def _field(self, schema: dict[str, Json], space: str | None, path: str) -> Field:
        name = text_of(schema, "name")
        if name is None:
            raise invalid(f"No field name: {excerpt(schema)}", path)
        self._check_name(name, path)
        if "type" not in schema:
            raise invalid(f"No field type: {excerpt(schema)}", path)
        field_type = self._type(schema["type"], space, f"{path}/type")
        order = schema.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in ORDERS:
            raise invalid(f"No order: {excerpt(order)}", f"{path}/order")
        field = Field(
            name=name,
            type=field_type,
            path=path,
            doc=text_of(schema, "doc"),
            default=default_of(schema, field_type, path),
            order=order.lower(),
            aliases=aliases_of(schema, path),
            props=props_of(schema, RESERVED_OF_FIELD),
        )
        self._fields.append(field)
        return field

    def _enum(self, schema: dict[str, Json], space: str | None, path: str) -> Named:
        name = self._name(schema, space, path)
        given = schema.get("symbols")
        if not isinstance(given, list):
            raise invalid(f"Enum has no symbols: {excerpt(schema)}", path)
        symbols: dict[str, None] = {}
        for index, symbol in enumerate(given):
            at = f"{path}/symbols/{index}"
            if not isinstance(symbol, str):
                raise invalid(f"Symbol is not a string: {excerpt(symbol)}", at)
            self._check_name(symbol, at)
            if symbol in symbols:
                raise invalid(f"Duplicate enum symbol: {symbol}", at)
            symbols[symbol] = None
        default = text_of(schema, "default")
        if default is not None and default not in symbols:
            raise invalid(f"The Enum Default: {excerpt(default)} is not in the enum symbol set", path)
        enum = Enum(
            name=name,
            doc=text_of(schema, "doc"),
            aliases=self._aliases(schema, name, path),
            props=props_of(schema, RESERVED_OF_ENUM),
            symbols=tuple(symbols),
            default=default,
        )
        return self._define(enum, path)

    def _fixed(self, schema: dict[str, Json], space: str | None, path: str) -> Named:
        name = self._name(schema, space, path)
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FIXED_SIZE:
            raise invalid(f"Invalid or no size: {excerpt(schema)}", path)
        fixed = Fixed(
            name=name,
            doc=text_of(schema, "doc"),
            aliases=self._aliases(schema, name, path),
            props=props_of(schema, RESERVED),
            size=size,
        )
        return self._define(fixed, path)

    def _name(self, schema: dict[str, Json], space: str | None, path: str) -> Name:
        text = text_of(schema, "name")
        if text is None:
            raise invalid(f"No name in schema: {excerpt(schema)}", path)
        own_space = text_of(schema, "namespace")
        name = Name.of(text, space if own_space is None else own_space)
        if len(name.full) > MAX_NAME_CHARACTERS:
            raise invalid(f"A name is longer than {MAX_NAME_CHARACTERS} characters", path)
        if name.full in PRIMITIVES:
            raise invalid(f"Schemas may not be named after primitives: {name.full}", path)
        self._check_name(name.simple, path)
        # Namespaces were never held to the rule for letters of any script.
        if self._name_rule is strict and name.space:
            for part in name.space.split("."):
                if wrong := strict(part):
                    raise invalid(f'Namespace part "{part}" is invalid: {wrong}', path)
        return name

    def _aliases(self, schema: dict[str, Json], name: Name, path: str) -> tuple[Name, ...]:
        aliases: dict[Name, None] = {}
        for text in aliases_of(schema, path):
            alias = Name.of(text, name.space)
            if len(alias.full) > MAX_NAME_CHARACTERS:
                raise invalid(f"An alias is longer than {MAX_NAME_CHARACTERS} characters", path)
            if self._name_rule is strict:
                self._check_name(alias.simple, f"{path}/aliases")
            aliases[alias] = None
        return tuple(aliases)

    def _check_name(self, name: str, path: str) -> None:
        if wrong := self._name_rule(name):
            raise invalid(wrong[:MAX_NAME_CHARACTERS], path)

    def _find(self, name: str, space: str | None, path: str) -> Type:
        if name in PRIMITIVES:
            return Type(kind=name)
        if len(name) > MAX_NAME_CHARACTERS:
            raise invalid(f"A name is longer than {MAX_NAME_CHARACTERS} characters", path)
        full = name if space is None or "." in name else f"{space}.{name}"
        return self.known.get(full) or self.known.get(name) or Unresolved(name=full, path=path)

    def _define(self, named: Named, path: str) -> Named:
        known = self.known.setdefault(named.name.full, named)
        if not is_same_definition(known, named):
            raise invalid(f"Can't redefine: {named.name.full}", path)
        return named

    def _contains(self, container: Type, path: str) -> Type:
        self._containers.append((container, path))
        return container

    def _resolved(self, used: Type) -> Type:
        if not isinstance(used, Unresolved):
            return used
        if (found := self.known.get(used.name)) is None:
            raise invalid(f"Undefined schema: {used.name}", used.path)
        return found

    def _finish(self, container: Type, path: str) -> None:
        match container:
            case Array():
                container.items = self._resolved(container.items)
            case Map():
                container.values = self._resolved(container.values)
            case Record():
                for field in container.fields:
                    field.type = self._resolved(field.type)
            case Union():
                container.branches = [self._resolved(branch) for branch in container.branches]
                names = set()
                for branch in container.branches:
                    if isinstance(branch, Union):
                        raise invalid("Nested union", path)
                    if branch.full_name in names:
                        raise invalid(f"Duplicate in union: {branch.full_name}", path)
                    names.add(branch.full_name)
