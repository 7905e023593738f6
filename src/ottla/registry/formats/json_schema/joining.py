"""How what several keywords of one schema say becomes one subschema."""

from __future__ import annotations

from ottla.registry.formats.json_schema.model import (
    ArraySchema,
    CombinedSchema,
    NumberSchema,
    ObjectSchema,
    StringSchema,
    Subschema,
    merged,
)

_MERGED = (ArraySchema, NumberSchema, ObjectSchema, StringSchema)


def joined(schema: Subschema, said: Subschema) -> Subschema:
    """What is said so far and what another keyword says, together."""
    if type(schema) is type(said) and isinstance(schema, _MERGED):
        return merged(schema, said)
    for types, other in ((schema, said), (said, schema)):
        if (
            isinstance(types, CombinedSchema)
            and types.criterion == "anyOf"
            and types.generated
            and any(type(part) is type(other) for part in types.parts)
        ):
            parts = _with(types.parts, other)
            return CombinedSchema(criterion="anyOf", parts=parts, generated=True)
    parts = []
    for part in (*flat(schema), *flat(said)):
        parts = _with(parts, part)
    return CombinedSchema(parts=parts, generated=True)


def _with(parts: list[Subschema], said: Subschema) -> list[Subschema]:
    """Parts, and one more, which is merged into the first of its kind if that can be."""
    for at, part in enumerate(parts):
        if type(part) is type(said) and isinstance(part, _MERGED):
            return [*parts[:at], merged(part, said), *parts[at + 1 :]]
    return [*parts, said]


def flat(schema: Subschema) -> list[Subschema]:
    if isinstance(schema, CombinedSchema) and schema.criterion == "allOf" and schema.generated:
        return schema.parts
    return [schema]
