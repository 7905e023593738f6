"""JSON as Avro's Java library reads and writes it, so that a schema's text is the same to the byte.

What that library takes beyond JSON is taken: comments. What it writes in its own way is written in that way:
numbers with a fraction, and control characters. Unlike there, nesting ends at `MAX_NESTING` and not at 1000:
what walks over a schema may then call itself, a few times for each level.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import TypeAlias

from ottla.registry.errors import InvalidSchema

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_NESTING = 200
EXCERPT_CHARACTERS = 200

# A string that does not end and a comment that does not end match too: else every quote or slash in them
# would be tried as another beginning.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\r\n]*+|/\*(?:.*?\*/|.*)', re.DOTALL)
_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def read(text: str) -> Json:
    if "//" in text or "/*" in text:
        text = _STRING_OR_COMMENT.sub(_without_comment, text)
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidSchema(f"JSON is nested deeper than {MAX_NESTING} levels") from None
    except ValueError as error:
        raise InvalidSchema(f"Not JSON: {error}") from None
    check_nesting(value)
    return value


def write(value: Json) -> str:
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def excerpt(value: Json) -> str:
    """For messages."""
    text = write(value)
    return text if len(text) <= EXCERPT_CHARACTERS else text[:EXCERPT_CHARACTERS] + "..."


def _without_comment(match: re.Match[str]) -> str:
    found = match[0]
    if found.startswith('"'):
        return found
    if found.startswith("/*") and (len(found) < 4 or not found.endswith("*/")):
        raise InvalidSchema("Not JSON: a comment does not end")
    return " "


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number")


def check_nesting(value: Json) -> None:
    level = [value]
    for _ in range(MAX_NESTING + 1):
        below: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return
        level = below
    raise InvalidSchema(f"JSON is nested deeper than {MAX_NESTING} levels")


def _write(value: Json, parts: list[str]) -> None:
    match value:
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case int():
            parts.append(str(value))
        case float():
            parts.append(_write_double(value))
        case str():
            parts.append(_write_string(value))
        case list():
            parts.append("[")
            for index, item in enumerate(value):
                if index:
                    parts.append(",")
                _write(item, parts)
            parts.append("]")
        case dict():
            parts.append("{")
            for index, (key, item) in enumerate(value.items()):
                parts.append("," if index else "")
                parts.append(_write_string(key))
                parts.append(":")
                _write(item, parts)
            parts.append("}")


def _write_string(value: str) -> str:
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    # Half a surrogate pair is escaped too, since no encoding could carry it.
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"


def _write_double(value: float) -> str:
    """As Java's Double.toString: plain from a thousandth up to ten millions, else with an exponent."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    _, digits_tuple, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int), "NaN and the infinities are handled above"
    digits = "".join(map(str, digits_tuple))
    point = len(digits) + exponent
    digits = digits.rstrip("0")
    if not 1e-3 <= abs(value) < 1e7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
