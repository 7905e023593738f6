"""The order of what has no order: what two files differ in that mean the same.

Messages, enums and services stay as they are: serialized data says by its place which message it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ottla.registry.formats.protobuf.syntax import (
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    MessageMember,
    Method,
    Oneof,
    Option,
    Reserved,
    Service,
)

_MODIFIERS = (None, "public", "weak")


def normal_file(file: File) -> File:
    """A file, whose names are full ones and whose options are whole, in normal order."""
    return replace(
        file,
        syntax=file.syntax if file.is_proto3 else None,
        imports=sorted(file.imports, key=lambda one: (_MODIFIERS.index(one.modifier), one.path)),
        options=_options(file.options),
        types=[_message(one) if isinstance(one, Message) else _enum(one) for one in file.types],
        extends=_extends(file.extends),
        services=[_service(one) for one in file.services],
    )


def _message(message: Message) -> Message:
    members = message.members
    ranges = [(one, range_) for one in _of(members, Extensions) for range_ in one.ranges]
    ordered: list[MessageMember] = [*_reserved(members), *_options(_of(members, Option))]
    ordered += _fields(_of(members, Field))
    oneofs: list[Oneof] = sorted((_oneof(one) for one in _of(members, Oneof)), key=_first_number)
    ordered += oneofs
    ordered += _fields(_of(members, Group))
    ordered += [
        Extensions([range_], _options(one.options))
        for one, range_ in sorted(ranges, key=lambda pair: pair[1])
    ]
    ordered += _extends(_of(members, Extend))
    ordered += [_message(one) for one in _of(members, Message)]
    ordered += [_enum(one) for one in _of(members, Enum)]
    return replace(message, members=ordered)


def _fields(fields: Iterable[Any]) -> list[Any]:
    found: list[Field | Group] = []
    for field in sorted(fields, key=lambda one: one.number):
        if isinstance(field, Group):
            field = replace(field, message=_message(field.message))
        found.append(replace(field, options=_options(field.options)))
    return found


def _oneof(oneof: Oneof) -> Oneof:
    fields = [member for member in oneof.members if not isinstance(member, Option)]
    return replace(oneof, members=[*_options(_of(oneof.members, Option)), *_fields(fields)])


def _first_number(oneof: Oneof) -> int:
    return min(member.number for member in oneof.members if not isinstance(member, Option))


def _reserved(members: Iterable[Any]) -> list[Reserved]:
    values = [value for one in _of(members, Reserved) for value in one.values]
    numbers = sorted(value for value in values if not isinstance(value, str))
    names = sorted(value for value in values if isinstance(value, str))
    return [Reserved([value]) for value in (*numbers, *names)]


def _extends(extends: Iterable[Extend]) -> list[Extend]:
    fields: dict[str, list[Field | Group]] = {}
    for extend in extends:
        fields.setdefault(extend.extendee, []).extend(extend.fields)
    return [Extend(extendee, _fields(of_extendee)) for extendee, of_extendee in fields.items()]


def _enum(enum: Enum) -> Enum:
    values = [replace(one, options=_options(one.options)) for one in _of(enum.members, EnumValue)]
    # Zero stays first, where proto3 wants it, before numbers that are negative.
    values.sort(key=lambda one: (one.number != 0, one.number, one.name))
    options = _options(_of(enum.members, Option))
    return replace(enum, members=[*_reserved(enum.members), *options, *values])


def _service(service: Service) -> Service:
    methods = [replace(one, options=_options(one.options)) for one in _of(service.members, Method)]
    return replace(service, members=[*_options(_of(service.members, Option)), *methods])


def _options(options: Iterable[Option]) -> list[Option]:
    return sorted(options, key=lambda option: [part.name for part in option.name])


def _of(members: Iterable[Any], kind: type) -> list[Any]:
    return [member for member in members if isinstance(member, kind)]
