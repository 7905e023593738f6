"""What .proto text declares, as it was written: names are not resolved, options not interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.registry.formats.protobuf.tokens import Position

NOWHERE = Position(0, 0)
LARGEST_FIELD_NUMBER = 536_870_911
LARGEST_ENUM_NUMBER = 2_147_483_647


@dataclass(slots=True)
class Word:
    """The name of an enum's value, true, false, inf or nan, with its sign."""

    text: str


@dataclass(slots=True)
class Number:
    text: str


@dataclass(slots=True)
class Aggregate:
    """A message in braces. A name in brackets is that of an extension, or of the type inside an Any."""

    entries: list[tuple[str, Value]]


Value = Word | Number | bytes | Aggregate | list["Value"]


@dataclass(frozen=True, slots=True)
class NamePart:
    name: str
    is_extension: bool


@dataclass(slots=True)
class Option:
    name: tuple[NamePart, ...]
    value: Value
    where: Position = NOWHERE

    def __str__(self) -> str:
        return ".".join(f"({part.name})" if part.is_extension else part.name for part in self.name)


@dataclass(slots=True)
class Field:
    """For a map, `type` is that of its values and `key` that of its keys."""

    label: str | None
    type: str
    name: str
    number: int
    options: list[Option] = field(default_factory=list)
    key: str | None = None
    where: Position = NOWHERE


@dataclass(slots=True)
class Group:
    """A field and the message that is its type, declared as one."""

    label: str | None
    message: Message
    number: int
    options: list[Option] = field(default_factory=list)
    where: Position = NOWHERE


@dataclass(slots=True)
class Oneof:
    name: str
    members: list[Field | Group | Option]
    where: Position = NOWHERE


@dataclass(slots=True)
class Reserved:
    """Ranges, with their last number, and names that nothing may have."""

    values: list[tuple[int, int] | str]
    where: Position = NOWHERE


@dataclass(slots=True)
class Extensions:
    ranges: list[tuple[int, int]]
    options: list[Option] = field(default_factory=list)
    where: Position = NOWHERE


@dataclass(slots=True)
class Extend:
    extendee: str
    fields: list[Field | Group]
    where: Position = NOWHERE


@dataclass(slots=True)
class Message:
    name: str
    members: list[MessageMember]
    where: Position = NOWHERE


@dataclass(slots=True)
class EnumValue:
    name: str
    number: int
    options: list[Option] = field(default_factory=list)
    where: Position = NOWHERE


@dataclass(slots=True)
class Enum:
    name: str
    members: list[Reserved | Option | EnumValue]
    where: Position = NOWHERE


MessageMember = Reserved | Option | Field | Oneof | Group | Extensions | Extend | Message | Enum


@dataclass(slots=True)
class Method:
    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: list[Option] = field(default_factory=list)
    where: Position = NOWHERE


@dataclass(slots=True)
class Service:
    name: str
    members: list[Option | Method]
    where: Position = NOWHERE


@dataclass(slots=True)
class Import:
    path: str
    modifier: str | None = None  # public or weak
    where: Position = NOWHERE


@dataclass(slots=True)
class File:
    syntax: str | None = None
    edition: str | None = None
    package: str = ""
    imports: list[Import] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    @property
    def is_proto3(self) -> bool:
        return self.syntax == "proto3"


def field_name(member: Field | Group) -> str:
    return member.name if isinstance(member, Field) else member.message.name.lower()


def fields_of(message: Message) -> Iterator[Field | Group]:
    """The fields of a message and of its oneofs, as they are declared."""
    for member in message.members:
        if isinstance(member, Field | Group):
            yield member
        elif isinstance(member, Oneof):
            yield from (inner for inner in member.members if not isinstance(inner, Option))
