"""Default values of proto2, which a descriptor has as text."""

from __future__ import annotations

from typing import Any

from google.protobuf.text_encoding import CEscape

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.described import FieldDescriptorProto
from ottla.registry.formats.protobuf.options import boolean, float_value, whole_number, written
from ottla.registry.formats.protobuf.syntax import NOWHERE, Number, Option, Value, Word
from ottla.registry.formats.protobuf.tokens import Kind, Token, string_bytes

_NONE = (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_GROUP)
_FLOATS = (FieldDescriptorProto.TYPE_DOUBLE, FieldDescriptorProto.TYPE_FLOAT)
_LIMITS = {
    **dict.fromkeys(("INT32", "SINT32", "SFIXED32"), (-(2**31), 2**31 - 1)),
    **dict.fromkeys(("INT64", "SINT64", "SFIXED64"), (-(2**63), 2**63 - 1)),
    **dict.fromkeys(("UINT32", "FIXED32"), (0, 2**32 - 1)),
    **dict.fromkeys(("UINT64", "FIXED64"), (0, 2**64 - 1)),
}


def default_text(field: Any, option: Option) -> str:
    """The text that a descriptor has for the value of an option `default`."""
    try:
        if field.label == FieldDescriptorProto.LABEL_REPEATED or field.type in _NONE:
            raise InvalidSchema("only a single field that is no message has one")
        return _text(field, option.value)
    except InvalidSchema as error:
        raise InvalidSchema(f"the default value of {field.name} at {option.where}: {error}") from None


def _text(field: Any, value: Value) -> str:
    if field.type == FieldDescriptorProto.TYPE_ENUM:
        if not isinstance(value, Word):
            raise InvalidSchema(f"it is the name of an enum's value, not {written(value)}")
        return value.text
    if field.type == FieldDescriptorProto.TYPE_BOOL:
        return "true" if boolean(field.name, value) else "false"
    if field.type in _FLOATS:
        return float_text(float_value(field.name, value))
    if field.type in (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES):
        if not isinstance(value, bytes):
            raise InvalidSchema(f"it is a string, not {written(value)}")
        if field.type == FieldDescriptorProto.TYPE_BYTES:
            return str(CEscape(value, False))
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InvalidSchema("it is no text") from None
    number = whole_number(field.name, value)
    lowest, largest = _LIMITS[FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_")]
    if not lowest <= number <= largest:
        raise InvalidSchema(f"{number} is not between {lowest} and {largest}")
    return str(number)


def float_text(number: float) -> str:
    """As C writes it: with as few digits as give the same number back."""
    text = f"{number:.15g}"
    return text if number != number or float(text) == number else f"{number:.17g}"


def default_value(field: Any) -> Value:
    """The value that has to be written for the default value in a descriptor."""
    text: str = field.default_value
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return text.encode()
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return string_bytes(Token(Kind.STRING, f'"{text}"', NOWHERE))
    if field.type in (FieldDescriptorProto.TYPE_ENUM, FieldDescriptorProto.TYPE_BOOL):
        return Word(text)
    return Word(text) if text.lstrip("-")[:1].isalpha() else Number(text)
