"""JSON in the Confluent wire format, checked against the JSON Schema that its id names.

The check is made in Python, with the schema the record was written with; the columns are then read by Spark's
own `from_json`. Without the check everything stays in the JVM.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.pipelines.decode import Decoded, Subject
from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.registry import Schema, cached_registry, cached_schema
from ottla.pipelines.wire_format import HEADER_BYTES, schema_id

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class JsonSchemaDecoder:
    """JSON records of a subject. A `schema` of one's own overrides the columns that the subject's has."""

    registry: str | None = None
    subject: str | None = None
    schema: str | StructType | None = None
    validate: bool = True

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        from pyspark.sql import functions as F

        from ottla.pipelines.decode_text import checked, corrupt_kept, with_corrupt_record

        url = subject.registry_url(self.registry)
        schema = self.schema or self._columns(url, subject.name(self.subject))
        body = F.substring(payload, HEADER_BYTES + 1, 2**31 - 1)
        parsed = F.from_json(body.cast("string"), with_corrupt_record(schema), corrupt_kept({}))
        both = F.struct(parsed.alias("parsed"), self._header_error(payload, url).alias("header"))

        def judged(column: Column) -> Column:
            read = checked(column["parsed"], schema, body, "JSON")
            error = F.coalesce(column["header"], read["error"])
            return F.struct(F.when(error.isNull(), read["value"]).alias("value"), error.alias("error"))

        return Decoded(both, True, judged)

    def _columns(self, url: str, name: str) -> StructType:
        from ottla.pipelines.json_schema_types import spark_type

        schema = cached_registry(url).latest(name)
        if schema.kind != "JSON":
            raise PipelineError(f"subject {name} of the registry at {url} is {schema.kind}, not JSON")
        return spark_type(_parse(schema.text), _documents(url, schema))

    def _header_error(self, payload: Column, url: str) -> Column:
        from pyspark.sql import functions as F

        if self.validate:
            require("jsonschema", "registry")
            from ottla.pipelines.decode_rows import decoded_column, text_type

            return decoded_column(payload, JsonSchemaRows(url), text_type())["error"]
        is_framed = (F.length(payload) >= HEADER_BYTES) & (F.substring(payload, 1, 1) == F.lit(b"\0"))
        return F.when(
            payload.isNotNull() & ~is_framed, F.lit("does not start with the magic byte 0 and a schema id")
        )


@dataclass(frozen=True)
class JsonSchemaRows:
    """Checks records on an executor. The value it answers is of no use; the error is."""

    url: str

    def row(self, record: bytes) -> Any:
        from jsonschema.exceptions import best_match

        from ottla.pipelines.decode_rows import BadRecord

        validator = _validator(self.url, schema_id(record))
        try:
            value = json.loads(record[HEADER_BYTES:])
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"is not JSON: {error}") from None
        wrong = best_match(validator.iter_errors(value))
        if wrong is not None:
            raise BadRecord(f"does not follow its JSON Schema at {wrong.json_path}: {wrong.message}")
        return None


_validators: dict[tuple[str, int], Any] = {}


def _validator(url: str, identifier: int) -> Any:
    key = (url, identifier)
    known = _validators.get(key)
    if known is None:
        from jsonschema.validators import validator_for
        from referencing import Registry as Documents
        from referencing import Resource
        from referencing.jsonschema import DRAFT7

        from ottla.pipelines.decode_rows import BadRecord

        schema = cached_schema(url, identifier)
        if schema.kind != "JSON":
            raise BadRecord(f"has schema id {identifier}, which is {schema.kind} and not JSON")
        parsed = _parse(schema.text)
        documents: Any = Documents().with_resources(
            (name, Resource.from_contents(each, default_specification=DRAFT7))
            for name, each in _documents(url, schema).items()
        )
        known = validator_for(parsed)(parsed, registry=documents)
        _validators[key] = known
    return known


def _documents(url: str, schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for reference in schema.references:
        other = cached_registry(url).version(reference.subject, reference.version)
        found[reference.name] = _parse(other.text)
        found.update(_documents(url, other))
    return found


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise PipelineError(f"the registry's JSON Schema cannot be read: {error}") from None
