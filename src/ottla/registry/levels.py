"""What a next version of a subject may change, and who may write at all."""

from __future__ import annotations

from enum import Enum


class Level(Enum):
    """Compatibility: with which versions before it a new one has to get along.

    Backward: who has the new schema reads what was written with the old one. Forward: the other way round.
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_backward(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))

    @property
    def is_transitive(self) -> bool:
        """Whether all versions count, and not only the latest."""
        return self.value.endswith("_TRANSITIVE")


class Mode(Enum):
    """In import and forward mode ids come with the schemas, and nothing is checked."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def brings_ids(self) -> bool:
        return self in (Mode.IMPORT, Mode.FORWARD)


DEFAULT_LEVEL = Level.BACKWARD
DEFAULT_MODE = Mode.READWRITE
