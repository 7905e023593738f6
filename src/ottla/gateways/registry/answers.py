"""What the registry answers, as its clients read it."""

from __future__ import annotations

import json
from typing import Any, Final

from ottla.gateways.pages import Page
from ottla.registry.errors import RegistryError
from ottla.registry.records import reference_json
from ottla.registry.schemas import Registered, Schema, SchemaType

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class Text(str):
    """A schema alone, which is answered as it stands and not as a JSON string."""

    __slots__ = ()


def page(value: Any, status: int = 200) -> Page:
    if isinstance(value, Text):
        return Page(value.encode(errors="replace"), CONTENT_TYPE, status=status)
    text = json.dumps(value, ensure_ascii=False)
    try:
        body = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which somebody sent, or wrote to the topic
        body = json.dumps(value).encode()
    return Page(body, CONTENT_TYPE, status=status)


def refusal(error: RegistryError) -> Page:
    return page({"error_code": error.code, "message": str(error)}, error.status)


def version(found: Registered, text: str | None = None) -> dict[str, Any]:
    """A version of a subject; `text` if it is wanted in another form than it is kept in."""
    said = {"subject": found.subject, "version": found.version, "id": found.id}
    said |= schema(found.schema, text)
    return said | ({"deleted": True} if found.deleted else {})


def schema(found: Schema, text: str | None = None) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if found.type is not SchemaType.AVRO:  # which is what older clients expect that do not know of types
        said["schemaType"] = found.type.value
    if found.references:
        said["references"] = [reference_json(each) for each in found.references]
    return said | {"schema": found.text if text is None else text}
