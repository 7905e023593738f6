"""The columns of a topic: the schema of Spark's Kafka connector, as Spark itself would spell it in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

HEADERS_TYPE: Final = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}


def topic_schema(*, headers: bool = False, columns: Sequence[str] | None = None) -> pa.Schema:
    """All columns, headers only when asked for; or just those of `columns`, in that order.

    Every field may be null, as in the connector's schema, though only keys, values and those of headers are.
    Raises ValueError for a column that a topic does not have.
    """
    names = [name for name in TYPES if headers or name != "headers"] if columns is None else list(columns)
    for name in names:
        if name not in TYPES:
            raise ValueError(f"a topic has no column {name!r}; it has {', '.join(TYPES)}")
    if len(set(names)) != len(names):
        raise ValueError(f"a column is asked for twice: {', '.join(names)}")
    return pa.schema([pa.field(name, TYPES[name]) for name in names])
