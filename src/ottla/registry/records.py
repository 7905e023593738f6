"""The records of the topic `_schemas`: JSON, in the members and the order that Confluent's registry writes.

Keys are compared byte by byte when the topic is compacted, so their layout is part of what they mean.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from ottla.registry.levels import Level, Mode
from ottla.registry.schemas import Reference, Registered, Schema, SchemaType

TOPIC: Final = "_schemas"
# Ids and versions, which clients write and keep in 32 bits.
GREATEST_NUMBER: Final = 2**31 - 1

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"


class Change(NamedTuple):
    """A record. Without a value it takes back what its key said before."""

    key: bytes
    value: bytes | None


def registered(version: Registered) -> Change:
    schema = version.schema
    value: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.id}
    if schema.type is not SchemaType.AVRO:
        value["schemaType"] = schema.type.value
    if schema.references:
        value["references"] = [reference_json(each) for each in schema.references]
    value |= {"schema": schema.text, "deleted": version.deleted}
    return Change(_schema_key(version.subject, version.version), _json(value))


def removed(subject: str, version: int) -> Change:
    return Change(_schema_key(subject, version), None)


def subject_deleted(subject: str, up_to_version: int) -> Change:
    return Change(_key(DELETE_SUBJECT, subject), _json({"subject": subject, "version": up_to_version}))


def level_set(subject: str | None, level: Level | None) -> Change:
    value = None if level is None else _json(_of(subject) | {"compatibilityLevel": level.value})
    return Change(_key(CONFIG, subject), value)


def mode_set(subject: str | None, mode: Mode | None) -> Change:
    value = None if mode is None else _json(_of(subject) | {"mode": mode.value})
    return Change(_key(MODE, subject), value)


def reference_json(reference: Reference) -> dict[str, Any]:
    return {"name": reference.name, "subject": reference.subject, "version": reference.version}


def read_references(said: Any) -> tuple[Reference, ...]:
    """Raises KeyError, TypeError or ValueError for what are no references."""
    return tuple(
        Reference(str(each["name"]), str(each["subject"]), read_number(each["version"]))
        for each in said or ()
    )


def read_registered(value: dict[str, Any]) -> Registered:
    """Raises KeyError, TypeError or ValueError for what is no version."""
    schema = Schema(
        SchemaType(value.get("schemaType") or "AVRO"),
        str(value["schema"]),
        read_references(value.get("references")),
    )
    return Registered(
        str(value["subject"]),
        read_number(value["version"]),
        read_number(value["id"]),
        schema,
        value.get("deleted") is True,
    )


def read_number(said: Any) -> int:
    """Raises TypeError or ValueError for what is no number of 32 bits. JSON has 1e999, which is infinite."""
    try:
        number = int(said)
    except OverflowError:
        raise ValueError("not finite") from None
    if not -1 <= number <= GREATEST_NUMBER:
        raise ValueError("more than 32 bits")
    return number


def _schema_key(subject: str, version: int) -> bytes:
    return _json({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def _key(kind: str, subject: str | None) -> bytes:
    return _json({"keytype": kind, **_of(subject), "magic": 0})


def _of(subject: str | None) -> dict[str, Any]:
    return {} if subject is None else {"subject": subject}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
