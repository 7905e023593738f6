"""What a decoder is: bytes of a record to columns, or a line that says why not.

A decoder never fails on a bad record and never drops one. It answers two things for each: the value, null if
there is none, and the error, null if there is none. What becomes of the bad ones is the reader's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Part = Literal["key", "value"]


@dataclass(frozen=True)
class Subject:
    """Whose bytes are decoded: the key or the value of a topic's records, with which registry at hand."""

    topic: str
    part: Part
    registry: str | None

    def registry_url(self, own: str | None) -> str:
        url = own or self.registry
        if url is None:
            raise PipelineError(
                "no schema registry is known; give registry=, or set `registry` in pipeline.toml"
            )
        return url

    def name(self, own: str | None) -> str:
        """The subject in the registry: the topic's own, unless another was named."""
        return own or f"{self.topic}-{self.part}"


@dataclass(frozen=True)
class Decoded:
    """What becomes of a payload, in two steps, so that the costly one is done once.

    column: the costly one, from the record's columns. judged: from its result to a struct of `value` and
    `error`.
    is_struct: whether the value has fields, which become columns, or is a single column itself.
    """

    column: Column
    is_struct: bool
    judged: Callable[[Column], Column] = lambda column: column

    def add_to(self, rows: DataFrame, name: str) -> DataFrame:
        """The rows with a column of this name, a struct of `value` and `error`."""
        from pyspark.sql import functions as F

        step = f"{name}_step"
        costly = rows.withColumn(step, once(self.column))
        return costly.withColumn(name, self.judged(F.col(step))).drop(step)


def once(column: Column) -> Column:
    """The same column, but computed in one place.

    Spark copies an expression into every filter and column that looks at its result, where it is computed
    again for each, unless the expression depends on where it runs. The condition is always true.
    """
    from pyspark.sql import functions as F

    return F.when(F.spark_partition_id() >= 0, column)


class Decoder(Protocol):
    """How a key or a value is read."""

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        """Called on the driver when the flow is built."""
        ...
