"""Flows: what a pipeline is made of. A flow is a function that builds a streaming DataFrame, and a sink.

    @flow(sink=sinks.parquet("out/orders"), dead_letter="orders.dead")
    def orders(spark):
        return read.topic("orders", decode=read.json("id long, amount double"))

The decorator starts nothing: it makes a Flow, and the runner starts every Flow it finds in the file, in the
order they are written there. A function without a sink may return Spark's own `frame.writeStream...`; it gets
its name, checkpoint and trigger here and is otherwise left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.pipelines.sinks.sink import Sink

OutputMode = Literal["append", "update", "complete"]
Function = Callable[["SparkSession"], "DataFrame | DataStreamWriter"]

# A name is also a directory of checkpoints and a part of topic names and table properties.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
DEAD_LETTER_SUFFIX = "-dead-letter"


@dataclass(frozen=True)
class Flow:
    """A named function that builds a query, and where its rows go."""

    name: str
    function: Function
    sink: Sink | None = None
    dead_letter: str | None = None
    mode: OutputMode = "append"
    trigger: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name.endswith(DEAD_LETTER_SUFFIX):
            raise PipelineError(
                f"{self.name!r} cannot be the name of a flow: letters, digits, '_', '.' and '-', at most 100,"
                f" and not ending in {DEAD_LETTER_SUFFIX}"
            )
        if self.mode not in ("append", "update", "complete"):
            raise PipelineError(f"flow {self.name}: mode {self.mode!r} is none of append, update, complete")

    @property
    def dead_letter_name(self) -> str:
        """The name of the second query, which writes what does not decode."""
        return self.name + DEAD_LETTER_SUFFIX

    def __call__(self, spark: SparkSession) -> DataFrame | DataStreamWriter:
        """The function itself, for tests and notebooks."""
        return self.function(spark)


@overload
def flow(function: Function, /) -> Flow: ...
@overload
def flow(
    *,
    sink: Sink | None = None,
    name: str | None = None,
    dead_letter: str | None = None,
    mode: OutputMode = "append",
    trigger: str | None = None,
) -> Callable[[Function], Flow]: ...


def flow(
    function: Function | None = None,
    /,
    *,
    sink: Sink | None = None,
    name: str | None = None,
    dead_letter: str | None = None,
    mode: OutputMode = "append",
    trigger: str | None = None,
) -> Flow | Callable[[Function], Flow]:
    """Make a function a flow.

    dead_letter: the topic for records that do not decode; without it such a record fails the flow.
    mode: Spark's output mode. trigger: how often to look for new rows, such as "10 seconds"; as fast as
    possible unless said.
    """

    def make(function: Function) -> Flow:
        return Flow(
            name or str(getattr(function, "__name__", "flow")), function, sink, dead_letter, mode, trigger
        )

    return make if function is None else make(function)


def flows_of(module: ModuleType | dict[str, Any]) -> list[Flow]:
    """The flows of a file, in the order they are written there. Two of one name are refused."""
    names = module if isinstance(module, dict) else vars(module)
    found: dict[str, Flow] = {}
    for value in names.values():
        if isinstance(value, Flow) and found.setdefault(value.name, value) is not value:
            raise PipelineError(f"two flows are named {value.name}; their checkpoints would mix")
    return list(found.values())
