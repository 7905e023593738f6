"""What a flow's function may lean on while it builds its query: where the broker is, where the project is.

`read.topic` finds these here, so that a flow does not have to hand them down. Outside of a run, in a notebook
or in a test, the environment answers: OTTLA_BOOTSTRAP, OTTLA_REGISTRY, and the session that is active.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.read import Source

DEFAULT_BOOTSTRAP = "localhost:9092"


@dataclass(frozen=True)
class Surroundings:
    """Where a pipeline runs. `properties` are client properties such as security.protocol."""

    root: Path
    bootstrap: str = DEFAULT_BOOTSTRAP
    registry: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def path(self, given: str) -> str:
        """A path of a sink: relative ones belong to the project, those with a scheme stay as they are."""
        if "://" in given or given.startswith("file:"):
            return given
        return str((self.root / given).resolve())

    def connector_options(self) -> dict[str, str]:
        """What every use of the data source needs."""
        options = {f"kafka.{name}": value for name, value in self.properties.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **options}


@dataclass
class Building:
    """A flow that is being built: what it has read so far."""

    spark: SparkSession
    surroundings: Surroundings
    flow: str
    has_dead_letter: bool = False
    max_offsets: int | None = None
    sources: list[Source] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)


_building: ContextVar[Building | None] = ContextVar("building", default=None)


@contextmanager
def building(flow: Building) -> Iterator[Building]:
    """Within this block `read.topic` reads for this flow."""
    token = _building.set(flow)
    try:
        yield flow
    finally:
        _building.reset(token)


def current() -> Building:
    """The flow that is being built, or one made from the environment."""
    known = _building.get()
    if known is not None:
        return known
    from pyspark.sql import SparkSession

    from ottla.pipelines.errors import PipelineError

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise PipelineError("there is no Spark session; run this with `ottla pipeline run`")
    return Building(spark, from_environment(Path.cwd()), flow="")


def from_environment(root: Path) -> Surroundings:
    return Surroundings(
        root=root,
        bootstrap=os.environ.get("OTTLA_BOOTSTRAP", DEFAULT_BOOTSTRAP),
        registry=os.environ.get("OTTLA_REGISTRY"),
    )
