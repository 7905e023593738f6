"""JSON as the registry reads and writes it: numbers keep the form they were written in, members their order.

The text that is kept is what Confluent's registry keeps (Jackson's, with exact decimals), so that the same
schema gets the same id there and here: no spaces, `1.50` stays `1.50`, `1e5` becomes `1E+5`, characters are
escaped only where JSON asks for it."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from ottla.registry.errors import InvalidSchema

# How deep arrays and objects may be nested. Everything that walks over a schema recurses as deep as this, and
# no deeper: references are followed by a worklist.
MAX_DEPTH = 100

# Jackson's bound on the digits of a number. A number of a megabyte takes quadratic time to read.
MAX_NUMBER_CHARACTERS = 1000

# Beyond this exponent a number has no use in a schema, and arithmetic with it no bound.
MAX_EXPONENT = 100_000

_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def read(text: str) -> Any:
    """The value of a JSON text: dict, list, str, int, Decimal, bool or None. Raises InvalidSchema."""
    try:
        # NaN and the infinities are taken, and kept as strings, as Jackson does.
        return json.loads(text, parse_float=_decimal, parse_int=_integer, parse_constant=str)
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"not JSON: {error}") from None
    except RecursionError:
        raise InvalidSchema(f"nested deeper than {MAX_DEPTH} levels") from None


def write(value: Any, *, ordered: bool = False) -> str:
    """The text of a value, with the members of objects in their order, or ordered by name."""
    parts: list[str] = []
    _write(value, parts, ordered, 0)
    text = "".join(parts)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("a string has half of a surrogate pair") from None
    return text


def by_name(name: str) -> bytes:
    """The key by which Java orders strings: their UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")


def kind(value: Any) -> str:
    """What a value is, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | Decimal():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARACTERS:
        raise InvalidSchema(f"a number has more than {MAX_NUMBER_CHARACTERS} digits")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    if len(digits) > MAX_NUMBER_CHARACTERS:
        raise InvalidSchema(f"a number has more than {MAX_NUMBER_CHARACTERS} digits")
    try:
        value = Decimal(digits)
    except InvalidOperation:
        raise InvalidSchema(f"the number {digits} is out of range") from None
    if not -MAX_EXPONENT <= value.adjusted() <= MAX_EXPONENT:
        raise InvalidSchema(f"the number {digits} is out of range")
    return value if value else abs(value)  # Java's decimals know no negative zero.


def _write(value: Any, parts: list[str], ordered: bool, depth: int) -> None:
    if isinstance(value, str):
        parts.append(_quoted(value))
    elif isinstance(value, dict):
        if depth == MAX_DEPTH:
            raise InvalidSchema(f"nested deeper than {MAX_DEPTH} levels")
        opening = "{"
        for name in sorted(value, key=by_name) if ordered else value:
            parts.append(f"{opening}{_quoted(name)}:")
            _write(value[name], parts, ordered, depth + 1)
            opening = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        if depth == MAX_DEPTH:
            raise InvalidSchema(f"nested deeper than {MAX_DEPTH} levels")
        opening = "["
        for item in value:
            parts.append(opening)
            _write(item, parts, ordered, depth + 1)
            opening = ","
        parts.append("]" if value else "[]")
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    else:
        parts.append(str(value))


def _quoted(value: str) -> str:
    if _ESCAPED.search(value) is None:
        return f'"{value}"'
    return '"' + _ESCAPED.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", value) + '"'
