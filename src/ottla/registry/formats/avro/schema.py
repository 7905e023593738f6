"""Avro, as Confluent's registry and the Java library beneath it (1.12) understand it.

A text is JSON: a primitive type's name stands in quotes. Of the modules beside this one `parser` makes
types of it, `text` the text of them that is kept, `normal` the one that is kept of a normalized
schema, and `compatibility` compares two. Each says where it departs from Confluent's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.avro.compatibility import differences
from ottla.registry.formats.avro.json import Json, check_nesting, read, write
from ottla.registry.formats.avro.names import anything, letters_of_any_script, strict
from ottla.registry.formats.avro.normal import normal
from ottla.registry.formats.avro.parser import Parser
from ottla.registry.formats.avro.text import rendered
from ottla.registry.formats.avro.types import Type


class AvroSchema:
    """A schema that was understood. `normalized` raises InvalidSchema if what comes out is none: a type that
    gets into another namespace may find its name taken there."""

    def __init__(self, schema: Json, references: Mapping[str, Json], is_new: bool) -> None:
        self._references = references
        self._is_new = is_new
        parser = Parser()
        self._referenced: list[str] = []
        for name, referenced in references.items():
            try:
                parsed = parser.parse(referenced, strict if is_new else anything, check_defaults=is_new)
            except InvalidSchema as error:
                raise InvalidSchema(f"Reference {name}: {error}") from None
            self._referenced.append(parsed.full_name)
        self.type: Type = parser.parse(
            schema, strict if is_new else letters_of_any_script, check_defaults=is_new
        )
        json = rendered(self.type, self._referenced)
        check_nesting(json)
        self.canonical: str = write(json)

    @cached_property
    def normalized(self) -> str:
        return AvroSchema(normal(self.type, self._referenced), self._references, self._is_new).canonical

    def refused(self, written: AvroSchema) -> list[str]:
        return differences(self.type, written.type)


def parse(text: str, references: Mapping[str, str]) -> AvroSchema:
    return _parse(text, references, is_new=True)


def parse_kept(text: str, references: Mapping[str, str]) -> AvroSchema:
    """A schema that was registered before is held to less: its defaults need not fit, its namespaces may be
    anything, and its names may have letters of any script."""
    return _parse(text, references, is_new=False)


def _parse(text: str, references: Mapping[str, str], *, is_new: bool) -> AvroSchema:
    return AvroSchema(read(text), {name: read(schema) for name, schema in references.items()}, is_new)
