"""Decoding in Python: an Arrow column of bytes to an Arrow column of values and errors, on the executors.

What a format has to bring is a `RowDecoder`: bytes to a plain Python value that Arrow can take, raising
`BadRecord` for what is not in the format. It travels to the executors by pickle, so it carries only texts and
finds schemas there, once per process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ottla.pipelines.registry import UnknownSchema
from ottla.pipelines.wire_format import NotWireFormat

if TYPE_CHECKING:
    from pyspark.sql import Column


class BadRecord(ValueError):
    """This record cannot be decoded. The message says why."""


def text_type() -> pa.DataType:
    return pa.string()


class RowDecoder(Protocol):
    """One record's bytes to a value."""

    def row(self, record: bytes) -> Any: ...


def decoded_column(payload: Column, rows: RowDecoder, wire_type: pa.DataType) -> Column:
    """A struct of `value` and `error` for each payload."""
    from pyspark.sql.pandas import functions
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType

    spark_type = from_arrow_type(wire_type, prefer_timestamp_ntz=True)
    result = StructType([StructField("value", spark_type), StructField("error", StringType())])
    arrow_type = to_arrow_type(spark_type, timezone="UTC")

    def decode(payloads: pa.Array) -> pa.Array:
        return decode_array(payloads, rows, wire_type, arrow_type)

    # The kind of function is taken from the hints above, which pyspark's own types do not know of.
    arrow_udf: Any = functions.arrow_udf
    column: Column = arrow_udf(decode, result)(payload)
    return column


def decode_array(
    payloads: pa.Array, rows: RowDecoder, wire_type: pa.DataType, arrow_type: pa.DataType
) -> pa.StructArray:
    """All payloads of a batch. A record that cannot be decoded costs only itself."""
    values: list[Any] = []
    errors: list[str | None] = []
    for payload in payloads.to_pylist():
        value = error = None
        if payload is not None:
            try:
                value = rows.row(payload)
            except (BadRecord, NotWireFormat, UnknownSchema) as bad:
                error = str(bad)
        values.append(value)
        errors.append(error)
    column = _array(values, errors, wire_type, arrow_type)
    return pa.StructArray.from_arrays([column, pa.array(errors, pa.string())], ["value", "error"])


def _array(
    values: list[Any], errors: list[str | None], wire_type: pa.DataType, arrow_type: pa.DataType
) -> pa.Array:
    try:
        return pa.array(values, wire_type).cast(arrow_type, safe=False)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # Some value does not fit its type, such as a decimal with too many digits: find out which.
        for index, value in enumerate(values):
            try:
                pa.array([value], wire_type).cast(arrow_type, safe=False)
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                values[index] = None
                errors[index] = f"does not fit its columns: {error}"
        return pa.array(values, wire_type).cast(arrow_type, safe=False)
