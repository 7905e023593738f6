"""The registry as the records of `_schemas` make it, one after the other.

Records of a kind that is not known here, and those that cannot be read, say nothing: the topic is one that
others may write to, and one bad record must not take the registry down.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ottla.registry import records
from ottla.registry.levels import DEFAULT_LEVEL, DEFAULT_MODE, Level, Mode
from ottla.registry.schemas import Registered, Schema

Key = tuple[str, int]


class Image:
    def __init__(self) -> None:
        # Versions of each subject, in ascending order, with those that are deleted for the time being.
        self.subjects: dict[str, dict[int, Registered]] = {}
        self.schemas: dict[int, Schema] = {}
        self.ids: dict[Schema, int] = {}
        self.last_id = 0
        # By subject, and for all that have none of their own by None.
        self.levels: dict[str | None, Level] = {}
        self.modes: dict[str | None, Mode] = {}
        self._with_id: dict[int, set[Key]] = {}
        self._users: dict[Key, set[Key]] = {}

    # Questions

    def level_of(self, subject: str | None) -> Level:
        return self.levels.get(subject) or self.levels.get(None, DEFAULT_LEVEL)

    def mode_of(self, subject: str | None) -> Mode:
        # What is set for all may be an override that no subject escapes.
        everywhere = self.modes.get(None, DEFAULT_MODE)
        if everywhere is Mode.READONLY_OVERRIDE:
            return everywhere
        return self.modes.get(subject, everywhere)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Registered]:
        """The versions of a subject, the oldest first."""
        return [each for each in self.subjects.get(subject, {}).values() if deleted or not each.deleted]

    def with_id(self, schema_id: int) -> list[Registered]:
        """The versions that have the schema of this id."""
        keys = sorted(self._with_id.get(schema_id, ()))
        return [self.subjects[subject][version] for subject, version in keys]

    def users_of(self, subject: str, version: int, *, deleted: bool = False) -> list[Registered]:
        """The versions whose schemas refer to this one."""
        found = (
            self.subjects[name][number] for name, number in sorted(self._users.get((subject, version), ()))
        )
        return [each for each in found if deleted or not each.deleted]

    def __iter__(self) -> Iterator[Registered]:
        for name in sorted(self.subjects):
            yield from self.subjects[name].values()

    # Records

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        try:
            said = json.loads(key or b"")
            kind, subject = said["keytype"], said.get("subject")
            if subject is not None and not isinstance(subject, str):
                return
            self._apply(kind, subject, said, None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return

    def _apply(self, kind: str, subject: str | None, key: dict[str, Any], value: Any) -> None:
        match kind:
            case records.CONFIG:
                level = None if value is None else Level(value["compatibilityLevel"])
                _put(self.levels, subject, level)
            case records.MODE:
                _put(self.modes, subject, None if value is None else Mode(value["mode"]))
            case records.SCHEMA if subject is not None and value is None:
                self._remove(subject, records.read_number(key["version"]))
            case records.SCHEMA:
                self._add(records.read_registered(value))
            case records.DELETE_SUBJECT if subject is not None and value is not None:
                up_to = records.read_number(value["version"])
                for each in self.versions(subject):
                    if each.version <= up_to:
                        self._add(_deleted(each))

    def _add(self, version: Registered) -> None:
        subject, number = key = version.subject, version.version
        self._remove(*key)
        versions = self.subjects.setdefault(subject, {})
        in_order = not versions or number > next(reversed(versions))
        versions[number] = version
        if not in_order:
            self.subjects[subject] = dict(sorted(versions.items()))
        self.schemas[version.id] = version.schema
        self.ids.setdefault(version.schema, version.id)
        self.last_id = max(self.last_id, version.id)
        self._with_id.setdefault(version.id, set()).add(key)
        for reference in version.schema.references:
            self._users.setdefault((reference.subject, reference.version), set()).add(key)

    def _remove(self, subject: str, number: int) -> None:
        versions = self.subjects.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        key = subject, number
        if not versions:
            del self.subjects[subject]
        for reference in version.schema.references:
            _discard(self._users, (reference.subject, reference.version), key)
        if _discard(self._with_id, version.id, key):
            # Nobody has it any more.
            del self.schemas[version.id]
            if self.ids.get(version.schema) == version.id:
                del self.ids[version.schema]


def _deleted(version: Registered) -> Registered:
    return Registered(version.subject, version.version, version.id, version.schema, deleted=True)


def _put(table: dict[str | None, Any], subject: str | None, value: Any) -> None:
    if value is None:
        table.pop(subject, None)
    else:
        table[subject] = value


def _discard(table: dict[Any, set[Key]], key: Any, member: Key) -> bool:
    """Take a member out of a set; whether that was the last, and the set is gone."""
    members = table.get(key)
    if members is None:
        return False
    members.discard(member)
    if members:
        return False
    del table[key]
    return True
