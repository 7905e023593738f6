"""Which names Avro's types, fields and symbols may have. A rule answers what is wrong with one, or None."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

NameRule: TypeAlias = Callable[[str], str | None]

# With its namespace. Java knows no bound, but a namespace of half a megabyte within which a thousand names
# are used would make as many names of that length.
MAX_NAME_CHARACTERS = 1024

_STRICT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def strict(name: str) -> str | None:
    """The specification's rule, which new schemas have to keep."""
    if _STRICT.fullmatch(name):
        return None
    if not name:
        return "Empty name"
    return f"Illegal {'character in' if _STRICT.match(name) else 'initial character'}: {name}"


def letters_of_any_script(name: str) -> str | None:
    """What Avro once took, and schemas that were registered then may have."""
    if not name:
        return "Empty name"
    if not (_is_letter(name[0]) or name[0] == "_"):
        return f"Illegal initial character: {name}"
    if not all(_is_letter(c) or c.isdecimal() or c == "_" for c in name):
        return f"Illegal character in: {name}"
    return None


def anything(name: str) -> str | None:
    return None


def _is_letter(character: str) -> bool:
    # Java looks at halves of surrogate pairs, none of which is a letter.
    return character.isalpha() and ord(character) < 0x10000
