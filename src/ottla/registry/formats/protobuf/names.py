"""What names mean: the innermost scope that has a name wins.

protoc stops at the innermost scope that has the first part of a name, whether or not that has the rest. To go
on changes the meaning of no name that protoc takes, and Confluent's tools write names that need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum as Enumeration
from typing import Any

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.syntax import (
    Enum,
    EnumValue,
    Extend,
    File,
    Group,
    Message,
    Method,
    Oneof,
    field_name,
    fields_of,
)
from ottla.registry.formats.protobuf.tokens import Position


class Kind(Enumeration):
    PACKAGE = "package"
    MESSAGE = "message"
    ENUM = "enum"
    ENUM_VALUE = "value of an enum"
    SERVICE = "service"
    EXTENSION = "extension"
    MEMBER = "field, oneof or method"


class Names:
    """The full names that a file can use."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}

    def add_declared(self, file: File) -> None:
        """The names that a file itself declares."""
        self.add_package(file.package)
        self._declare(file.types, file.extends, file.package)
        for service in file.services:
            name = join(file.package, service.name)
            self._add(name, Kind.SERVICE, service.where)
            for method in service.members:
                if isinstance(method, Method):
                    self._add(join(name, method.name), Kind.MEMBER, method.where)

    def _declare(self, types: Iterable[Message | Enum], extends: Iterable[Extend], scope: str) -> None:
        for definition in types:
            if isinstance(definition, Message):
                self._declare_message(definition, scope)
                continue
            self._add(join(scope, definition.name), Kind.ENUM, definition.where)
            for value in definition.members:
                if isinstance(value, EnumValue):
                    # Beside the enum and not in it, as in C.
                    self._add(join(scope, value.name), Kind.ENUM_VALUE, value.where)
        for extend in extends:
            for field in extend.fields:
                self._add(join(scope, field_name(field)), Kind.EXTENSION, field.where)
                if isinstance(field, Group):
                    self._declare_message(field.message, scope)

    def _declare_message(self, message: Message, scope: str) -> None:
        name = join(scope, message.name)
        self._add(name, Kind.MESSAGE, message.where)
        for oneof in message.members:
            if isinstance(oneof, Oneof):
                self._add(join(name, oneof.name), Kind.MEMBER, oneof.where)
        for field in fields_of(message):
            self._add(join(name, field_name(field)), Kind.MEMBER, field.where)
            if isinstance(field, Group):
                self._declare_message(field.message, name)
            elif field.key is not None:
                self._add(join(name, map_entry_name(field.name)), Kind.MESSAGE, field.where)
        self._declare(
            [member for member in message.members if isinstance(member, Message | Enum)],
            [member for member in message.members if isinstance(member, Extend)],
            name,
        )

    def _add(self, name: str, kind: Kind, where: Position) -> None:
        if name in self._kinds:
            raise InvalidSchema(f"{name} is defined twice, the second time at {where}")
        self._kinds[name] = kind

    def add_package(self, package: str) -> None:
        parts = package.split(".") if package else []
        for end in range(1, len(parts) + 1):
            self._kinds.setdefault(".".join(parts[:end]), Kind.PACKAGE)

    def add_file(self, proto: Any) -> None:
        """The names in a file that is imported."""
        self.add_package(proto.package)
        self._add_types(proto, proto.package, proto.message_type)

    def _add_types(self, holder: Any, scope: str, messages: Any) -> None:
        for message in messages:
            name = join(scope, message.name)
            self._kinds[name] = Kind.MESSAGE
            self._add_types(message, name, message.nested_type)
        for enum in holder.enum_type:
            self._kinds[join(scope, enum.name)] = Kind.ENUM
        for extension in holder.extension:
            self._kinds[join(scope, extension.name)] = Kind.EXTENSION

    def kind(self, name: str) -> Kind | None:
        return self._kinds.get(name)

    def resolve(self, name: str, scope: str, *kinds: Kind) -> str | None:
        """The full name that a name means where it is used, if it is that of one of these kinds."""
        if name.startswith("."):
            return name[1:] if self._kinds.get(name[1:]) in kinds else None
        while True:
            candidate = join(scope, name)
            if self._kinds.get(candidate) in kinds:
                return candidate
            if not scope:
                return None
            scope = scope.rpartition(".")[0]


def join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def json_name(name: str) -> str:
    """The name of a field in JSON unless another is given."""
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def map_entry_name(name: str) -> str:
    """The name of the message that a map's entries are."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
