"""From a descriptor to the declarations it was made of."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.defaults import default_value, float_text
from ottla.registry.formats.protobuf.described import EDITION_2023, FieldDescriptorProto
from ottla.registry.formats.protobuf.files import options_class
from ottla.registry.formats.protobuf.names import json_name, map_entry_name
from ottla.registry.formats.protobuf.options import is_repeated
from ottla.registry.formats.protobuf.syntax import (
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    Message,
    MessageMember,
    Method,
    NamePart,
    Number,
    Oneof,
    Option,
    Reserved,
    Service,
    Value,
    Word,
)

_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


def declarations(proto: Any, pool: Any) -> File:
    """The file that a FileDescriptorProto is of. The pool has it, so that it is known to be sound, and all it
    imports, which tells what its custom options mean; one whose extension it does not import is left out."""
    return _Source(proto, pool).file()


class _Source:
    def __init__(self, proto: Any, pool: Any) -> None:
        self._proto = proto
        self._pool = pool
        self._is_proto3 = proto.syntax == "proto3"
        self._is_edition = proto.syntax == "editions"

    def file(self) -> File:
        proto = self._proto
        if self._is_edition and proto.edition != EDITION_2023:
            raise InvalidSchema("editions other than 2023 are not supported")
        public, weak = set(proto.public_dependency), set(proto.weak_dependency)
        groups = {_last_part(field.type_name) for field in proto.extension if _is_group(field)}
        messages = [self._message(one) for one in proto.message_type if one.name not in groups]
        return File(
            syntax=None if self._is_edition or not proto.syntax else proto.syntax,
            edition="2023" if self._is_edition else None,
            package=proto.package,
            imports=[
                Import(name, "public" if index in public else "weak" if index in weak else None)
                for index, name in enumerate(proto.dependency)
            ],
            options=self._options(proto),
            types=[*messages, *(self._enum(one) for one in proto.enum_type)],
            extends=self._extends(proto.extension, {one.name: one for one in proto.message_type}),
            services=[self._service(one) for one in proto.service],
        )

    def _message(self, proto: Any) -> Message:
        reserved = Reserved([(one.start, one.end - 1) for one in proto.reserved_range])
        reserved.values += proto.reserved_name
        members: list[MessageMember] = [reserved] if reserved.values else []
        members += self._options(proto)
        nested = {one.name: one for one in proto.nested_type}
        units = [*self._fields(proto, nested), *self._extension_ranges(proto)]
        units += self._extends(proto.extension, nested)
        # The messages that groups and maps make stand among the nested ones in their places, so a nested
        # message has to be written before the field whose message follows it.
        waiting: list[MessageMember] = []
        maker = {name: index for index, unit in enumerate(units) for name in _made_by(unit)}
        done = 0
        for one in proto.nested_type:
            if one.name not in maker:
                waiting.append(self._message(one))
            elif maker[one.name] >= done:
                index = maker[one.name]
                members += [*units[done:index], *waiting, units[index]]
                waiting, done = [], index + 1
        members += [*units[done:], *waiting]
        members += [self._enum(one) for one in proto.enum_type]
        return Message(proto.name, members)

    def _fields(self, proto: Any, nested: dict[str, Any]) -> list[MessageMember]:
        found: list[MessageMember] = []
        oneofs: dict[int, Oneof] = {}
        for field in proto.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                declared = proto.oneof_decl[field.oneof_index]
                oneof = oneofs.get(field.oneof_index)
                if oneof is None:
                    oneof = oneofs[field.oneof_index] = Oneof(declared.name, [*self._options(declared)])
                    found.append(oneof)
                oneof.members.append(self._field(field, nested, label=None))
            else:
                found.append(self._field(field, nested, label=self._label(field)))
        return found

    def _label(self, field: Any) -> str | None:
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            return "repeated"
        if self._is_edition or (self._is_proto3 and not field.proto3_optional):
            return None
        return "required" if field.label == FieldDescriptorProto.LABEL_REQUIRED else "optional"

    def _field(self, field: Any, nested: dict[str, Any], label: str | None) -> Field | Group:
        options = self._options(field)
        if field.HasField("default_value"):
            options.append(Option((NamePart("default", False),), default_value(field)))
        if field.HasField("json_name") and field.json_name != json_name(field.name):
            options.append(Option((NamePart("json_name", False),), field.json_name.encode()))
        made = nested.get(_last_part(field.type_name)) if field.type_name else None
        if made is not None and _is_group(field):
            return Group(label, self._message(made), field.number, options)
        if made is not None and _is_entry_of(made, field):
            key, value = made.field
            return Field(None, _type(value), field.name, field.number, options, _type(key))
        return Field(label, _type(field), field.name, field.number, options)

    def _extension_ranges(self, proto: Any) -> list[MessageMember]:
        return [Extensions([(one.start, one.end - 1)], self._options(one)) for one in proto.extension_range]

    def _extends(self, fields: Any, messages: dict[str, Any]) -> list[Extend]:
        found: list[Extend] = []
        for field in fields:
            if not found or found[-1].extendee != field.extendee:
                found.append(Extend(field.extendee, []))
            found[-1].fields.append(self._field(field, messages, label=self._label(field)))
        return found

    def _enum(self, proto: Any) -> Enum:
        reserved = Reserved([(one.start, one.end) for one in proto.reserved_range])
        reserved.values += proto.reserved_name
        enum = Enum(proto.name, [reserved] if reserved.values else [])
        enum.members += self._options(proto)
        enum.members += [EnumValue(one.name, one.number, self._options(one)) for one in proto.value]
        return enum

    def _service(self, proto: Any) -> Service:
        service = Service(proto.name, [*self._options(proto)])
        for one in proto.method:
            service.members.append(
                Method(
                    one.name,
                    one.input_type,
                    one.output_type,
                    one.client_streaming,
                    one.server_streaming,
                    self._options(one),
                )
            )
        return service

    def _options(self, proto: Any) -> list[Option]:
        if not proto.HasField("options"):
            return []
        message = proto.options
        options_of = options_class(self._pool, message)
        if options_of is not None:
            message = options_of.FromString(message.SerializePartialToString())
        return [
            Option(
                (NamePart(field.full_name if field.is_extension else field.name, field.is_extension),), one
            )
            for field, value in message.ListFields()
            for one in _values(field, value)
        ]


def _is_group(field: Any) -> bool:
    return bool(field.type == FieldDescriptorProto.TYPE_GROUP)


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _is_entry_of(message: Any, field: Any) -> bool:
    return (
        bool(message.options.map_entry)
        and message.name == map_entry_name(field.name)
        and [inner.number for inner in message.field] == [1, 2]
        and field.label == FieldDescriptorProto.LABEL_REPEATED
    )


def _type(field: Any) -> str:
    if field.type_name:
        return str(field.type_name)
    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _made_by(unit: MessageMember) -> list[str]:
    """The names of the nested messages that a declaration makes by itself."""
    match unit:
        case Field() if unit.key is not None:
            return [map_entry_name(unit.name)]
        case Group():
            return [unit.message.name]
        case Oneof():
            return [name for member in unit.members if isinstance(member, Group) for name in _made_by(member)]
        case Extend():
            return [name for member in unit.fields for name in _made_by(member)]
    return []


def _values(field: Any, value: Any) -> list[Value]:
    """What has to be written for a field that is set, once for each value if there are several."""
    if not is_repeated(field):
        return [_value(field, value)]
    if field.message_type is None or not field.message_type.GetOptions().map_entry:
        return [_value(field, one) for one in value]
    key, inner = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    if any(isinstance(one, bytes) for one in value):
        raise InvalidSchema(f"a key in {field.name} is no text")
    return [
        Aggregate([("key", _value(key, one)), ("value", _value(inner, value[one]))]) for one in sorted(value)
    ]


def _value(field: Any, value: Any) -> Value:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        entries: list[tuple[str, Value]] = []
        for inner, inside in value.ListFields():
            values = _values(inner, inside)
            name = f"[{inner.full_name}]" if inner.is_extension else inner.name
            if inner.type == FieldDescriptor.TYPE_GROUP:
                name = inner.message_type.name
            entries.append((name, values[0] if len(values) == 1 else values))
        return Aggregate(sorted(entries, key=lambda entry: entry[0]))
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        named = field.enum_type.values_by_number.get(value)
        return Word(named.name) if named is not None else Number(str(value))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return Word("true" if value else "false")
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return value if isinstance(value, bytes) else value.encode()
    if field.cpp_type in _FLOATS:
        text = float_text(value)
        return Word(text) if text.lstrip("-")[:1].isalpha() else Number(text)
    return Number(str(value))
