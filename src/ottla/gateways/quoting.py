r"""How words are written in a line of the text door.

A word without spaces stands for itself. One with spaces, or with anything a line cannot hold, is written in
double quotes with `\n`, `\t`, `\"`, `\\` and `\xNN` inside. A lone `-` is no word at all: a message without a
key, or without a value. The last word of a line, a message's value, may have spaces and needs no quotes.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.protocol.errors import InvalidRequest

NONE: Final = "-"

_ESCAPED: Final = re.compile(r'\\(x[0-9a-fA-F]{2}|[nrt0"\\])')
_MEANING: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", '"': b'"', "\\": b"\\"}
_QUOTED_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_SPECIAL: Final = re.compile(r'[\\"\x00-\x1f\x7f\u0080-\u009f\u2028\u2029\udc80-\udcff]')
_SPACE: Final = re.compile(r"\s")
_NAMES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def whole_line(line: str) -> str:
    """A line that is quoted as a whole means what is inside the quotes."""
    if len(line) > 1 and line[0] in "\"'" and line[-1] == line[0]:
        return line[1:-1].strip()
    return line


def next_word(line: str, *, keep_quotes: bool = False) -> tuple[str, str]:
    """The first word of a line, and the rest of it. With `keep_quotes` the word is as it was written."""
    line = line.strip()
    if not line.startswith('"'):
        word, *rest = line.split(None, 1) or [""]
        return word, "".join(rest)
    match = _QUOTED_WORD.match(line)
    if match is None:
        raise InvalidRequest("a word that begins with a quote has to end with one")
    word, after = match[0], line[match.end() :]
    if after and not after[0].isspace():
        raise InvalidRequest("a quoted word ends at its quote: leave a space after it")
    if not keep_quotes:
        word = (unquoted(word) or b"").decode("utf-8", "surrogateescape")
    return word, after.strip()


def unquoted(word: str) -> bytes | None:
    """The bytes that a key or a value stands for."""
    if word == NONE:
        return None
    if len(word) > 1 and word[0] == '"' and _QUOTED_WORD.fullmatch(word):
        parts = bytearray()
        position = 1
        inside = word[:-1]
        while position < len(inside):
            if inside[position] != "\\":
                stop = inside.find("\\", position)
                stop = len(inside) if stop < 0 else stop
                parts += inside[position:stop].encode("utf-8", "surrogateescape")
                position = stop
                continue
            match = _ESCAPED.match(inside, position)
            if match is None:
                raise InvalidRequest(r"in quotes a backslash is one of \n \r \t \0 \" \\ \xNN")
            name = match[1]
            parts += bytes([int(name[1:], 16)]) if name[0] == "x" else _MEANING[name]
            position = match.end()
        return bytes(parts)
    return word.encode("utf-8", "surrogateescape")


def quoted(data: bytes | None, *, spaces: bool = False) -> str:
    """A key or a value as a word; with `spaces` it is the last one, which may have them."""
    if data is None:
        return NONE
    text = data.decode("utf-8", "surrogateescape")
    plain = text and text != NONE and text == text.strip() and not _SPECIAL.search(text)
    if plain and (spaces or not _SPACE.search(text)):
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in _NAMES:
        return _NAMES[character]
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    if _SPECIAL.match(character):
        return "".join(f"\\x{byte:02x}" for byte in character.encode())
    return character
