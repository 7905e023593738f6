"""Text, JSON and CSV, by Spark's own functions: nothing leaves the JVM.

Spark reads what it can of a bad record and keeps the record's text in a column of its own when asked to; that
column is how we know. A field of the wrong type makes the record bad, a missing one is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.pipelines.decode import Decoded, Subject

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

_CORRUPT = "_ottla_corrupt_record"
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class StringDecoder:
    """UTF-8 text as one column."""

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        from pyspark.sql import functions as F

        text = F.try_validate_utf8(payload.cast("string"))
        return Decoded(F.struct(text.alias("value"), _not_utf8(payload).alias("error")), is_struct=False)


@dataclass(frozen=True)
class JsonDecoder:
    """A JSON object by the schema that was given."""

    schema: str | StructType
    options: Mapping[str, str] = field(default_factory=dict)

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        from pyspark.sql import functions as F

        text = payload.cast("string")
        parsed = F.from_json(text, with_corrupt_record(self.schema), corrupt_kept(self.options))
        return Decoded(parsed, True, lambda column: checked(column, self.schema, payload, "JSON"))


@dataclass(frozen=True)
class CsvDecoder:
    """One line of CSV by the schema that was given. Too few or too many fields make it bad."""

    schema: str | StructType
    options: Mapping[str, str] = field(default_factory=dict)

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        from pyspark.sql import functions as F

        fields = with_corrupt_record(self.schema).fields
        schema = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
        parsed = F.from_csv(payload.cast("string"), schema, corrupt_kept(self.options))
        return Decoded(
            parsed, True, lambda column: checked(column, self.schema, payload, "CSV", empty_is_bad=True)
        )


def struct_type(schema: str | StructType) -> StructType:
    """A schema as Spark's type, from its text if need be."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        from ottla.pipelines.errors import PipelineError

        raise PipelineError(
            f"a schema names columns, such as 'id long, name string'; this one does not: {schema}"
        )
    return parsed


def with_corrupt_record(schema: str | StructType) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*struct_type(schema).fields, StructField(_CORRUPT, StringType())])


def corrupt_kept(options: Mapping[str, str]) -> dict[str, str]:
    return {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


def checked(
    parsed: Column, schema: str | StructType, payload: Column, format_name: str, *, empty_is_bad: bool = False
) -> Column:
    """The struct of value and error for what Spark has parsed."""
    from pyspark.sql import functions as F

    text = payload.cast("string")
    bad = parsed[_CORRUPT].isNotNull() | (parsed.isNull() & payload.isNotNull())
    if empty_is_bad:
        bad = bad | (F.length(payload) == 0)
    shown = F.substring(text, 1, _SHOWN_CHARACTERS)
    said = F.concat(F.lit(f"is not {format_name} of the expected schema: "), shown)
    error = F.coalesce(_not_utf8(payload), F.when(bad, said))
    names = [each.name for each in struct_type(schema).fields]
    value = F.struct(*(parsed[name].alias(name) for name in names))
    return F.struct(F.when(error.isNull() & payload.isNotNull(), value).alias("value"), error.alias("error"))


def _not_utf8(payload: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(~F.is_valid_utf8(payload.cast("string")), F.lit("is not UTF-8 text"))
