"""JSON Schema: drafts 4, 6, 7, 2019-09 and 2020-12, as `$schema` says, or draft 7 if it says nothing known.

A schema is taken if Confluent's registry takes it, with these exceptions. Nothing is fetched: a `$ref` to a
document that is neither among the references nor a meta-schema of JSON Schema is refused. Nesting, numbers
and time are bounded. Patterns are not checked, as they are not Python's but Java's; those of
`patternProperties` are matched with the names of properties as far as `patterns` understands them.

The answers about compatibility are Confluent's too, of its strict policy, down to their oddities (a reference
to a reference is not followed, what is unknown beside `unevaluatedProperties` hides it), but for two: an
`exclusiveMaximum` that decreases is refused, where Confluent's fails or compares it with `maximum`; and
schemas that would take too long to compare are refused for that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema.comparison import Comparison, TooMuchWork
from ottla.registry.formats.json_schema.drafts import DraftLoader
from ottla.registry.formats.json_schema.kinds import compared
from ottla.registry.formats.json_schema.model import Subschema
from ottla.registry.formats.json_schema.modern import ModernLoader
from ottla.registry.formats.json_schema.references import Documents
from ottla.registry.formats.json_schema.text import MAX_DEPTH, kind, read, write

# A message that quotes a schema does not repeat a megabyte of it.
_MAX_MESSAGE = 1000


class JsonSchema:
    """A JSON Schema that was understood."""

    def __init__(self, raw: Any, canonical: str, root: Subschema) -> None:
        self._raw = raw
        self.canonical = canonical
        self.root = root

    @cached_property
    def normalized(self) -> str:
        return write(self._raw, ordered=True)

    def refused(self, written: JsonSchema) -> list[str]:
        try:
            return Comparison(compared).compare(written.root, self.root).messages()
        except TooMuchWork:
            return ["the schemas are too large to compare"]
        except RecursionError:
            raise InvalidSchema(f"nested deeper than {MAX_DEPTH} levels") from None


def parse(text: str, references: Mapping[str, str]) -> JsonSchema:
    """Reads a schema; `references` are the texts of others, by the names that it refers to them by."""
    try:
        raw = read(text)
        if not isinstance(raw, dict | bool):
            raise InvalidSchema(f"a JSON Schema must be an object or a boolean, not {kind(raw)}")
        canonical = write(raw)
        documents = Documents(raw, references)
        loader = ModernLoader(documents) if documents.main.modern else DraftLoader(documents)
        return JsonSchema(raw, canonical, loader.load())
    except InvalidSchema as error:
        if len(str(error)) <= _MAX_MESSAGE:
            raise
        raise InvalidSchema(f"{str(error)[:_MAX_MESSAGE]}...") from None
    except RecursionError:
        raise InvalidSchema(f"nested deeper than {MAX_DEPTH} levels") from None
