"""Options, set in the messages that descriptors have for them.

Custom options are extensions of these messages: to set one, the message must come from a pool that has the
file which declares the extension.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.cursor import integer_value
from ottla.registry.formats.protobuf.files import options_class
from ottla.registry.formats.protobuf.names import Kind, Names
from ottla.registry.formats.protobuf.syntax import Aggregate, Number, Option, Value, Word

# Confluent's tools use these without an import.
_CONFLUENTS = {f"confluent.{name}_meta" for name in ("file", "message", "field", "enum", "enum_value")}
_MESSAGES = (FieldDescriptor.CPPTYPE_MESSAGE,)
_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
_WORDS_FOR_FLOATS = ("inf", "-inf", "nan", "-nan", "infinity", "-infinity")


def is_custom(option: Option) -> bool:
    """Whether an option needs to know what extensions there are."""
    return any(part.is_extension for part in option.name) or _names_extension(option.value)


def _names_extension(value: Value) -> bool:
    if isinstance(value, Aggregate):
        return any(name.startswith("[") or _names_extension(entry) for name, entry in value.entries)
    return isinstance(value, list) and any(_names_extension(entry) for entry in value)


class OptionSetter:
    """Sets options. Without a pool it knows no extensions."""

    def __init__(self, names: Names, pool: Any = None) -> None:
        self._names = names
        self._pool = pool

    def set_custom(self, holder: Any, options: list[Option], scope: str) -> None:
        """Set options in `holder`, which knows extensions as bytes only."""
        options_of = options_class(self._pool, holder)
        if options_of is None:
            raise InvalidSchema(f"option {options[0]} is not defined, at {options[0].where}")
        message = options_of.FromString(holder.SerializePartialToString())
        for option in options:
            self.set(message, option, scope)
        try:
            holder.ParseFromString(message.SerializePartialToString(deterministic=True))
        except DecodeError:
            raise InvalidSchema(f"option {options[0]} at {options[0].where} cannot be kept") from None

    def set(self, message: Any, option: Option, scope: str) -> None:
        try:
            *path, last = option.name
            for part in path:
                field = self._field(message, part.name, part.is_extension, scope)
                if field.cpp_type not in _MESSAGES or is_repeated(field):
                    raise InvalidSchema(f"{part.name} has no fields")
                message = _get(message, field)
                message.SetInParent()
            field = self._field(message, last.name, last.is_extension, scope)
            self._put(message, field, option.value, scope)
        except InvalidSchema as error:
            raise InvalidSchema(f"option {option} at {option.where}: {error}") from None

    def _field(self, message: Any, name: str, is_extension: bool, scope: str) -> Any:
        if not is_extension:
            field = message.DESCRIPTOR.fields_by_name.get(name)
            if field is None:
                # In text, a group goes by the name of its type.
                field = message.DESCRIPTOR.fields_by_name.get(name.lower())
                if field is None or field.type != FieldDescriptor.TYPE_GROUP:
                    raise InvalidSchema(f"{message.DESCRIPTOR.name} has no field {name}")
            return field
        full_name = self._names.resolve(name, scope, Kind.EXTENSION)
        if full_name is None and name.removeprefix(".") in _CONFLUENTS:
            full_name = name.removeprefix(".")
        if full_name is None:
            raise InvalidSchema(f"the extension {name} is not defined")
        field = self._pool.FindExtensionByName(full_name)
        if field.containing_type.full_name != message.DESCRIPTOR.full_name:
            raise InvalidSchema(f"{name} extends {field.containing_type.name}, not {message.DESCRIPTOR.name}")
        return field

    def _put(self, message: Any, field: Any, value: Value, scope: str) -> None:
        if is_repeated(field):
            for one in value if isinstance(value, list) else [value]:
                self._append(_get(message, field), field, one, scope)
        elif isinstance(value, list):
            raise InvalidSchema(f"{field.name} takes one value")
        elif field.cpp_type in _MESSAGES:
            inner = _get(message, field)
            inner.SetInParent()
            self._fill(inner, value, scope)
        else:
            if message.HasExtension(field) if field.is_extension else _is_set(message, field):
                raise InvalidSchema(f"{field.name} is set twice")
            converted = scalar(field, value)
            try:
                if field.is_extension:
                    message.Extensions[field] = converted
                else:
                    setattr(message, field.name, converted)
            except (TypeError, ValueError) as error:
                raise InvalidSchema(f"{field.name}: {error}") from None

    def _append(self, container: Any, field: Any, value: Value, scope: str) -> None:
        if field.cpp_type not in _MESSAGES:
            try:
                container.append(scalar(field, value))
            except (TypeError, ValueError) as error:
                raise InvalidSchema(f"{field.name}: {error}") from None
        elif field.message_type.GetOptions().map_entry:
            entry = GetMessageClass(field.message_type)()
            self._fill(entry, value, scope)
            if field.message_type.fields_by_name["value"].cpp_type in _MESSAGES:
                container[entry.key].CopyFrom(entry.value)
            else:
                container[entry.key] = entry.value
        else:
            self._fill(container.add(), value, scope)

    def _fill(self, message: Any, value: Value, scope: str) -> None:
        if not isinstance(value, Aggregate):
            raise InvalidSchema(f"{message.DESCRIPTOR.name} is a message, which is written in braces")
        for name, entry in value.entries:
            if not name.startswith("["):
                self._put(message, self._field(message, name, False, scope), entry, scope)
            elif "/" in name:
                self._fill_any(message, name[1:-1], entry, scope)
            else:
                self._put(message, self._field(message, name[1:-1], True, scope), entry, scope)

    def _fill_any(self, message: Any, url: str, value: Value, scope: str) -> None:
        try:
            inner = GetMessageClass(self._pool.FindMessageTypeByName(url.rpartition("/")[2]))()
        except KeyError:
            raise InvalidSchema(f"{url} is not defined") from None
        if message.DESCRIPTOR.full_name != "google.protobuf.Any":
            raise InvalidSchema(f"{message.DESCRIPTOR.name} cannot contain {url}")
        self._fill(inner, value, scope)
        message.type_url = url
        message.value = inner.SerializePartialToString(deterministic=True)


def is_repeated(field: Any) -> bool:
    # Version 5 of the library has the label only, which version 7 warns of.
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def _get(message: Any, field: Any) -> Any:
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)


def _is_set(message: Any, field: Any) -> bool:
    return bool(message.HasField(field.name)) if field.has_presence else bool(getattr(message, field.name))


def scalar(field: Any, value: Value) -> object:
    """What is written, as the protobuf library takes it for a field."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        if isinstance(value, Word) and value.text in field.enum_type.values_by_name:
            return field.enum_type.values_by_name[value.text].number
        raise InvalidSchema(f"{field.name} is a value of {field.enum_type.name}, not {written(value)}")
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if not isinstance(value, bytes):
            raise InvalidSchema(f"{field.name} is a string, not {written(value)}")
        if field.type == FieldDescriptor.TYPE_BYTES:
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InvalidSchema(f"{field.name} is no text") from None
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return boolean(field.name, value)
    if field.cpp_type in _FLOATS:
        return float_value(field.name, value)
    return whole_number(field.name, value)


def boolean(name: str, value: Value) -> bool:
    if isinstance(value, Word) and value.text in ("true", "false"):
        return value.text == "true"
    raise InvalidSchema(f"{name} is true or false, not {written(value)}")


def float_value(name: str, value: Value) -> float:
    if isinstance(value, Word) and value.text in _WORDS_FOR_FLOATS:
        return float(value.text)
    if isinstance(value, Number):
        try:
            return float(value.text)
        except ValueError:
            pass
        try:
            return float(whole_number(name, value))
        except OverflowError:
            raise InvalidSchema(f"{name} is too large a number") from None
    raise InvalidSchema(f"{name} is a number, not {written(value)}")


def whole_number(name: str, value: Value) -> int:
    if isinstance(value, Number):
        digits = value.text.removeprefix("-")
        if digits.isalnum() and (digits.isdigit() or digits[:2] in ("0x", "0X")):
            return integer_value(digits) * (-1 if value.text.startswith("-") else 1)
    raise InvalidSchema(f"{name} is a whole number, not {written(value)}")


def written(value: Value) -> str:
    if isinstance(value, Word | Number):
        return value.text[:40]
    return {bytes: "a string", list: "a list", Aggregate: "a message"}[type(value)]
