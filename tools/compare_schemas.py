"""Compares our message declarations with Kafka's own definitions, field by field, and prints what differs.

    make schemas SCHEMAS=<folder>        the folder holds Kafka's *.json files, at any depth

A definition is compared in the versions that it describes, and ours may have more to offer downwards, since
Kafka 4.0 dropped old versions that we still serve. What counts is what a version puts on the wire or may be
asked to, so `"versions": "0+"` inside a struct that exists since version 8 equals "8+", and whether a field
is ignorable matters only where some version lacks it. Private data of Kafka Streams clients is passed over.

Definitions of a Kafka before 4.0, told by LeaderAndIsr still having versions, are compared as older ones:

- ours may go on upwards, and tagged fields may have been added in any version;
- a latest version that was marked unstable then was free to change, and did; it is passed over, as are the
  share group records, which were early access as a whole;
- the key of a group record was versioned by its type, so its version then is its `api_key` now;
- a few names have changed, which are listed here.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ottla.protocol.stored
from ottla.core.ids import ZERO_UUID
from ottla.protocol import headers
from ottla.protocol.apis import all_apis
from ottla.protocol.schema import Field, Struct, Versions, fields_of, zero

KINDS = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "uint32": "I", "float64": "d",
    "string": "str", "bytes": "bytes", "records": "records", "uuid": "uuid", "bool": "bool",
}  # fmt: skip
RENAMED = {
    ("VoteRequest", "CandidateEpoch"): "ReplicaEpoch",
    ("VoteRequest", "CandidateId"): "ReplicaId",
    ("VoteRequest", "CandidateDirectoryId"): "ReplicaDirectoryId",
    ("ListClientMetricsResourcesResponse", "ClientMetricsResources"): "ConfigResources",
    ("ListClientMetricsResourcesResponse", "ClientMetricsResource"): "ConfigResource",
    ("ListClientMetricsResourcesResponse", "Name"): "ResourceName",
}


class Task(NamedTuple):
    """One definition beside the class that should match it, and their versions, pairwise."""

    definition: dict[str, Any]
    declared: Any
    versions: dict[int, int]  # Kafka's version -> ours
    older: bool


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Compare our messages with Kafka's definitions.")
    parser.add_argument("folder", type=Path, help="a folder of Kafka's JSON message definitions")
    folder: Path = parser.parse_args(arguments).folder
    definitions = [load(path) for path in sorted(folder.rglob("*.json")) if "streams" not in path.parts]
    if not definitions:
        print(f"there are no definitions in {folder}")
        return 2
    differences = list(compare_all(definitions))
    for difference in differences:
        print(difference)
    print(f"{len(definitions)} definitions read, {len(differences) or 'no'} differences")
    return 1 if differences else 0


def load(path: Path) -> dict[str, Any]:
    """One definition. Kafka's files are JSON with comments, and its classes go by the name of the file."""
    text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
    loaded: dict[str, Any] = json.loads(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    return loaded | {"name": path.stem}


def compare_all(definitions: list[dict[str, Any]]) -> Iterator[str]:
    older = any(d["name"] == "LeaderAndIsrRequest" and d["validVersions"] != "none" for d in definitions)
    unstable = {d["apiKey"] for d in definitions if d.get("latestVersionUnstable")}
    ours = declared_classes()
    seen = set()
    for definition in definitions:
        for task in tasks(definition, ours, older, unstable):
            seen.add(task.declared)
            yield from compare_message(task)
        if definition["validVersions"] != "none" and not _is_early_access(definition, older):
            yield from missing(definition, ours)
    if not older:
        removed = {d["name"] for d in definitions if d["validVersions"] == "none"}
        for declared in ours.values():
            if declared not in seen and declared.__name__ not in removed:
                yield f"{declared.__name__}: Kafka does not have it"


def declared_classes() -> dict[Any, Any]:
    """Our classes: requests and responses by key, since an API may change its name; others by name."""
    found: dict[Any, Any] = {}
    for api in all_apis():
        found["request", api.key] = api.request
        found["response", api.key] = api.response
    names = [info.name for info in pkgutil.iter_modules(ottla.protocol.stored.__path__)]
    for module in (headers, *(importlib.import_module(f"ottla.protocol.stored.{name}") for name in names)):
        for value in vars(module).values():
            if hasattr(value, "api_key") and value.__module__ == module.__name__:
                found[value.__name__] = value
    return found


def _name(definition: dict[str, Any]) -> Any:
    if definition["type"] in ("request", "response"):
        return definition["type"], definition["apiKey"]
    return definition["name"]


def _is_early_access(definition: dict[str, Any], older: bool) -> bool:
    is_record = definition["type"] not in ("request", "response")
    return older and is_record and definition["name"].startswith("Share")


def missing(definition: dict[str, Any], ours: dict[Any, Any]) -> Iterator[str]:
    if _name(definition) not in ours:
        yield f"{definition['name']}: we do not declare it"


def tasks(
    definition: dict[str, Any], ours: dict[Any, Any], older: bool, unstable: set[int]
) -> Iterator[Task]:
    """What to compare a definition with: nothing, its class, or a class for each version of an old key."""
    declared = ours.get(_name(definition))
    if declared is None or definition["validVersions"] == "none" or _is_early_access(definition, older):
        return
    first, last = Versions.parse(definition["validVersions"])
    if older and definition["type"] in ("request", "response") and definition["apiKey"] in unstable:
        last -= 1
    if older and declared.api_key >= 0 and _is_key(declared):
        keys = {c.api_key: c for c in ours.values() if c.__module__ == declared.__module__ and _is_key(c)}
        for version in range(first, last + 1):
            yield Task(definition, keys[version], {version: 0}, older)
        return
    yield Task(definition, declared, {v: v for v in range(first, last + 1)}, older)


def _is_key(declared: Any) -> bool:
    return bool(declared.__name__.endswith("Key"))


def compare_message(task: Task) -> Iterator[str]:
    definition, declared, versions, older = task
    name = declared.__name__
    if not versions:
        return
    if not older and definition.get("apiKey", -1) != declared.api_key:
        yield f"{name}: key {declared.api_key}, Kafka has {definition.get('apiKey')}"
    if not set(versions.values()) <= set(_listed(declared.versions)):
        yield f"{name}: versions {declared.versions}, Kafka has {definition['validVersions']}"
        return
    if not older and declared.versions.last != max(versions):
        yield f"{name}: versions {declared.versions}, Kafka has {definition['validVersions']}"
    flexible = _range(definition.get("flexibleVersions", "none"))
    if [v in flexible for v in versions] != [_in(v, declared.flexible) for v in versions.values()]:
        yield f"{name}: flexible {declared.flexible}, Kafka has {definition['flexibleVersions']}"
    is_unstable = declared.stable != declared.versions
    if not older and bool(definition.get("latestVersionUnstable")) != is_unstable:
        yield f"{name}: latest version unstable {is_unstable}, Kafka has {not is_unstable}"
    shared = {s["name"]: s["fields"] for s in definition.get("commonStructs", [])}
    compare = Comparison(definition["name"], shared, older)
    yield from compare.fields(name, definition["fields"], declared, versions)


class Comparison:
    """Walks the fields of one definition and of the class that stands for it."""

    def __init__(self, message: str, shared: dict[str, Any], older: bool) -> None:
        self.message = message
        self.shared = shared
        self.older = older

    def fields(
        self, path: str, definitions: list[dict[str, Any]], declared: Any, versions: dict[int, int]
    ) -> Iterator[str]:
        ours = {field.name: field for field in fields_of(declared)}
        order = []
        for definition in definitions:
            name = snake_case(RENAMED.get((self.message, definition["name"]), definition["name"]))
            where = f"{path}.{name}"
            field = ours.pop(name, None)
            present = {v: o for v, o in versions.items() if v in _range(_versions(definition))}
            if field is None:
                if present:
                    yield f"{where}: we do not declare it, Kafka has versions {_versions(definition)}"
                continue
            order.append(name)
            yield from self.field(where, definition, field, versions, present)
        for name, field in ours.items():
            added_later = self.older and field.tag is not None
            if not added_later and any(v in field.versions for v in versions.values()):
                yield f"{path}.{name}: versions {field.versions}, Kafka does not have it"
        if order != [f.name for f in fields_of(declared) if f.name in order]:
            yield f"{path}: the order of fields differs"

    def field(
        self,
        where: str,
        definition: dict[str, Any],
        field: Field,
        versions: dict[int, int],
        present: dict[int, int],
    ) -> Iterator[str]:
        if list(present.values()) != [o for o in versions.values() if o in field.versions]:
            yield f"{where}: versions {field.versions}, Kafka has {_versions(definition)}"
            return
        if not present:
            return
        kind = definition["type"].removeprefix("[]")
        if (KINDS.get(kind, "struct"), kind != definition["type"]) != (field.kind, field.repeated):
            yield f"{where}: type {field.kind}{' list' * field.repeated}, Kafka has {definition['type']}"
            return
        nullable = _range(definition.get("nullableVersions", "none"))
        if [v in nullable for v in present] != [_in(o, field.nullable) for o in present.values()]:
            yield f"{where}: nullable {field.nullable}, Kafka has {definition.get('nullableVersions')}"
        if (int(definition["tag"]) if "tag" in definition else None) != field.tag:
            yield f"{where}: tag {field.tag}, Kafka has {definition.get('tag')}"
        if len(present) < len(versions) and bool(definition.get("ignorable")) != field.ignorable:
            yield f"{where}: ignorable {field.ignorable}, Kafka has {not field.ignorable}"
        if (definition.get("flexibleVersions") != "none") != field.compact:
            yield f"{where}: compact {field.compact}, Kafka has {not field.compact}"
        yield from self.default(where, definition, field)
        if field.kind == "struct":
            # Where several structs of one file share a name, ours has a word before or behind it.
            if RENAMED.get((self.message, kind), kind) not in field.struct.__name__:
                yield f"{where}: struct {field.struct.__name__}, Kafka has {kind}"
            nested = definition.get("fields") or self.shared[kind]
            yield from self.fields(where, nested, field.struct, present)

    def default(self, where: str, definition: dict[str, Any], field: Field) -> Iterator[str]:
        expected: Any
        if field.kind == "records":
            expected = b"" if field.nullable is None else None
        elif definition.get("default") == "null":  # a bare JSON null is no default, not a default of null
            expected = None
        elif field.repeated:
            expected = []
        elif field.kind == "struct":
            if not isinstance(field.default, Struct):
                yield f"{where}: default {field.default!r}, Kafka has a struct of defaults"
            return
        else:
            expected = _parse_default(definition.get("default"), field.kind)
        if field.default != expected or type(field.default) is not type(expected):
            yield f"{where}: default {field.default!r}, Kafka has {expected!r}"


def _parse_default(text: Any, kind: str) -> Any:
    if text is None:
        return 0.0 if kind == "d" else zero(kind)
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "str":
        return text
    if kind == "uuid":
        return ZERO_UUID
    return float(text) if kind == "d" else int(str(text), 0)


def snake_case(name: str) -> str:
    """How we spell a field of Kafka's: KRaftVersion is `kraft_version`, Enable2Pc is `enable_2pc`."""
    name = name.replace("KRaft", "Kraft").replace("2Pc", "_2pc")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _versions(definition: dict[str, Any]) -> str:
    return str(definition.get("versions") or definition["taggedVersions"])


def _range(text: str) -> range:
    return range(0) if text == "none" else _listed(Versions.parse(text))


def _listed(versions: Versions) -> range:
    return range(versions.first, versions.last + 1)


def _in(version: int, versions: Versions | None) -> bool:
    return versions is not None and version in versions


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
