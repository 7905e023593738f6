"""The words of .proto text.

Comments and space are left out. A word knows where it stood, so that complaints can name line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from ottla.registry.errors import InvalidSchema

_LONGEST_NUMBER = 400

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/)
      | (?P<identifier>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.])
                 |[0-9]+[eE][+-]?[0-9]+(?![A-Za-z0-9_.]))
      | (?P<integer>(?:0[xX][0-9a-fA-F]+|[0-9]+)(?![A-Za-z0-9_.]))
      | (?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
      | (?P<symbol>[;{}\[\]()<>=,.:+-]|/(?!\*))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED |= {character: character for character in "\\'\"?"}


class Kind(Enum):
    IDENTIFIER = "identifier"
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end"


_KINDS = {kind.value: kind for kind in Kind}


class Position(NamedTuple):
    """Where something stood, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Token(NamedTuple):
    kind: Kind
    text: str
    where: Position

    def __str__(self) -> str:
        if self.kind is Kind.END:
            return "the end of the text"
        return f'"{self.text}"' if len(self.text) <= 40 else f'"{self.text[:40]}..."'


def tokens(text: str) -> Iterator[Token]:
    """Every word of the text, and an END. One by one, as they take many times the memory of the text."""
    at, line, line_start = 0, 1, 0
    if text.startswith("\ufeff"):
        at = line_start = 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidSchema(f"{_why_not(text, at)} at {Position(line, at - line_start + 1)}")
        word, name = match.group(), match.lastgroup
        if name == "space":
            newlines = word.count("\n")
            if newlines:
                line += newlines
                line_start = at + word.rindex("\n") + 1
        else:
            where = Position(line, at - line_start + 1)
            if name in ("float", "integer") and len(word) > _LONGEST_NUMBER:
                raise InvalidSchema(f"a number of {len(word)} digits at {where}")
            yield Token(_KINDS[str(name)], word, where)
        at = match.end()
    yield Token(Kind.END, "", Position(line, at - line_start + 1))


def _why_not(text: str, at: int) -> str:
    if text.startswith("/*", at):
        return "a comment without an end"
    if text[at] in "\"'":
        return "a string without an end"
    if text[at].isdigit():
        return "a number that cannot be read"
    return f"the character {text[at]!r} has no meaning"


def string_bytes(token: Token) -> bytes:
    """What a string in quotes stands for. Bytes, as escapes can spell what is no text."""

    def plain(match: re.Match[str]) -> str:
        octal, hexadecimal, short, long, character = match.groups()
        # Bytes that are no text travel through the string as lone surrogates.
        if octal or hexadecimal:
            byte = int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)
            return bytes([byte]).decode("utf-8", "surrogateescape")
        if short or long:
            point = int(short or long, 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                raise InvalidSchema(f"{match.group()} is no character, in the string at {token.where}")
            return chr(point)
        if character not in _ESCAPED:
            raise InvalidSchema(f"{match.group()} is no escape, in the string at {token.where}")
        return _ESCAPED[character]

    content = token.text[1:-1]
    try:
        return _ESCAPE.sub(plain, content).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidSchema(f"a character that is none in the string at {token.where}") from None
