"""Writes the function that reads one version of one message.

It is straight-line code: nested loops, no dispatch, and everything of fixed width that is adjacent, up to the
length of the next string or array, comes from one `unpack_from`.

The buffer may go on behind the frame, so nothing may be believed that was read past `end`. Lengths are
checked before they are used; everything else only moves `pos` forward, so that one comparison when all is
read finds any overrun.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.core.files import Buffer
from ottla.core.ids import Uuid
from ottla.protocol.schema import Field, fields_of
from ottla.protocol.source import WIDTHS, Source, targets
from ottla.protocol.wire import MalformedFrame, rest_of_uvarint, uvarint

# A request may make this many objects: list items and tagged fields. Two bytes can stand for an object that
# takes a hundred in memory, so the size of a frame alone bounds too little. Responses and stored records come
# from brokers and may be larger.
OBJECTS_PER_REQUEST = 100_000

LONGEST_STRING = 0x7FFF
MOST_TAGS = 127  # the count always fits one byte


def reader_source(cls: Any, version: int) -> Source:
    return _Reading(cls, version).source


class _Reading:
    def __init__(self, cls: Any, version: int) -> None:
        self.version = version
        self.flexible = cls.flexible is not None and version in cls.flexible
        self.bounded = cls.__name__.endswith("Request")
        self.run: list[tuple[str, str]] = []  # format letter and target of what the next unpack reads
        self.uuids: list[tuple[str, str]] = []  # targets in that run that are ids, and the bytes for them
        self.source = Source(
            Malformed=MalformedFrame,
            errors=(IndexError, struct.error, UnicodeDecodeError),
            view=memoryview,
            rest=rest_of_uvarint,
            next_tag=_next_tag,
            skip_tags=_skip_tags,
            Uuid=Uuid,
            unpack_from=struct.unpack_from,
        )
        self.line = self.source.line
        self._function(cls)

    def _function(self, cls: Any) -> None:
        self.line(0, "def codec(buf, pos, end, whole=None):")
        self.line(1, "if buf.__class__ is view:")
        self.line(2, "value, used = codec(bytes(buf[pos:end]), 0, end - pos, buf[pos:end])")
        self.line(2, "return value, pos + used")
        if _has_records(cls, self.version):
            self.line(1, "if whole is None: whole = view(buf)")
        if self.bounded:
            self.line(1, f"left = {OBJECTS_PER_REQUEST}")
        self.line(1, "try:")
        value = self._struct(2, cls, "message")
        self._flush(2)
        self.line(1, "except errors as error:")
        self.line(2, f"raise Malformed(f'{cls.__name__} v{self.version}: {{error}}') from error")
        self.line(1, f"if pos > end: raise Malformed('{cls.__name__} v{self.version} runs past the end')")
        self.line(1, f"return {value}, pos")

    def _struct(self, d: int, cls: Any, stem: str) -> str:
        """Reads a struct into a new variable, and leaves its last fixed fields to the run."""
        value = self.source.name(stem)
        new, made = self.source.constant("new", cls.__new__), self.source.constant(cls.__name__, cls)
        self.line(d, f"{value} = {new}({made})")
        for field in fields_of(cls):
            if self.version in field.versions and field.tag is None:
                self._value(d, f"{value}.{field.name}", field)
            else:
                self.line(d, f"{value}.{field.name} = {self.source.literal(field.default)}")
        if self.flexible:
            self._tags(d, value, cls)
        return value

    def _value(self, d: int, target: str, field: Field) -> None:
        if field.repeated:
            self._array(d, target, field)
        elif field.kind == "struct":
            self._nested(d, target, field)
        elif field.kind == "bool":
            self.run.append(("?", target))
        elif field.kind == "uuid":
            raw = self.source.name("raw")
            self.run.append(("16s", raw))
            self.uuids.append((target, raw))
        elif field.kind in WIDTHS:
            self.run.append((field.kind, target))
        else:
            self._sized(d, target, field)

    def _flush(self, d: int) -> None:
        """Reads what the run has gathered."""
        if len(self.run) == 1 and self.run[0][0] == "B":
            self.line(d, f"{self.run[0][1]} = buf[pos]; pos += 1")
        elif self.run:
            unpacker = struct.Struct(">" + "".join(letter for letter, _ in self.run))
            unpack = self.source.constant("unpack", unpacker.unpack_from)
            self.line(
                d, f"{targets(target for _, target in self.run)} = {unpack}(buf, pos); pos += {unpacker.size}"
            )
        for target, raw in self.uuids:
            self.line(d, f"{target} = Uuid({raw})")
        self.run.clear()
        self.uuids.clear()

    def _length(self, d: int, field: Field, letter: str, compact: bool) -> str:
        """Reads a length; what it says of null differs by encoding, see `_null`."""
        n = self.source.name("n")
        self.run.append(("B" if compact else letter, n))
        self._flush(d)
        if compact:
            self.line(d, f"if {n} > 127:")
            self.line(d + 1, f"{n}, pos = rest(buf, pos, {n})")
            if letter == "h":
                self.line(
                    d + 1, f"if {n} > {LONGEST_STRING + 1}: raise Malformed('{field.name} is too long')"
                )
        return n

    def _null(self, d: int, target: str, field: Field, n: str, compact: bool) -> None:
        """Handles null, and opens the block for everything else."""
        self.line(d, f"if {n} == 0:" if compact else f"if {n} < 0:")
        if field.nullable is not None and self.version in field.nullable:
            self.line(d + 1, f"{target} = None")
        else:
            self.line(d + 1, f"raise Malformed('{field.name} is null')")
        self.line(d, "else:")

    def _sized(self, d: int, target: str, field: Field) -> None:
        compact = self.flexible and field.compact
        n = self._length(d, field, "h" if field.kind == "str" else "i", compact)
        stop = self.source.name("stop")
        self._null(d, target, field, n, compact)
        self.line(d + 1, f"{stop} = pos + {n}{' - 1' if compact else ''}")
        self.line(d + 1, f"if {stop} > end: raise Malformed('{field.name} runs past the end')")
        taken = {"str": "buf[pos:{0}].decode()", "bytes": "bytes(buf[pos:{0}])", "records": "whole[pos:{0}]"}
        self.line(d + 1, f"{target} = {taken[field.kind].format(stop)}; pos = {stop}")

    def _nested(self, d: int, target: str, field: Field) -> None:
        if field.nullable is None or self.version not in field.nullable:
            self.line(d, f"{target} = {self._struct(d, field.struct, field.name)}")
            return
        # The mark is an int8, -1 for null; where the field is tagged, it is an unsigned varint, 0 for null.
        present = self.source.name("present")
        self.run.append(("b" if field.tag is None else "B", present))
        self._flush(d)
        self.line(d, f"if {present} {'<' if field.tag is None else '=='} 0: {target} = None")
        self.line(d, "else:")
        self.line(d + 1, f"{target} = {self._struct(d + 1, field.struct, field.name)}")
        self._flush(d + 1)

    def _array(self, d: int, target: str, field: Field) -> None:
        compact = self.flexible and field.compact
        n = self._length(d, field, "i", compact)
        self._null(d, target, field, n, compact)
        d += 1
        if compact:
            self.line(d, f"{n} -= 1")
        item = field._replace(repeated=False, nullable=None)
        size = max(1, least_size(item, self.version, self.flexible))
        self.line(d, f"if {n} * {size} > end - pos: raise Malformed(f'{field.name} has {{{n}}} items')")
        if self.bounded:
            self._spend(d, n)
        if field.kind in WIDTHS:
            self.line(d, f"{target} = [*unpack_from(f'>{{{n}}}{field.kind}', buf, pos)] if {n} else []")
            self.line(d, f"pos += {n} * {size}")
            return
        items, one = self.source.name("items"), self.source.name("item")
        self.line(d, f"{items} = {target} = []")
        self.line(d, f"for _ in range({n}):")
        if field.kind == "struct":
            one = self._struct(d + 1, field.struct, field.name)
        else:
            self._value(d + 1, one, item)
        self._flush(d + 1)
        self.line(d + 1, f"{items}.append({one})")

    def _spend(self, d: int, count: str) -> None:
        self.line(d, f"left -= {count}")
        self.line(d, "if left < 0: raise Malformed('the request has too many parts')")

    def _tags(self, d: int, value: str, cls: Any) -> None:
        count = self.source.name("tags")
        self.run.append(("B", count))
        self._flush(d)
        self.line(d, f"if {count}:")
        d += 1
        self.line(
            d,
            f"if {count} > {MOST_TAGS} or {count} * 2 > end - pos: raise Malformed('too many tagged fields')",
        )
        if self.bounded:
            self._spend(d, count)
        known = [f for f in fields_of(cls) if f.tag is not None and self.version in f.versions]
        if not known:
            self.line(d, f"pos = skip_tags(buf, pos, end, {count})")
            return
        tag, stop = self.source.name("tag"), self.source.name("stop")
        self.line(d, f"{tag} = -1")
        self.line(d, f"for _ in range({count}):")
        self.line(d + 1, f"{tag}, {stop}, pos = next_tag(buf, pos, end, {tag})")
        for field in known:
            self.line(d + 1, f"if {tag} == {field.tag}:")
            self._value(d + 2, f"{value}.{field.name}", field)
            self._flush(d + 2)
            self.line(d + 2, f"if pos != {stop}: raise Malformed('{field.name} is not of the size it says')")
        self.line(d + 1, f"pos = {stop}")


def least_size(field: Field, version: int, flexible: bool) -> int:
    """The fewest bytes that a field can take, by which a hostile array length is told from an honest one."""
    compact = flexible and field.compact
    if field.repeated:
        return 1 if compact else 4
    if field.kind == "struct":
        if field.nullable is not None and version in field.nullable:
            return 1
        return least_struct_size(field.struct, version, flexible)
    if field.kind in WIDTHS:
        return WIDTHS[field.kind]
    return {"bool": 1, "uuid": 16, "str": 1 if compact else 2}.get(field.kind, 1 if compact else 4)


def least_struct_size(cls: Any, version: int, flexible: bool) -> int:
    present = (f for f in fields_of(cls) if version in f.versions and f.tag is None)
    return sum(least_size(f, version, flexible) for f in present) + flexible


def _has_records(cls: Any, version: int) -> bool:
    return any(
        version in f.versions
        and (f.kind == "records" or (f.struct is not None and _has_records(f.struct, version)))
        for f in fields_of(cls)
    )


def _next_tag(buf: Buffer, pos: int, end: int, last: int) -> tuple[int, int, int]:
    """The next tag, where its value stops and where it starts. Tags come in ascending order, each once."""
    tag, pos = uvarint(buf, pos, end)
    if tag <= last:
        raise MalformedFrame(f"tag {tag} follows tag {last}")
    size, pos = uvarint(buf, pos, end)
    if size > end - pos:
        raise MalformedFrame(f"tag {tag} runs past the end")
    return tag, pos + size, pos


def _skip_tags(buf: Buffer, pos: int, end: int, count: int) -> int:
    tag = -1
    for _ in range(count):
        tag, pos, _ = _next_tag(buf, pos, end, tag)
    return pos
