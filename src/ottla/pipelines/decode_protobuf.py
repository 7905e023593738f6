"""Protobuf in the Confluent wire format.

The columns of a flow are those of one message of the subject's latest schema when the flow starts: the one
that was named, else the first. Records are read by that message whatever version wrote them, as Protobuf
intends; the schema of a record's id says which message it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.pipelines.decode import Decoded, Subject
from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.registry import cached_registry, cached_schema
from ottla.pipelines.wire_format import message_indexes, schema_id

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class ProtobufDecoder:
    """Protobuf records of a subject."""

    registry: str | None = None
    subject: str | None = None
    message: str | None = None

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        require("google.protobuf", "registry")
        from ottla.pipelines.decode_rows import decoded_column
        from ottla.pipelines.proto_types import arrow_type

        url, name = subject.registry_url(self.registry), subject.name(self.subject)
        schema = cached_registry(url).latest(name, serialized=True)
        if schema.kind != "PROTOBUF":
            raise PipelineError(f"subject {name} of the registry at {url} is {schema.kind}, not PROTOBUF")
        reader = ProtobufRows(url, schema.id, self.message)
        return Decoded(decoded_column(payload, reader, arrow_type(reader.descriptor())), is_struct=True)


@dataclass(frozen=True)
class ProtobufRows:
    """Reads records on an executor, by a message of the schema with this id."""

    url: str
    reader_id: int
    message: str | None

    def row(self, record: bytes) -> Any:
        from google.protobuf.message import DecodeError

        from ottla.pipelines.decode_rows import BadRecord

        name, new, convert = _reader(self)
        writer_id = schema_id(record)
        indexes, start = message_indexes(record)
        written = _written(self.url, writer_id, indexes)
        if written != name:
            raise BadRecord(f"is a {written} and not a {name}")
        try:
            message = new()
            message.ParseFromString(record[start:])
        except DecodeError as error:
            raise BadRecord(f"is not Protobuf of {name}: {error}") from None
        return convert(message)

    def descriptor(self) -> Any:
        """The message that the columns are those of."""
        from ottla.pipelines.proto_files import message_at

        file = _file(self.url, self.reader_id)
        if self.message is None:
            found = message_at(file, (0,))
        else:
            short = self.message.removeprefix(f"{file.package}.")
            found = file.message_types_by_name.get(short.split(".")[0])
            for nested in short.split(".")[1:]:
                found = found and found.nested_types_by_name.get(nested)
        if found is None:
            there = ", ".join(file.message_types_by_name) or "none"
            raise PipelineError(f"the Protobuf schema has no message {self.message or ''}; it has: {there}")
        return found


_files: dict[tuple[str, int], Any] = {}
_readers: dict[ProtobufRows, Any] = {}
_messages: dict[tuple[str, int, tuple[int, ...]], str] = {}


def _file(url: str, identifier: int) -> Any:
    from ottla.pipelines.proto_files import file_descriptor

    key = (url, identifier)
    known = _files.get(key)
    if known is None:
        schema = cached_schema(url, identifier, serialized=True)
        if schema.kind != "PROTOBUF":
            from ottla.pipelines.decode_rows import BadRecord

            raise BadRecord(f"has schema id {identifier}, which is {schema.kind} and not PROTOBUF")
        known = _files[key] = file_descriptor(url, schema)
    return known


def _reader(rows: ProtobufRows) -> Any:
    known = _readers.get(rows)
    if known is None:
        from google.protobuf.message_factory import GetMessageClass

        from ottla.pipelines.proto_types import converter

        descriptor = rows.descriptor()
        known = (descriptor.full_name, GetMessageClass(descriptor), converter(descriptor))
        _readers[rows] = known
    return known


def _written(url: str, identifier: int, indexes: tuple[int, ...]) -> str:
    """The name of the message that a record says it is."""
    from ottla.pipelines.decode_rows import BadRecord
    from ottla.pipelines.proto_files import message_at

    key = (url, identifier, indexes)
    known = _messages.get(key)
    if known is None:
        found = message_at(_file(url, identifier), indexes)
        if found is None:
            raise BadRecord(f"names message {list(indexes)}, which schema id {identifier} does not have")
        known = _messages[key] = found.full_name
    return known
