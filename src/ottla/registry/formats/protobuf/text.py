"""What a .proto file declares as text again, in one layout, which is that of Confluent's registry.

Within a message, what is reserved and options come first and enums last, as their place changes nothing. The
rest keeps its order: the order of fields and of nested messages is in the descriptor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.registry.formats.protobuf.syntax import (
    LARGEST_ENUM_NUMBER,
    LARGEST_FIELD_NUMBER,
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Method,
    Number,
    Oneof,
    Option,
    Reserved,
    Service,
    Value,
    Word,
)

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
}
# What stands together, without an empty line between; and what comes first and last in a message.
_SECTIONS: dict[type, str] = {Message: "types", Enum: "types"}
_FIRST: dict[type, int] = {Reserved: 0, Option: 1, Enum: 3}


def write_file(file: File) -> str:
    """The text of a file. Reading it gives the same file again."""
    writer = _Writer(with_names_unquoted=file.edition is not None)
    if file.edition is not None:
        writer.line(f'edition = "{file.edition}";')
    elif file.syntax is not None:
        writer.line(f'syntax = "{file.syntax}";')
    if file.package:
        writer.line(f"package {file.package};")
    messages = [one for one in file.types if isinstance(one, Message)]
    enums = [one for one in file.types if isinstance(one, Enum)]
    imports = [
        f"import {one.modifier + ' ' if one.modifier else ''}{quoted(one.path.encode())};"
        for one in file.imports
    ]
    for section in (imports, file.options, [*messages, *enums], file.extends, file.services):
        if section:
            writer.line("")
            for one in section:
                writer.write(one)
    return "".join(f"{line}\n" for line in writer.lines)


class _Writer:
    def __init__(self, *, with_names_unquoted: bool) -> None:
        self.lines: list[str] = []
        self._depth = 0
        self._names_unquoted = with_names_unquoted
        # What the word max stands for.
        self._largest = LARGEST_FIELD_NUMBER

    def line(self, text: str) -> None:
        indent = "  " * self._depth
        self.lines.extend(indent + line for line in text.split("\n"))

    def write(self, one: Any) -> None:
        match one:
            case str():
                self.line(one)
            case Option():
                self.line(f"option {option_text(one)};")
            case Message():
                self._block(f"message {one.name} {{", _ordered(one.members))
            case Enum():
                self._largest = LARGEST_ENUM_NUMBER
                self._block(f"enum {one.name} {{", _ordered(one.members), with_sections=False)
                self._largest = LARGEST_FIELD_NUMBER
            case EnumValue():
                self.line(f"{one.name} = {one.number}{_in_brackets(one.options)};")
            case Field():
                self._field(one)
            case Group():
                label = f"{one.label} " if one.label else ""
                head = f"{label}group {one.message.name} = {one.number}{_in_brackets(one.options)} {{"
                self._block(head, _ordered(one.message.members))
            case Oneof():
                self._block(f"oneof {one.name} {{", _ordered(one.members))
            case Reserved():
                self.line(f"reserved {', '.join(map(self._reserved, one.values))};")
            case Extensions():
                self.line(f"extensions {', '.join(map(self._range, one.ranges))}{_in_brackets(one.options)};")
            case Extend():
                self._block(f"extend {one.extendee} {{", one.fields)
            case Service():
                self._block(f"service {one.name} {{", _ordered(one.members))
            case Method():
                self._method(one)

    def _block(self, head: str, members: Iterable[Any], *, with_sections: bool = True) -> None:
        section: object = None
        self.line(head)
        self._depth += 1
        for member in members:
            kind = _SECTIONS.get(type(member), type(member))
            if section is not None and kind != section and with_sections:
                # An empty line is as far in as the block, not as what is in it.
                self.lines.append("  " * (self._depth - 1))
            section = kind
            self.write(member)
        self._depth -= 1
        if section is None:
            self.lines[-1] += "}"
        else:
            self.line("}")

    def _field(self, field: Field) -> None:
        # These two are written as options, and last.
        last = ("default", "json_name")
        options = [one for one in field.options if str(one) not in last]
        for name in last:
            options += [one for one in field.options if str(one) == name]
        label = f"{field.label} " if field.label else ""
        type_name = field.type if field.key is None else f"map<{field.key}, {field.type}>"
        self.line(f"{label}{type_name} {field.name} = {field.number}{_in_brackets(options)};")

    def _method(self, method: Method) -> None:
        request = ("stream " if method.request_streams else "") + method.request
        response = ("stream " if method.response_streams else "") + method.response
        head = f"rpc {method.name} ({request}) returns ({response})"
        if method.options:
            self._block(head + " {", method.options)
            self.lines[-1] += ";"
        else:
            self.line(head + ";")

    def _reserved(self, value: tuple[int, int] | str) -> str:
        if isinstance(value, str):
            return value if self._names_unquoted else quoted(value.encode())
        return self._range(value)

    def _range(self, numbers: tuple[int, int]) -> str:
        first, last = numbers
        if first == last:
            return str(first)
        return f"{first} to {'max' if last == self._largest else last}"


def _ordered(members: Iterable[Any]) -> list[Any]:
    return sorted(members, key=lambda member: _FIRST.get(type(member), 2))


def _in_brackets(options: list[Option]) -> str:
    if not options:
        return ""
    if len(options) == 1:
        return f" [{option_text(options[0])}]"
    return " [\n" + _indented([option_text(option) for option in options]) + "\n]"


def option_text(option: Option) -> str:
    value = option.value
    if isinstance(value, list) and len(value) == 1:
        return f"{option} = [{_value(value[0])}]"
    return f"{option} = {_value(value)}"


def _value(value: Value) -> str:
    match value:
        case bytes():
            return quoted(value)
        case Word() | Number():
            return value.text
        case Aggregate():
            entries = _indented([f"{name}: {_value(entry)}" for name, entry in value.entries])
            return "{\n" + entries + "\n}" if entries else "{\n}"
        case list():
            return "[\n" + _indented([_value(one) for one in value]) + "\n]" if value else "[\n]"


def _indented(texts: list[str]) -> str:
    return ",\n".join("\n".join("  " + line for line in text.split("\n")) for text in texts)


def quoted(value: bytes) -> str:
    """A string in quotes."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return '"' + "".join(_character(chr(byte), 0x7F) for byte in value) + '"'
    return '"' + "".join(_character(character, 0x10FFFF) for character in text) + '"'


def _character(character: str, largest: int) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character < " " or character == "\x7f" or ord(character) > largest:
        return f"\\{ord(character):03o}"
    return character
