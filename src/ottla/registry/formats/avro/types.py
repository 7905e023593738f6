"""Avro's types as a parsed schema holds them: a graph, a named type one object wherever it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ottla.registry.formats.avro.json import Json

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
KINDS: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


@dataclass(frozen=True, slots=True)
class Name:
    """What a record, an enum or a fixed is called, or was called. `full` is unique, `simple` is not."""

    simple: str
    space: str | None
    full: str

    @staticmethod
    def of(text: str, space: str | None) -> Name:
        """A name with dots in it brings its namespace along and does not care about the one it is in."""
        before, dot, simple = text.rpartition(".")
        space = (before if dot else space) or None
        return Name(simple, space, simple if space is None else f"{space}.{simple}")

    def within(self, space: str | None) -> str:
        """As short as it can be said in a namespace."""
        return self.simple if self.space and self.space == space and self.simple not in KINDS else self.full


@dataclass(eq=False, slots=True, kw_only=True)
class Type:
    """`props` are the attributes that mean nothing to Avro, and are kept."""

    kind: str
    props: dict[str, Json] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """What tells it from the other types of a union."""
        return self.kind


@dataclass(eq=False, slots=True, kw_only=True)
class Array(Type):
    kind: str = "array"
    items: Type


@dataclass(eq=False, slots=True, kw_only=True)
class Map(Type):
    kind: str = "map"
    values: Type


@dataclass(eq=False, slots=True, kw_only=True)
class Union(Type):
    kind: str = "union"
    branches: list[Type]


@dataclass(eq=False, slots=True, kw_only=True)
class Unresolved(Type):
    """A name that is used before it is defined, or within its own definition. Gone once a text is parsed."""

    kind: str = "unresolved"
    name: str
    path: str

    @property
    def full_name(self) -> str:
        return f"unresolved {id(self)}"


@dataclass(eq=False, slots=True, kw_only=True)
class Named(Type):
    name: Name
    doc: str | None = None
    aliases: tuple[Name, ...] = ()

    @property
    def full_name(self) -> str:
        return self.name.full

    @property
    def alias_names(self) -> tuple[str, ...]:
        """Full names. One without a namespace, of a type that has one, begins with a dot."""
        return tuple(
            f".{alias.simple}" if alias.space is None and self.name.space else alias.full
            for alias in self.aliases
        )


@dataclass(eq=False, slots=True)
class NoDefault:
    """Of a field without a default, for which null would be one."""


NO_DEFAULT: Final = NoDefault()


@dataclass(eq=False, slots=True, kw_only=True)
class Field:
    name: str
    type: Type
    path: str
    doc: str | None = None
    default: Json | NoDefault = NO_DEFAULT
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True, kw_only=True)
class Record(Named):
    kind: str = "record"
    is_error: bool = False
    fields: list[Field] = field(default_factory=list)


@dataclass(eq=False, slots=True, kw_only=True)
class Enum(Named):
    kind: str = "enum"
    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Fixed(Named):
    kind: str = "fixed"
    size: int
