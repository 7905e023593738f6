"""How `ottla consume` prints a record: a format string as kcat and rpk have it, or a line of JSON.

    %t topic    %p partition    %o offset       %T timestamp in ms   %d timestamp as ISO 8601
    %k key      %v value        %h headers      %K bytes of the key  %V bytes of the value   %% percent sign

`%s` and `%S` are the value and its size too, as in kcat. A key or value that is null prints nothing, and its
size is -1. `\\n`, `\\t`, `\\r`, `\\0`, `\\\\` and `\\xHH` are what they are in C.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from ottla.cli.running import Misused
from ottla.cli.times import iso
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record

Part = Callable[[TopicPartition, Record], bytes]
Format = Callable[[TopicPartition, Record], bytes]

_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN: Final = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([%\\]$)|([^%\\]+)", re.DOTALL)


def _size(value: bytes | None) -> bytes:
    return b"-1" if value is None else b"%d" % len(value)


def _headers(record: Record) -> bytes:
    pairs = (
        name.encode("utf-8", "surrogateescape") + b"=" + (value or b"") for name, value in record.headers
    )
    return b",".join(pairs)


_DIRECTIVES: Final[dict[str, Part]] = {
    "t": lambda partition, record: partition.topic.encode(),
    "p": lambda partition, record: b"%d" % partition.partition,
    "o": lambda partition, record: b"%d" % record.offset,
    "k": lambda partition, record: record.key or b"",
    "v": lambda partition, record: record.value or b"",
    "s": lambda partition, record: record.value or b"",
    "K": lambda partition, record: _size(record.key),
    "V": lambda partition, record: _size(record.value),
    "S": lambda partition, record: _size(record.value),
    "T": lambda partition, record: b"%d" % record.timestamp,
    "d": lambda partition, record: iso(record.timestamp).encode(),
    "h": lambda partition, record: _headers(record),
    "%": lambda partition, record: b"%",
}


def parse_format(text: str) -> Format:
    """A function from record to bytes. Raises Misused for what is no directive."""
    parts: list[bytes | Part] = []
    for found in _TOKEN.finditer(text):
        directive, code, escape, cut_off, plain = found.groups()
        if plain is not None:
            parts.append(os.fsencode(plain))
        elif code is not None:
            parts.append(bytes([int(code, 16)]))
        elif directive is not None and directive in _DIRECTIVES:
            parts.append(_DIRECTIVES[directive])
        elif escape is not None and escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
        else:
            wrong = found[0] if cut_off is None else f"{cut_off} at the end"
            raise Misused(f"--format: there is no {wrong}; see `ottla consume --help` for those there are")

    def formatted(partition: TopicPartition, record: Record) -> bytes:
        return b"".join(p if isinstance(p, bytes) else p(partition, record) for p in parts)

    return formatted


def json_line(partition: TopicPartition, record: Record) -> bytes:
    """A record as one line of JSON. Bytes that are not UTF-8 are in a field called ..._base64 instead."""
    found: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(found, "key", record.key)
    _put(found, "value", record.value)
    if record.headers:
        headers = found["headers"] = []
        for name, value in record.headers:
            header = {"key": name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")}
            _put(header, "value", value)
            headers.append(header)
    return json.dumps(found, ensure_ascii=False).encode() + b"\n"


def _put(found: dict[str, Any], name: str, value: bytes | None) -> None:
    try:
        found[name] = None if value is None else value.decode()
    except UnicodeDecodeError:
        found[f"{name}_base64"] = b64encode(value or b"").decode()
