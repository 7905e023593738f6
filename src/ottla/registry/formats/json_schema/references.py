"""What a `$ref` refers to: a place in the same document, in one of the references of the schema, or in one of
the meta-schemas of JSON Schema itself. Nothing is ever fetched.

Where drafts 4 to 7 and later ones differ, both are followed as Confluent's registry does: in the former
`#/...` is a place in the document, in the latter a place in the part of it that has an `$id` of its own. A
reference is found by its name as it is written, by its name resolved against the `$id` of the schema, and
relative to the document that refers to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema.text import read, write

MODERN = {
    f"{scheme}://json-schema.org/draft/{version}/schema{end}"
    for scheme in ("http", "https")
    for version in ("2019-09", "2020-12")
    for end in ("", "#")
}
_LEGACY = {"draft-04/schema": 4, "draft-06/schema": 6, "draft-07/schema": 7, "schema": 4}
DEFAULT_DRAFT = 7

# Names are copied to wherever they are in force: long ones would make gigabytes of a megabyte.
MAX_URI = 1000
MAX_POINTER = 1000

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Place(NamedTuple):
    """Where a subschema is: its document, the URI that its references are relative to, and its pointer."""

    document: Document
    scope: str
    pointer: str

    def child(self, *names: str) -> Place:
        if len(self.pointer) > MAX_POINTER:
            return self
        return self._replace(pointer="/".join((self.pointer, *names))[: MAX_POINTER + 1])

    def within(self, raw: Any) -> Place:
        """The place, with the scope that a subschema gives itself."""
        own = raw.get(self.document.id_keyword) if isinstance(raw, dict) else None
        if isinstance(own, str) and len(own) + len(self.scope) <= MAX_URI:
            return self._replace(scope=resolved(self.scope, own))
        return self


@dataclass(eq=False)
class Document:
    """A schema as read, and what in it has a name of its own, with the scope that this is in."""

    root: Any
    uri: str
    draft: int
    modern: bool
    named: dict[str, tuple[Any, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = _with_definitions(self.root)
        pending = [(self.root, self.uri)]
        while pending:
            raw, outer = pending.pop()
            if isinstance(raw, list):
                pending.extend((item, outer) for item in raw)
            if not isinstance(raw, dict):
                continue
            scope, own = outer, raw.get(self.id_keyword)
            if isinstance(own, str) and len(own) + len(outer) <= MAX_URI:
                named = resolved(outer, own)
                # `"$id": "#name"` names a place, and leaves the scope as it is.
                scope = outer if own.startswith("#") else named
                self.named.setdefault(own, (raw, outer))
                self.named.setdefault(named.removesuffix("#"), (raw, outer))
            for keyword in ("$anchor", "$dynamicAnchor") if self.modern else ():
                anchor = raw.get(keyword)
                if isinstance(anchor, str) and len(anchor) + len(scope) <= MAX_URI:
                    self.named.setdefault(resolved(scope, f"#{anchor}"), (raw, outer))
            pending.extend((value, scope) for value in raw.values())

    @property
    def id_keyword(self) -> str:
        return "id" if self.draft == 4 and not self.modern else "$id"

    @property
    def place(self) -> Place:
        return Place(self, self.uri, "#")


class Documents:
    """The schema that is parsed, and all that it may refer to."""

    def __init__(self, raw: Any, references: Mapping[str, str]) -> None:
        said = raw.get("$schema") if isinstance(raw, dict) else None
        self.main = Document(raw, "", draft_of(raw, DEFAULT_DRAFT), isinstance(said, str) and said in MODERN)
        self._texts = dict(references)
        for name, text in references.items():
            if len(name) <= MAX_URI:
                self._texts.setdefault(resolved(self.main.place.within(raw).scope, name), text)
        self._read: dict[str, Document] = {}

    def find(self, ref: str, place: Place) -> tuple[Any, Place]:
        """What a reference at a place refers to, and where that is."""
        if len(ref) > MAX_URI:
            raise InvalidSchema(f"{place.pointer}: $ref is longer than {MAX_URI} characters")
        document = place.document
        target = resolved(place.scope, ref).removesuffix("#")
        named = document.named.get(target) or (None if document.modern else document.named.get(ref))
        if named is not None:
            return named[0], Place(document, named[1], ref)
        uri, _, fragment = target.partition("#")
        if ref.startswith("#") and not document.modern:
            return self._at(document.root, ref.removeprefix("#"), document.place, ref, place)
        if uri in document.named:
            raw, scope = document.named[uri]
            return self._at(raw, fragment, Place(document, scope, uri), ref, place)
        if uri == document.uri:
            return self._at(document.root, fragment, document.place, ref, place)
        other = self._document(uri, ref.partition("#")[0], place)
        named = other.named.get(target) or other.named.get(f"#{fragment}")
        if named is not None and fragment:
            return named[0], Place(other, named[1], ref)
        return self._at(other.root, fragment, other.place, ref, place)

    def _document(self, uri: str, written: str, place: Place) -> Document:
        for name in (uri, written, written.removeprefix("./"), f"./{written}"):
            if name in self._read:
                return self._read[name]
            if name in self._texts:
                raw = read(self._texts[name])
                write(raw)  # For its bounds.
                break
        else:
            raw = meta_schema(uri)
            if raw is None:
                raise InvalidSchema(f"{place.pointer}: $ref {uri or written!r} is not among the references")
        document = Document(raw, uri, draft_of(raw, place.document.draft), self.main.modern)
        for name in {uri, written}:
            self._read[name] = document
        return document

    def _at(self, raw: Any, fragment: str, found: Place, ref: str, place: Place) -> tuple[Any, Place]:
        if not fragment:
            return raw, found
        if not fragment.startswith("/"):
            if found.document.modern:
                raise InvalidSchema(f"{place.pointer}: $ref {ref!r} refers to an anchor that is not there")
            return raw, found  # As Confluent's registry reads a name that nothing has.
        for token in fragment.split("/")[1:]:
            name = unquote(token).replace("~1", "/").replace("~0", "~")
            found = found.within(raw).child(token)
            if isinstance(raw, dict) and name in raw:
                raw = raw[name]
            elif isinstance(raw, list) and name.isdecimal() and len(name) < 9 and int(name) < len(raw):
                raw = raw[int(name)]
            else:
                raise InvalidSchema(f"{place.pointer}: $ref {ref!r} refers to nothing")
        return raw, found


def draft_of(raw: Any, otherwise: int) -> int:
    """Which of the drafts 4, 6 and 7 a document is written in."""
    said = raw.get("$schema") if isinstance(raw, dict) else None
    if said is None and not (isinstance(raw, dict) and "$schema" in raw):
        return otherwise
    if not isinstance(said, str):
        raise InvalidSchema("#: $schema must be a string")
    for scheme in ("http", "https"):
        for path, draft in _LEGACY.items():
            if said.startswith(f"{scheme}://json-schema.org/{path}"):
                return draft
    return otherwise


def resolved(base: str, ref: str) -> str:
    """A URI relative to another."""
    if _SCHEME.match(ref):
        return ref
    base = base.partition("#")[0]
    scheme, colon, rest = base.partition(":")
    if not base or (colon and not rest.startswith("/")):
        return ref.removeprefix("./")  # Nothing is relative to a name such as `urn:example:order`.
    if ref.startswith("#"):
        return base + ref
    try:
        # Python's urljoin knows which schemes have paths; any that is written with slashes does here.
        if not colon:
            return urljoin(base, ref)
        joined = urljoin(f"http:{rest}", ref)
    except ValueError:
        raise InvalidSchema(f"{ref!r} is not a URI") from None
    return scheme + joined.removeprefix("http")


def meta_schema(uri: str) -> Any:
    """One of the meta-schemas of JSON Schema."""
    name = uri.partition("://")[2]
    if not name.startswith("json-schema.org/"):
        return None
    from jsonschema_specifications import REGISTRY

    for candidate in (f"http://{name}", f"https://{name}"):
        if candidate in REGISTRY:
            return REGISTRY.contents(candidate)
    return None


def _with_definitions(raw: Any) -> Any:
    """`#/$defs/a` finds what is among `definitions`, as in Confluent's registry."""
    if not isinstance(raw, dict):
        return raw
    old, new = raw.get("definitions"), raw.get("$defs", {})
    if not isinstance(old, dict) or not old or not isinstance(new, dict):
        return raw
    return {**raw, "$defs": {**old, **new}}
