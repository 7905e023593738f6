"""A schema that is to be registered: its text, what it is written in, and what it refers to."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ottla.cli.running import Misused
from ottla.registry.schemas import Reference, Schema, SchemaType

STDIN: Final = "-"
SUFFIXES: Final = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON, ".proto": SchemaType.PROTOBUF}
# More than any registry takes, and less than what keeps a wrong file from being read to its end.
FILE_MAX: Final = 16 << 20


def schema_from(file: str, kind: str | None, references: Iterable[str]) -> Schema:
    """Raises Misused, and OSError for a file that cannot be read."""
    known = SchemaType(kind.upper()) if kind is not None else SUFFIXES.get(Path(file).suffix.lower())
    if known is None:
        what = "the standard input does" if file == STDIN else f"the name {file} does"
        raise Misused(f"{what} not say what the schema is written in: add --type avro, json or protobuf")
    used = tuple(_reference(each) for each in references)
    return Schema(known, _text(file), used)


def _text(file: str) -> str:
    if file == STDIN:
        content = sys.stdin.buffer.read(FILE_MAX + 1)
    else:
        with Path(file).open("rb") as opened:
            content = opened.read(FILE_MAX + 1)
    name = "the standard input" if file == STDIN else file
    if len(content) > FILE_MAX:
        raise Misused(f"{name} has more than {FILE_MAX:,} bytes, which is no schema")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Misused(f"{name} is not text in UTF-8") from None
    if not text.strip():
        raise Misused(f"{name} is empty")
    return text


def _reference(text: str) -> Reference:
    name, _, place = text.partition("=")
    subject, _, version = place.rpartition(":")
    if not name or not subject or not version.isascii() or not version.isdigit():
        raise Misused(f"--reference {text}: it should look like NAME=SUBJECT:VERSION, such as a.proto=a:1")
    return Reference(name, subject, int(version[:11]))
