"""The types of a schema by name, and what kinds of fields there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ottla.registry.formats.protobuf.described import FieldDescriptorProto
from ottla.registry.formats.protobuf.files import Linked
from ottla.registry.formats.protobuf.names import join

MAP, SCALAR, MESSAGE = "map", "scalar", "message"
STRING = "string or bytes"
# Within a kind, a value of one type can be read as one of another.
_SCALAR_KINDS = {
    "TYPE_INT32": "number",
    "TYPE_INT64": "number",
    "TYPE_UINT32": "number",
    "TYPE_UINT64": "number",
    "TYPE_BOOL": "number",
    "TYPE_ENUM": "number",
    "TYPE_SINT32": "signed number",
    "TYPE_SINT64": "signed number",
    "TYPE_FIXED32": "fixed32",
    "TYPE_SFIXED32": "fixed32",
    "TYPE_FIXED64": "fixed64",
    "TYPE_SFIXED64": "fixed64",
    "TYPE_FLOAT": "float",
    "TYPE_DOUBLE": "double",
    "TYPE_STRING": STRING,
    "TYPE_BYTES": STRING,
}
_SCALAR_KIND = {FieldDescriptorProto.Type.Value(name): kind for name, kind in _SCALAR_KINDS.items()}


@dataclass(slots=True)
class MessageType:
    """A message, the package of its file, and whether that is the schema's own file and not an import."""

    proto: Any
    name: str
    package: str
    is_own: bool

    @property
    def local_name(self) -> str:
        return self.name.removeprefix(self.package + ".") if self.package else self.name


class Types:
    """Those of a schema and of all it imports."""

    def __init__(self, own: Linked, imported: Iterable[Linked]) -> None:
        self.file = own.proto
        self._messages: dict[str, MessageType] = {}
        self._unlabelled: set[tuple[str, int]] = set()
        for linked in (*imported, own):
            self._unlabelled |= linked.unlabelled
            self._add(linked.proto.message_type, linked.proto.package, linked.proto.package, linked is own)

    def _add(self, messages: Any, scope: str, package: str, is_own: bool) -> None:
        for message in messages:
            name = join(scope, message.name)
            self._messages[name] = MessageType(message, name, package, is_own)
            self._add(message.nested_type, name, package, is_own)

    def message(self, name: str) -> MessageType:
        return self._messages[name]

    def type_of(self, field: Any) -> MessageType:
        return self._messages[field.type_name[1:]]

    def kind(self, field: Any) -> str:
        if field.type in _SCALAR_KIND:
            return SCALAR
        return MAP if self.type_of(field).proto.options.map_entry else MESSAGE

    def entry(self, field: Any) -> tuple[Any, Any]:
        """The fields of a map's keys and values."""
        key, value = self.type_of(field).proto.field
        return key, value

    def label(self, message: str, field: Any) -> int | None:
        return None if (message, field.number) in self._unlabelled else int(field.label)


def scalar_kind(field: Any) -> str:
    return _SCALAR_KIND[field.type]


def is_required(field: Any) -> bool:
    return bool(field.label == FieldDescriptorProto.LABEL_REQUIRED)


def is_group(field: Any) -> bool:
    return bool(field.type == FieldDescriptorProto.TYPE_GROUP)


def named_messages(holder: Any, messages: Any) -> dict[str, Any]:
    """Messages that were declared as such, by name: no entries of maps and no groups."""
    fields = [*holder.extension, *getattr(holder, "field", ())]
    groups = {field.type_name.rpartition(".")[2] for field in fields if is_group(field)}
    return {
        message.name: message
        for message in messages
        if message.name not in groups and not message.options.map_entry
    }


def fields_by_number(message: Any) -> dict[int, Any]:
    return {field.number: field for field in message.field if not is_group(field)}


def oneofs(message: Any) -> dict[str, list[int]]:
    """The numbers of the fields in each oneof, without those that stand for an optional field of proto3."""
    found: dict[str, list[int]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional and not is_group(field):
            found.setdefault(message.oneof_decl[field.oneof_index].name, []).append(field.number)
    return found
