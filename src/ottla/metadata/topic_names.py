"""Which names a topic may have."""

from __future__ import annotations

import re
from typing import Final

from ottla.protocol.errors import InvalidTopic

MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise `InvalidTopic` unless a topic may be called this."""
    if not name:
        raise InvalidTopic("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopic("Topic name is invalid: '.' or '..' is not allowed")
    if len(name) > MAX_LENGTH:
        raise InvalidTopic(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )


def collision_key(name: str) -> str | None:
    """What a name becomes in a metric, where '.' and '_' look the same. None if it has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None
