"""What every format makes of a schema's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self


class Parsed(Protocol):
    """A schema that was understood."""

    @property
    def canonical(self) -> str:
        """The text that is kept: the same for texts that differ in nothing but how they are laid out."""
        ...

    @property
    def normalized(self) -> str:
        """As `canonical`, and the same too for texts that differ in the order of what has no order."""
        ...

    def refused(self, written: Self) -> list[str]:
        """Why data that was written with another schema cannot be read with this one; nothing if it can."""
        ...


class Parse(Protocol):
    """Each format's `parse`. `references` are texts of other schemas by the name they are used by, with those
    that they use in turn before them. Raises InvalidSchema."""

    def __call__(self, text: str, references: Mapping[str, str]) -> Parsed: ...
