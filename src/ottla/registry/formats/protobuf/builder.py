"""From what a .proto file declares to the descriptor that protoc would make of it."""

from __future__ import annotations

from typing import Any

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.checks import check_enum, check_label, check_message
from ottla.registry.formats.protobuf.defaults import default_text
from ottla.registry.formats.protobuf.described import (
    EDITION_2023,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from ottla.registry.formats.protobuf.files import Files, Linked
from ottla.registry.formats.protobuf.names import Kind, Names, join, json_name, map_entry_name
from ottla.registry.formats.protobuf.options import OptionSetter, is_custom
from ottla.registry.formats.protobuf.syntax import (
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Method,
    Oneof,
    Option,
    Reserved,
    Service,
    field_name,
)

SCALARS: dict[str, int] = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
_LABELS = {
    None: FieldDescriptorProto.LABEL_OPTIONAL,
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_ENTRY_FIELDS = [(1, "key"), (2, "value")]
_NO_KEYS = ("double", "float", "bytes")


def link(file: File, name: str, files: Files, *, is_reference: bool = False) -> Linked:
    """The descriptor of a file whose imports are in `files`. Raises InvalidSchema.

    A reference was understood when it was registered: the library looks at it together with what uses it, and
    nobody looks at its custom options."""
    builder = _Builder(file, name, files)
    builder.build()
    if not is_reference:
        builder.set_custom_options()
    return Linked(builder.proto, builder.unlabelled)


class _Builder:
    def __init__(self, file: File, name: str, files: Files) -> None:
        self.file = file
        self.files = files
        self.proto: Any = FileDescriptorProto(name=name)
        self.names = Names()
        self.unlabelled: set[tuple[str, int]] = set()
        # Custom options, which are set once all extensions are known: where to, which, and in what scope.
        self.custom: list[tuple[Any, list[Option], str]] = []
        self.setter = OptionSetter(self.names)

    def build(self) -> None:
        self._define_head()
        package = self.file.package
        for definition in self.file.types:
            if isinstance(definition, Message):
                self._define_message(self.proto.message_type.add(), definition, package)
            else:
                self._define_enum(self.proto.enum_type.add(), definition, package)
        for extend in self.file.extends:
            self._define_extend(self.proto, self.proto.message_type, extend, package)
        for service in self.file.services:
            self._define_service(service)
        self._set_options(self.proto, self.file.options, package)

    def set_custom_options(self) -> None:
        pool = self.files.pool(self.proto, with_meta=bool(self.custom))
        if self.custom:
            setter = OptionSetter(self.names, pool)
            for holder, options, scope in self.custom:
                setter.set_custom(holder, options, scope)
            self.files.pool(self.proto)

    def _define_head(self) -> None:
        if self.file.edition:
            self.proto.syntax = "editions"
            self.proto.edition = EDITION_2023
        elif self.file.is_proto3:
            self.proto.syntax = "proto3"
        if self.file.package:
            self.proto.package = self.file.package
        for index, imported in enumerate(self.file.imports):
            if self.files.find(imported.path) is None:
                raise InvalidSchema(
                    f'the import "{imported.path}" at {imported.where} is not among the references'
                )
            if imported.path in self.proto.dependency:
                raise InvalidSchema(f'"{imported.path}" is imported twice, at {imported.where}')
            self.proto.dependency.append(imported.path)
            if imported.modifier == "public":
                self.proto.public_dependency.append(index)
            elif imported.modifier == "weak":
                self.proto.weak_dependency.append(index)
        for linked in self.files.visible(self.proto):
            self.names.add_file(linked.proto)
        self.names.add_declared(self.file)

    def _define_message(self, proto: Any, message: Message, scope: str) -> None:
        check_message(message)
        name = join(scope, message.name)
        proto.name = message.name
        optional: list[Any] = []
        for member in message.members:
            match member:
                case Field() | Group():
                    field = proto.field.add()
                    self._define_field(field, proto.nested_type, member, name)
                    if field.proto3_optional:
                        optional.append(field)
                case Oneof():
                    self._define_oneof(proto, member, name)
                case Message():
                    self._define_message(proto.nested_type.add(), member, name)
                case Enum():
                    self._define_enum(proto.enum_type.add(), member, name)
                case Extend():
                    self._define_extend(proto, proto.nested_type, member, name)
                case Extensions():
                    for first, last in member.ranges:
                        extensions = proto.extension_range.add(start=first, end=last + 1)
                        self._set_options(extensions, member.options, name)
                case Reserved():
                    for value in member.values:
                        if isinstance(value, str):
                            proto.reserved_name.append(value)
                        else:
                            proto.reserved_range.add(start=value[0], end=value[1] + 1)
                case Option():
                    pass
        self._set_options(proto, [m for m in message.members if isinstance(m, Option)], name)
        if proto.options.map_entry and [(f.number, f.name) for f in proto.field] != _ENTRY_FIELDS:
            raise InvalidSchema(f"{name} is not what the entries of a map are, at {message.where}")
        taken = {field.name for field in proto.field} | {oneof.name for oneof in proto.oneof_decl}
        for field in optional:
            oneof = field.name if field.name.startswith("_") else "_" + field.name
            while oneof in taken:
                oneof = "X" + oneof
            taken.add(oneof)
            field.oneof_index = len(proto.oneof_decl)
            proto.oneof_decl.add(name=oneof)

    def _define_oneof(self, proto: Any, oneof: Oneof, scope: str) -> None:
        index = len(proto.oneof_decl)
        declared = proto.oneof_decl.add(name=oneof.name)
        options = []
        for member in oneof.members:
            if isinstance(member, Option):
                options.append(member)
            else:
                field = proto.field.add()
                self._define_field(field, proto.nested_type, member, scope)
                field.oneof_index = index
        self._set_options(declared, options, scope)

    def _define_extend(self, holder: Any, messages: Any, extend: Extend, scope: str) -> None:
        extendee = self.names.resolve(extend.extendee, scope, Kind.MESSAGE)
        if extendee is None:
            raise InvalidSchema(f"{extend.extendee} is no message that is known here, at {extend.where}")
        for member in extend.fields:
            field = holder.extension.add(extendee="." + extendee)
            self._define_field(field, messages, member, scope)

    def _define_field(self, field: Any, messages: Any, member: Field | Group, scope: str) -> None:
        is_extension = field.HasField("extendee")
        check_label(self.file, member, is_extension=is_extension)
        field.name = field_name(member)
        field.number = member.number
        field.label = _LABELS[member.label]
        if member.label is None and not is_extension:
            self.unlabelled.add((scope, member.number))
        elif member.label == "optional" and self.file.is_proto3:
            field.proto3_optional = True
        if isinstance(member, Group):
            field.type = FieldDescriptorProto.TYPE_GROUP
            field.type_name = "." + join(scope, member.message.name)
            self._define_message(messages.add(), member.message, scope)
        elif member.key is not None:
            self._define_map(field, messages.add(), member, scope)
        else:
            self._set_type(field, member.type, scope, member)
        field.json_name = json_name(field.name)
        options = []
        for option in member.options:
            if str(option) == "default":
                if self.file.is_proto3:
                    raise InvalidSchema(f"proto3 has no default values, at {option.where}")
                field.default_value = default_text(field, option)
            elif str(option) == "json_name":
                if not isinstance(option.value, bytes):
                    raise InvalidSchema(f"json_name is a string, at {option.where}")
                field.json_name = option.value.decode(errors="replace")
            else:
                options.append(option)
        self._set_options(field, options, scope)

    def _define_map(self, field: Any, entry: Any, member: Field, scope: str) -> None:
        if member.key not in SCALARS or member.key in _NO_KEYS:
            raise InvalidSchema(f"{member.key} is no type for keys of a map, at {member.where}")
        entry.name = map_entry_name(member.name)
        entry.options.map_entry = True
        for number, name, type_name in ((1, "key", member.key), (2, "value", member.type)):
            inner = entry.field.add(name=name, number=number, json_name=name)
            inner.label = FieldDescriptorProto.LABEL_OPTIONAL
            self._set_type(inner, type_name, scope, member)
        field.label = FieldDescriptorProto.LABEL_REPEATED
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = "." + join(scope, entry.name)

    def _set_type(self, field: Any, type_name: str, scope: str, member: Field) -> None:
        if type_name in SCALARS:
            field.type = SCALARS[type_name]
            return
        full_name = self.names.resolve(type_name, scope, Kind.MESSAGE, Kind.ENUM)
        if full_name is None:
            raise InvalidSchema(f"the type {type_name} of {member.name} is not defined, at {member.where}")
        is_enum = self.names.kind(full_name) is Kind.ENUM
        field.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = "." + full_name

    def _define_enum(self, proto: Any, enum: Enum, scope: str) -> None:
        check_enum(self.file, enum)
        proto.name = enum.name
        for member in enum.members:
            match member:
                case EnumValue():
                    value = proto.value.add(name=member.name, number=member.number)
                    self._set_options(value, member.options, scope)
                case Reserved():
                    for reserved in member.values:
                        if isinstance(reserved, str):
                            proto.reserved_name.append(reserved)
                        else:
                            proto.reserved_range.add(start=reserved[0], end=reserved[1])
                case Option():
                    pass
        self._set_options(proto, [m for m in enum.members if isinstance(m, Option)], scope)

    def _define_service(self, service: Service) -> None:
        scope = join(self.file.package, service.name)
        proto = self.proto.service.add(name=service.name)
        options = []
        for member in service.members:
            if isinstance(member, Option):
                options.append(member)
                continue
            self._define_method(proto.method.add(name=member.name), member, scope)
        self._set_options(proto, options, scope)

    def _define_method(self, proto: Any, method: Method, scope: str) -> None:
        for attribute, name in (("input_type", method.request), ("output_type", method.response)):
            full_name = self.names.resolve(name, scope, Kind.MESSAGE)
            if full_name is None:
                raise InvalidSchema(f"{name} is no message that is known here, at {method.where}")
            setattr(proto, attribute, "." + full_name)
        if method.request_streams:
            proto.client_streaming = True
        if method.response_streams:
            proto.server_streaming = True
        self._set_options(proto, method.options, scope)

    def _set_options(self, proto: Any, options: list[Option], scope: str) -> None:
        custom = [option for option in options if is_custom(option)]
        if custom:
            self.custom.append((proto.options, custom, scope))
        for option in options:
            if not is_custom(option):
                self.setter.set(proto.options, option, scope)
