"""What protoc refuses in a message or an enum and the protobuf library's pool does not say where."""

from __future__ import annotations

from bisect import bisect_right

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.options import boolean
from ottla.registry.formats.protobuf.syntax import (
    Enum,
    EnumValue,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Oneof,
    Option,
    Reserved,
    field_name,
    fields_of,
)

_FIRST_INTERNAL, _LAST_INTERNAL = 19_000, 19_999


def check_label(file: File, member: Field | Group, *, is_extension: bool) -> None:
    if member.label == "required" and (file.is_proto3 or file.edition or is_extension):
        reason = "an extension" if is_extension else file.syntax or "an edition"
        raise InvalidSchema(f"{reason} has no required fields, at {member.where}")
    if member.label == "optional" and file.edition:
        raise InvalidSchema(f"an edition has no label optional, at {member.where}")
    if isinstance(member, Group) and (file.is_proto3 or file.edition):
        raise InvalidSchema(f"groups are in proto2 only, at {member.where}")


def check_message(message: Message) -> None:
    """Numbers are used once, and numbers and names that are reserved are not."""
    reserved = _Ranges([r for m in message.members if isinstance(m, Reserved) for r in m.values])
    extensions = _Ranges([r for m in message.members if isinstance(m, Extensions) for r in m.ranges])
    numbers: dict[int, str] = {}
    for field in fields_of(message):
        name, number = field_name(field), field.number
        if number in numbers:
            raise InvalidSchema(
                f"{message.name} has number {number} for {numbers[number]} and for {name}, at {field.where}"
            )
        numbers[number] = name
        if _FIRST_INTERNAL <= number <= _LAST_INTERNAL:
            raise InvalidSchema(
                f"numbers {_FIRST_INTERNAL} to {_LAST_INTERNAL} are Protobuf's own, at {field.where}"
            )
        if number in reserved or name in reserved.names:
            what = number if number in reserved else name
            raise InvalidSchema(f"{what} is reserved in {message.name}, at {field.where}")
        if number in extensions:
            raise InvalidSchema(f"{number} is for extensions of {message.name}, at {field.where}")
    for oneof in (member for member in message.members if isinstance(member, Oneof)):
        if all(isinstance(member, Option) for member in oneof.members):
            raise InvalidSchema(f"the oneof {oneof.name} has no fields, at {oneof.where}")


def check_enum(file: File, enum: Enum) -> None:
    values = [member for member in enum.members if isinstance(member, EnumValue)]
    if not values:
        raise InvalidSchema(f"the enum {enum.name} has no values, at {enum.where}")
    if file.is_proto3 and values[0].number != 0:
        raise InvalidSchema(f"the first value of {enum.name} is not zero, at {values[0].where}")
    reserved = _Ranges([r for m in enum.members if isinstance(m, Reserved) for r in m.values])
    aliases = any(
        str(option) == "allow_alias" and boolean("allow_alias", option.value)
        for option in enum.members
        if isinstance(option, Option)
    )
    numbers: set[int] = set()
    for value in values:
        if value.number in numbers and not aliases:
            raise InvalidSchema(
                f"{enum.name} has number {value.number} twice without allow_alias, at {value.where}"
            )
        numbers.add(value.number)
        if value.number in reserved or value.name in reserved.names:
            raise InvalidSchema(f"{value.name} is reserved in {enum.name}, at {value.where}")


class _Ranges:
    """Numbers in any of some ranges. There can be many ranges and many questions."""

    def __init__(self, values: list[tuple[int, int] | str] | list[tuple[int, int]]) -> None:
        self.names = {value for value in values if isinstance(value, str)}
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(value for value in values if not isinstance(value, str)):
            self._firsts.append(first)
            self._lasts.append(max(last, self._lasts[-1]) if self._lasts else last)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]
