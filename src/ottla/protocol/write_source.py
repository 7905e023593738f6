"""Writes the function that writes one version of one message, the counterpart of `read_source`.

A field that the version lacks has to hold its default, unless it is ignorable. A tagged field that holds its
default is left out.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.protocol.schema import Field, Struct, fields_of
from ottla.protocol.source import WIDTHS, Source
from ottla.protocol.wire import UnwritableMessage, put_uvarint

# Records longer than this are handed on as they are; below it, copying costs less than one more buffer does
# on its way to the socket.
LARGE_RECORDS = 4096


def writer_source(cls: Any, version: int, chunked: bool) -> Source:
    return _Writing(cls, version, chunked).source


class _Writing:
    def __init__(self, cls: Any, version: int, chunked: bool) -> None:
        self.version = version
        self.flexible = cls.flexible is not None and version in cls.flexible
        self.chunked = chunked
        self.run: list[tuple[str, str]] = []  # format letter and value of what the next pack writes
        self.source = Source(Unwritable=UnwritableMessage, put=put_uvarint, pack=struct.pack)
        self.line = self.source.line
        self.line(0, f"def codec(value, out{', chunks' if chunked else ''}):")
        self._struct(1, "value", cls)
        self._flush(1)
        self.line(1, "return out")

    def _struct(self, d: int, value: str, cls: Any) -> None:
        """Writes a struct, and leaves its last fixed fields to the run."""
        for field in fields_of(cls):
            held = f"{value}.{field.name}"
            if self.version not in field.versions:
                if not field.ignorable:
                    self.line(d, f"if {self._differs(held, field)}:")
                    why = f"{cls.__name__}.{field.name} cannot be set in version {self.version}"
                    self.line(d + 1, f"raise Unwritable({why!r})")
            elif field.tag is None:
                self._value(d, held, field)
        if self.flexible:
            self._tags(d, value, cls)

    def _value(self, d: int, value: str, field: Field) -> None:
        if field.repeated:
            self._array(d, value, field)
        elif field.kind == "struct":
            self._nested(d, value, field)
        elif field.kind in WIDTHS:
            self.run.append((field.kind, value))
        elif field.kind == "bool":
            self.run.append(("?", value))
        elif field.kind == "uuid":
            self.run.append(("16s", value))
        else:
            self._sized(d, value, field)

    def _flush(self, d: int) -> None:
        """Writes what the run has gathered."""
        if not self.run:
            return
        values = ", ".join(value for _, value in self.run if value)
        if not values:
            self.line(d, "out.append(0)" if len(self.run) == 1 else f"out += {bytes(len(self.run))!r}")
        else:
            packer = struct.Struct(">" + "".join(letter for letter, _ in self.run))
            self.line(d, f"out += {self.source.constant('pack', packer.pack)}({values})")
        self.run.clear()

    def _length(self, d: int, n: str, letter: str, compact: bool) -> None:
        if compact:
            self.line(d, f"if {n} < 127: out.append({n} + 1)")
            self.line(d, f"else: put(out, {n} + 1)")
        else:
            self.line(d, f"out += {self.source.constant('pack', struct.Struct('>' + letter).pack)}({n})")

    def _null(self, d: int, value: str, field: Field, null: bytes) -> int:
        """Writes null if the value is, and opens the block for everything else, whose depth it answers."""
        if field.nullable is None or self.version not in field.nullable:
            return d
        self.line(d, f"if {value} is None: out += {null!r}")
        self.line(d, "else:")
        return d + 1

    def _sized(self, d: int, value: str, field: Field) -> None:
        self._flush(d)
        compact = self.flexible and field.compact
        x, n = self.source.name("x"), self.source.name("n")
        letter, null = ("h", b"\xff\xff") if field.kind == "str" else ("i", b"\xff\xff\xff\xff")
        self.line(d, f"{x} = {value}")
        d = self._null(d, x, field, b"\0" if compact else null)
        if field.kind == "str":
            self.line(d, f"{x} = {x}.encode()")
        self.line(d, f"{n} = len({x})")
        if compact and field.kind == "str":
            self.line(d, f"if {n} > 0x7FFF: raise Unwritable('{field.name} is too long')")
        self._length(d, n, letter, compact)
        if field.kind == "records" and self.chunked:
            self.line(
                d, f"if {n} > {LARGE_RECORDS}: chunks.append(out); chunks.append({x}); out = bytearray()"
            )
            self.line(d, f"else: out += {x}")
        else:
            self.line(d, f"out += {x}")

    def _nested(self, d: int, value: str, field: Field) -> None:
        x = self.source.name(field.name)
        self.line(d, f"{x} = {value}")
        if field.nullable is None or self.version not in field.nullable:
            self._struct(d, x, field.struct)
            return
        self._flush(d)
        d = self._null(d, x, field, b"\xff" if field.tag is None else b"\0")
        self.run.append(("b", "1"))
        self._struct(d, x, field.struct)
        self._flush(d)

    def _array(self, d: int, value: str, field: Field) -> None:
        self._flush(d)
        compact = self.flexible and field.compact
        x, n, item = self.source.name("x"), self.source.name("n"), self.source.name("item")
        self.line(d, f"{x} = {value}")
        d = self._null(d, x, field, b"\0" if compact else b"\xff\xff\xff\xff")
        self.line(d, f"{n} = len({x})")
        self._length(d, n, "i", compact)
        if field.kind in WIDTHS:
            self.line(d, f"if {n}: out += pack(f'>{{{n}}}{field.kind}', *{x})")
            return
        self.line(d, f"for {item} in {x}:")
        self._value(d + 1, item, field._replace(repeated=False, nullable=None))
        self._flush(d + 1)

    def _tags(self, d: int, value: str, cls: Any) -> None:
        known = [f for f in fields_of(cls) if f.tag is not None and self.version in f.versions]
        known.sort(key=lambda f: f.tag or 0)
        if not known:
            self.run.append(("x", ""))
            return
        self._flush(d)
        flags = {field.name: self.source.name("has") for field in known}
        for field in known:
            self.line(d, f"{flags[field.name]} = {self._differs(f'{value}.{field.name}', field)}")
        self.line(d, f"if {' or '.join(flags.values())}:")
        body = self.source.name("out")
        self.line(d + 1, f"{body} = out")
        self.line(d + 1, f"{body}.append({' + '.join(flags.values())})")
        for field in known:
            self.line(d + 1, f"if {flags[field.name]}:")
            self.line(d + 2, "out = bytearray()")
            self._value(d + 2, f"{value}.{field.name}", field)
            self._flush(d + 2)
            self.line(d + 2, f"put({body}, {field.tag}); put({body}, len(out)); {body} += out")
        self.line(d + 1, f"out = {body}")
        self.line(d, "else: out.append(0)")

    def _differs(self, value: str, field: Field) -> str:
        """A test, true or false and nothing else, of whether a field holds other than its default."""
        default = field.default
        if default is None:
            return f"{value} is not None"
        if default is True or default is False:
            return f"bool({value}) is not {default}"
        if isinstance(default, list):
            return f"{value} != []"
        if isinstance(default, Struct):
            shared = self.source.constant("default", default)
            return f"({value} is not {shared} and {value} != {shared})"
        return f"{value} != {self.source.literal(default)}"
