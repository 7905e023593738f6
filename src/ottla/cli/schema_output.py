"""What `ottla schema` shows: as JSON, and from there for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ottla.client.schema_registry import Registry
from ottla.registry.records import reference_json
from ottla.registry.schemas import Registered, Schema


def listed(registry: Registry, *, deleted: bool) -> list[dict[str, Any]]:
    """A row for each subject; the id and type are those of its latest version."""
    rows = []
    versions = registry.all_versions(deleted=deleted)
    for subject, group in groupby(versions, key=lambda each: each.subject):
        all_of_it = list(group)
        there = [each for each in all_of_it if not each.deleted]
        latest = (there or all_of_it)[-1]
        row = {
            "subject": subject,
            "versions": [each.version for each in there],
            "id": latest.id,
            "type": latest.schema.type.value,
            "level": registry.level(subject),
        }
        if deleted:
            row["removed"] = [each.version for each in all_of_it if each.deleted]
        rows.append(row)
    return rows


def listed_row(row: dict[str, Any]) -> list[object]:
    return [(ranges(value) or None) if isinstance(value, list) else value for value in row.values()]


def shown(found: Registered) -> dict[str, Any]:
    said = {"subject": found.subject, "version": found.version, "id": found.id, **_schema(found.schema)}
    return said | ({"removed": True} if found.deleted else {})


def shown_id(registry: Registry, schema_id: int) -> dict[str, Any]:
    schema = registry.by_id(schema_id)
    users = [{"subject": subject, "version": version} for subject, version in registry.users_of_id(schema_id)]
    return {"id": schema_id, "versions": users, **_schema(schema)}


def _schema(schema: Schema) -> dict[str, Any]:
    references = [reference_json(each) for each in schema.references]
    return {"type": schema.type.value, "references": references, "schema": schema.text}


def facts(found: dict[str, Any]) -> list[tuple[str, object]]:
    """What is to be said of a schema beside its text."""
    rows: list[tuple[str, object]] = []
    for name, value in found.items():
        if name == "versions":
            rows.append(
                ("versions", ", ".join(f"{each['subject']}:{each['version']}" for each in value) or None)
            )
        elif name == "references":
            rows += [(name, f"{each['name']}={each['subject']}:{each['version']}") for each in value]
        elif name == "removed":
            rows.append((name, "but not for good"))
        elif name != "schema":
            rows.append((name, value))
    return rows


def indented(text: str) -> str:
    """A schema as people read it, where it is JSON; what cannot be read so is left as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text.rstrip("\n")


def ranges(numbers: Sequence[int]) -> str:
    """`1-3, 5` for 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def in_words(numbers: Sequence[int]) -> str:
    return f"version{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"
