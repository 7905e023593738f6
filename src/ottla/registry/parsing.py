"""From a schema's text to what its format makes of it, with the schemas that it refers to."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Final, cast

from ottla.registry.errors import InvalidSchema, RegistryError
from ottla.registry.formats.parsed import Parse, Parsed
from ottla.registry.image import Image
from ottla.registry.schemas import Schema, SchemaType

MODULES: Final = {
    SchemaType.AVRO: "ottla.registry.formats.avro.schema",
    SchemaType.JSON: "ottla.registry.formats.json_schema.schema",
    SchemaType.PROTOBUF: "ottla.registry.formats.protobuf.schema",
}
REFERENCES_MAX: Final = 1_000
# Versions are checked against the same ones before them again and again.
PARSED_KEPT: Final = 64
# What is larger is parsed each time: parsed it takes some forty bytes for each character.
KEPT_SIZE_MAX: Final = 32 << 10
# All that a schema is built on, in characters.
REFERENCED_SIZE_MAX: Final = 8 << 20

Texts = tuple[tuple[str, str], ...]


def referenced(schema: Schema, image: Image) -> Texts:
    """The texts of what a schema refers to, by name; what is used comes before what uses it."""
    found: dict[str, str] = {}
    under_way: set[str] = set()

    total = 0

    def visit(used: Schema) -> None:
        nonlocal total
        for reference in used.references:
            if reference.name in found or reference.name in under_way:
                continue
            if len(found) + len(under_way) >= REFERENCES_MAX:
                raise InvalidSchema(f"a schema is built on at most {REFERENCES_MAX} others")
            under_way.add(reference.name)
            version = image.subjects.get(reference.subject, {}).get(reference.version)
            if reference.version == -1:
                version = next(reversed(image.versions(reference.subject)), None)
            if version is None:
                raise InvalidSchema(
                    f"no schema is registered for the reference {reference.name!r}: subject "
                    f"{reference.subject!r} has no version {reference.version}"
                )
            visit(version.schema)
            under_way.discard(reference.name)
            found[reference.name] = version.schema.text
            if (total := total + len(version.schema.text)) > REFERENCED_SIZE_MAX:
                raise InvalidSchema(f"what a schema is built on has at most {REFERENCED_SIZE_MAX} characters")

    try:
        visit(schema)
    except RecursionError:
        raise InvalidSchema("references go too deep") from None
    return tuple(found.items())


def size(text: str, references: Texts) -> int:
    return len(text) + sum(len(used) for _, used in references)


def parse(kind: SchemaType, text: str, references: Texts, *, is_new: bool = False) -> Parsed:
    """Raises InvalidSchema. What is kept may be older than rules that new schemas have to follow."""
    read = _parse_and_keep if size(text, references) <= KEPT_SIZE_MAX else _parse
    return read(kind, text, references, is_new)


def _parse(kind: SchemaType, text: str, references: Texts, is_new: bool) -> Parsed:
    try:
        module = import_module(MODULES[kind])
    except ImportError as error:
        raise RegistryError(
            f"{kind.value} schemas need a library that is not installed ({error.name}): "
            "pip install 'ottla[registry]'"
        ) from None
    read = cast(Parse, module.parse if is_new else getattr(module, "parse_kept", module.parse))
    return read(text, dict(references))


_parse_and_keep = lru_cache(maxsize=PARSED_KEPT)(_parse)
