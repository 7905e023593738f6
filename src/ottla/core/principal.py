"""Who is at the other end of a connection."""

from __future__ import annotations

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """As Kafka writes it: `User:alice`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


USER: Final = "User"
# Everybody on a listener that does not ask who they are.
ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Raises ValueError for what is not `Type:name`."""
    kind, colon, name = text.partition(":")
    if not kind or not colon:
        raise ValueError(f"{text!r} is no principal: expected User:name")
    return Principal(kind, name)
