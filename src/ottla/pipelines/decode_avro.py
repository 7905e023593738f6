"""Avro in the Confluent wire format: the writer's schema by the record's id, the reader's by the subject.

The columns of a flow are those of the subject's latest schema when the flow starts. Records of older or newer
schemas are resolved to it by Avro's rules; one that cannot be is a bad record.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.pipelines.decode import Decoded, Subject
from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.registry import Schema, cached_registry, cached_schema
from ottla.pipelines.wire_format import HEADER_BYTES, schema_id

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class AvroDecoder:
    """Avro records of a subject."""

    registry: str | None = None
    subject: str | None = None

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        require("fastavro", "registry")
        import pyarrow as pa

        from ottla.pipelines.avro_types import arrow_type
        from ottla.pipelines.decode_rows import decoded_column

        url, name = subject.registry_url(self.registry), subject.name(self.subject)
        schema = cached_registry(url).latest(name)
        if schema.kind != "AVRO":
            raise PipelineError(f"subject {name} of the registry at {url} is {schema.kind}, not AVRO")
        texts = _texts(url, schema)
        parsed, named = _parsed(texts, logical_types=True)
        wire_type = arrow_type(parsed, named)
        return Decoded(
            decoded_column(payload, AvroRows(url, texts), wire_type), pa.types.is_struct(wire_type)
        )


@dataclass(frozen=True)
class AvroRows:
    """Reads records on an executor. `reader` are the texts of the reader's schema, what it refers to
    first."""

    url: str
    reader: tuple[str, ...]

    def row(self, record: bytes) -> Any:
        import fastavro

        from ottla.pipelines.decode_rows import BadRecord

        writer = _writer(self.url, schema_id(record))
        body = io.BytesIO(record[HEADER_BYTES:])
        try:
            value = fastavro.schemaless_reader(body, writer, _reader(self.reader))
        except RecursionError:
            raise BadRecord("is nested too deeply") from None
        except Exception as error:
            # fastavro has no family of errors: cut-off data raises EOFError, wrong data whatever it trips
            # over.
            raise BadRecord(f"is not Avro of its schema: {type(error).__name__} {error}".rstrip()) from None
        if body.read(1):
            raise BadRecord("goes on after the end of its Avro record")
        return value


_readers: dict[tuple[str, ...], Any] = {}
_writers: dict[tuple[str, int], Any] = {}


def _reader(texts: tuple[str, ...]) -> Any:
    known = _readers.get(texts)
    if known is None:
        known = _readers[texts] = _parsed(texts, logical_types=False)[0]
    return known


def _writer(url: str, identifier: int) -> Any:
    key = (url, identifier)
    known = _writers.get(key)
    if known is None:
        from ottla.pipelines.decode_rows import BadRecord

        schema = cached_schema(url, identifier)
        if schema.kind != "AVRO":
            raise BadRecord(f"has schema id {identifier}, which is {schema.kind} and not AVRO")
        known = _writers[key] = _parsed(_texts(url, schema), logical_types=False)[0]
    return known


def _texts(url: str, schema: Schema) -> tuple[str, ...]:
    """The schema's text after those it refers to, each once."""
    found: dict[str, None] = {}

    def walk(each: Schema) -> None:
        for reference in each.references:
            walk(cached_registry(url).version(reference.subject, reference.version))
        found.setdefault(each.text)

    walk(schema)
    return tuple(found)


def _parsed(texts: tuple[str, ...], *, logical_types: bool) -> tuple[Any, dict[str, Any]]:
    import fastavro

    from ottla.pipelines.avro_types import without_logical_types

    named: dict[str, Any] = {}
    parsed: Any = None
    for text in texts:
        try:
            # A registry may hold the bare name of a primitive type without the quotes of JSON.
            schema = json.loads(text) if text.lstrip()[:1] in ("{", "[", '"') else text.strip()
            parsed = fastavro.parse_schema(
                schema if logical_types else without_logical_types(schema), named_schemas=named
            )
        except (ValueError, fastavro.schema.SchemaParseException) as error:
            raise PipelineError(f"the registry's Avro schema cannot be read: {error}") from None
    return parsed, named
