"""From documents to subschemas: each place is loaded once, and references are followed by a worklist, so that
neither recursion nor sharing costs more than the text is long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.registry.formats.json_schema.keywords import wrong
from ottla.registry.formats.json_schema.model import FalseSchema, ReferenceSchema, Subschema, TrueSchema
from ottla.registry.formats.json_schema.references import Documents, Place


class Loader:
    """What the drafts have in common; each kind of draft says how it reads an object."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self._loaded: dict[tuple[int, str], Subschema] = {}
        self._unresolved: list[tuple[ReferenceSchema, Place]] = []

    def load(self) -> Subschema:
        main = self.documents.main
        root = self.subschema(main.root, main.place)
        while self._unresolved:
            reference, place = self._unresolved.pop()
            reference.target = self.subschema(*self.documents.find(reference.ref, place))
        return root

    def subschema(self, raw: Any, place: Place) -> Subschema:
        if isinstance(raw, bool):
            return TrueSchema() if raw else FalseSchema()
        if not isinstance(raw, dict):
            raise wrong(place.pointer, "a schema", "an object or a boolean", raw)
        place = place.within(raw)
        key = (id(raw), place.scope)
        known = self._loaded.get(key)
        if known is None:
            known = self._loaded[key] = self.read(raw, place)
        return known

    def read(self, raw: dict[str, Any], place: Place) -> Subschema:
        raise NotImplementedError

    def reference(self, ref: str, place: Place) -> ReferenceSchema:
        reference = ReferenceSchema(ref=ref)
        self._unresolved.append((reference, place))
        return reference

    def child(self, raw: dict[str, Any], name: str, place: Place) -> Subschema | None:
        return self.subschema(raw[name], place.child(name)) if name in raw else None

    def children(self, values: Iterable[Any], name: str, place: Place) -> list[Subschema]:
        return [self.subschema(value, place.child(name, str(at))) for at, value in enumerate(values)]

    def members(self, values: dict[str, Any], name: str, place: Place) -> dict[str, Subschema]:
        return {key: self.subschema(value, place.child(name, key)) for key, value in values.items()}
