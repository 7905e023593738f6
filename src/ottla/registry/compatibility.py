"""Whether a schema may be the next version of its subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.registry.formats.parsed import Parsed
from ottla.registry.levels import Level

# A large schema may differ from another in as many ways as it has lines.
MESSAGES_MAX: Final = 100


def incompatibilities(level: Level, new: Parsed, previous: Sequence[Parsed]) -> list[str]:
    """What speaks against `new` after those before it, the oldest first: against the first it fails on."""
    for old in reversed(previous if level.is_transitive else previous[-1:]):
        if level is not Level.NONE and type(old) is not type(new):
            return ["the schema is of another type than the one before it"]
        found = new.refused(old) if level.is_backward else []
        found += old.refused(new) if level.is_forward else []
        if found:
            return found[:MESSAGES_MAX]
    return []
