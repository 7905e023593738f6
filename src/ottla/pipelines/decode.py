"""What a decoder is: bytes of a record to columns, or a line that says why not.

A decoder never fails on a bad record and never drops one. It answers two things for each: the value, null if
there is none, and the error, null if there is none. What becomes of the bad ones is the reader's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column

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
    """A column that holds a struct of `value` and `error`.

    is_struct: whether the value has fields, which become columns, or is a single column itself.
    """

    column: Column
    is_struct: bool


class Decoder(Protocol):
    """How a key or a value is read."""

    def decoded(self, payload: Column, subject: Subject) -> Decoded:
        """Called on the driver when the flow is built."""
        ...
