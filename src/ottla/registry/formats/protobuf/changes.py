"""Which differences between two Protobuf schemas keep data of the one from being read with the other.

The rules, the names of the differences and the paths are those of Confluent's registry, with their limits:

- A field that has no label in one of the two may become repeated, or cease to be.
- Groups are not looked at.
- Messages of the two files themselves are compared by name, and not again where a field uses them. Those in
  imported files are compared where a field uses them, here once for every pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ottla.registry.formats.protobuf.names import join
from ottla.registry.formats.protobuf.types import (
    MAP,
    MESSAGE,
    SCALAR,
    STRING,
    Types,
    fields_by_number,
    is_required,
    named_messages,
    oneofs,
    scalar_kind,
)

_DESCRIPTIONS = {
    "PACKAGE_CHANGED": "the package is another",
    "MESSAGE_REMOVED": "the message is gone",
    "FIELD_KIND_CHANGED": "the field was one of scalar, message or map and is another of these",
    "FIELD_SCALAR_KIND_CHANGED": "the type of the field is written in another way",
    "FIELD_NAMED_TYPE_CHANGED": "the message that is the type of the field is another",
    "FIELD_NUMERIC_LABEL_CHANGED": "the label of the number is another",
    "REQUIRED_FIELD_ADDED": "the required field is new",
    "REQUIRED_FIELD_REMOVED": "the required field is gone",
    "ONEOF_FIELD_REMOVED": "the field of the oneof is gone",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "fields that could be set together are in one oneof",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "a field is in a oneof with others that it could be set together with",
}

# The full names of a message that was written and of the one it is read with.
_Names = tuple[str, str]


@dataclass(slots=True)
class _Pair:
    """What differs in two messages, by type and path. A difference that leads to another pair is one only if
    that has differences."""

    names: _Names
    found: list[tuple[str, str, _Pair | None]] = field(default_factory=list)
    differs: bool = False


def differences(written: Types, read: Types) -> list[str]:
    """One message for every difference that is not allowed."""
    return [
        f'{{errorType:"{difference}", description:"{_DESCRIPTIONS[difference]}, at {path}"}}'
        for difference, path in _Comparison(written, read).run()
    ]


class _Comparison:
    def __init__(self, written: Types, read: Types) -> None:
        self._written = written
        self._read = read
        self._pairs: dict[_Names, _Pair] = {}
        # A list and no recursion: a chain of messages can be longer than the stack.
        self._waiting: list[_Pair] = []

    def run(self) -> list[tuple[str, str]]:
        written, read = self._written.file, self._read.file
        files = _Pair((written.package, read.package))
        if written.package != read.package:
            files.found.append(("PACKAGE_CHANGED", "#/", None))
        self._compare_types(files, written, written.message_type, read, read.message_type, files.names, "#")
        while self._waiting:
            pair = self._waiting.pop()
            old, new = self._written.message(pair.names[0]), self._read.message(pair.names[1])
            path = "#/" + old.local_name.replace(".", "/")
            self._compare_messages(pair, old.proto, new.proto, pair.names, path)
        pairs = [files, *self._pairs.values()]
        _spread(pairs)
        return [
            (difference, path)
            for pair in pairs
            for difference, path, leads_to in pair.found
            if leads_to is None or leads_to.differs
        ]

    def _compare_types(
        self, pair: _Pair, old: Any, old_types: Any, new: Any, new_types: Any, scopes: _Names, path: str
    ) -> None:
        new_messages = named_messages(new, new_types)
        for name, message in named_messages(old, old_types).items():
            if name in new_messages:
                names = (join(scopes[0], name), join(scopes[1], name))
                self._compare_messages(pair, message, new_messages[name], names, f"{path}/{name}")
            else:
                pair.found.append(("MESSAGE_REMOVED", f"{path}/{name}", None))

    def _compare_messages(self, pair: _Pair, old: Any, new: Any, names: _Names, path: str) -> None:
        old_fields, new_fields = fields_by_number(old), fields_by_number(new)
        old_oneofs, new_oneofs = oneofs(old), oneofs(new)
        old_oneof = {number: name for name, numbers in old_oneofs.items() for number in numbers}
        new_oneof = {number: name for name, numbers in new_oneofs.items() for number in numbers}
        # A oneof may go as a whole, but not lose some of its fields.
        gone = {
            name
            for name, numbers in old_oneofs.items()
            if name not in new_oneofs and not any(number in new_fields for number in numbers)
        }
        for name, numbers in new_oneofs.items():
            difference = _exclusive(numbers, old_fields, old_oneof)
            if difference is not None:
                pair.found.append((difference, f"{path}/{name}", None))
        for number in sorted(old_fields.keys() | new_fields.keys()):
            was_in, is_in = old_oneof.get(number), new_oneof.get(number)
            if number not in new_fields:
                if was_in is None and is_required(old_fields[number]):
                    pair.found.append(("REQUIRED_FIELD_REMOVED", f"{path}/{number}", None))
                elif was_in is not None and was_in not in gone:
                    pair.found.append(("ONEOF_FIELD_REMOVED", f"{path}/{was_in}/{number}", None))
            elif number not in old_fields:
                if is_in is None and is_required(new_fields[number]):
                    pair.found.append(("REQUIRED_FIELD_ADDED", f"{path}/{number}", None))
            else:
                old_field, new_field = old_fields[number], new_fields[number]
                field_path = f"{path}/{number}" if is_in is None else f"{path}/{is_in}/{number}"
                labels = self._written.label(names[0], old_field), self._read.label(names[1], new_field)
                self._compare_fields(pair, old_field, new_field, field_path, has_label=None not in labels)
        self._compare_types(pair, old, old.nested_type, new, new.nested_type, names, path)

    def _compare_fields(self, pair: _Pair, old: Any, new: Any, path: str, *, has_label: bool) -> None:
        kind = self._written.kind(old)
        if kind != self._read.kind(new):
            pair.found.append(("FIELD_KIND_CHANGED", path, None))
        elif kind == SCALAR:
            if scalar_kind(old) != scalar_kind(new):
                pair.found.append(("FIELD_SCALAR_KIND_CHANGED", path, None))
            elif has_label and old.label != new.label and scalar_kind(old) != STRING:
                pair.found.append(("FIELD_NUMERIC_LABEL_CHANGED", path, None))
        elif kind == MESSAGE:
            self._compare_named_types(pair, old, new, path)
        elif kind == MAP:
            entries = zip(self._written.entry(old), self._read.entry(new), strict=True)
            for old_inner, new_inner in entries:
                self._compare_fields(pair, old_inner, new_inner, path, has_label=False)

    def _compare_named_types(self, pair: _Pair, old: Any, new: Any, path: str) -> None:
        old_type, new_type = self._written.type_of(old), self._read.type_of(new)
        if old_type.local_name != new_type.local_name:
            pair.found.append(("FIELD_NAMED_TYPE_CHANGED", path, None))
        elif not (old_type.is_own and new_type.is_own):
            names = old_type.name, new_type.name
            if names not in self._pairs:
                self._pairs[names] = _Pair(names)
                self._waiting.append(self._pairs[names])
            pair.found.append(("FIELD_NAMED_TYPE_CHANGED", path, self._pairs[names]))


def _exclusive(numbers: list[int], old_fields: dict[int, Any], old_oneof: dict[int, str]) -> str | None:
    """What is wrong with a oneof of these fields: of those that were there before, only fields that were in
    one oneof could not be set together."""
    groups = {old_oneof.get(number, number) for number in numbers if number in old_fields}
    if len(groups) <= 1:
        return None
    alone = sum(number in old_fields and number not in old_oneof for number in numbers)
    return "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if alone > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"


def _spread(pairs: list[_Pair]) -> None:
    """A pair differs, too, if one that it leads to does."""
    leads_from: dict[_Names, list[_Pair]] = {}
    differing = []
    for pair in pairs:
        for _, _, leads_to in pair.found:
            if leads_to is not None:
                leads_from.setdefault(leads_to.names, []).append(pair)
            elif not pair.differs:
                pair.differs = True
                differing.append(pair)
    while differing:
        for pair in leads_from.get(differing.pop().names, []):
            if not pair.differs:
                pair.differs = True
                differing.append(pair)
