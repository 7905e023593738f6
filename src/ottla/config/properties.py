"""Java property files: `server.properties`, `meta.properties` and the like.

One `name=value` a line. `=`, `:` or blanks separate; `#` and `!` start a comment line; a
backslash at the end continues the line, and before a character escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.config.settings import ConfigError

_BLANK = " \t\f"
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def parse_properties(text: str) -> dict[str, str]:
    """The properties in a text; a name given twice has the last value. Raises ConfigError."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, position = _take_name(line, number)
        properties[name] = _unescaped(line[position:], number)
    return properties


def write_properties(properties: Mapping[str, str], comment: str = "") -> str:
    """The text that `parse_properties` reads as these properties, in their order."""
    lines = [f"#{line}" for line in comment.splitlines()]
    lines += [f"{_escaped(name, True)}={_escaped(value, False)}" for name, value in properties.items()]
    return "".join(f"{line}\n" for line in lines)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, without comments and blank lines, numbered from 1."""
    parts: list[str] = []
    first = 0
    # Not splitlines(): that also breaks at characters which are data here.
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.lstrip(_BLANK)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        # An even number of backslashes at the end are escaped ones.
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            parts.append(line[:-1])
            continue
        parts.append(line)
        yield first, "".join(parts)
        parts = []
    if parts:
        yield first, "".join(parts)


def _take_name(line: str, number: int) -> tuple[str, int]:
    """The name at the start of a line, and where its value begins."""
    end = 0
    while end < len(line) and line[end] not in "=:" and line[end] not in _BLANK:
        end += 2 if line[end] == "\\" else 1
    name = _unescaped(line[:end], number)
    start = end
    while start < len(line) and line[start] in _BLANK:
        start += 1
    if start < len(line) and line[start] in "=:":
        start += 1
        while start < len(line) and line[start] in _BLANK:
            start += 1
    return name, start


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out.append(character)
        elif position < len(text):
            escape = text[position]
            position += 1
            if escape == "u":
                out.append(_code_unit(text[position : position + 4], number))
                position += 4
            else:
                out.append(_ESCAPED.get(escape, escape))
    joined = "".join(out)
    # \u escapes are UTF-16: a pair of them may be one character.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_unit(digits: str, number: int) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise ConfigError(f"line {number}: \\u needs four hexadecimal digits, not {digits!r}")
    return chr(int(digits, 16))


def _escaped(text: str, is_name: bool) -> str:
    out: list[str] = []
    for position, character in enumerate(text):
        if character in _ESCAPES:
            out.append(_ESCAPES[character])
        elif (is_name and character in "=:#! ") or (character == " " and position == 0):
            out.append(f"\\{character}")
        elif character < " " or character == "\x7f":
            out.append(f"\\u{ord(character):04x}")
        else:
            out.append(character)
    return "".join(out)
