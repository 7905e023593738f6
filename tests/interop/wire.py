"""A connection that sends what it is told, right or wrong, and says what came back.

Messages are built and parsed by kio, so that no test trusts Ottla's own codec to judge itself.
"""

from __future__ import annotations

import datetime
import io
import itertools
import socket
import struct
import types
import typing
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Self

from kio.index import load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

MILLISECOND = datetime.timedelta(milliseconds=1)


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class Wire:
    """`wire.ask("metadata", 12, topics=[...])` returns the parsed response."""

    def __init__(self, bootstrap: str, timeout: float = 20.0) -> None:
        host, port = bootstrap.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_ids = itertools.count(1)

    def ask(self, api: str, version: int, /, **values: object) -> Any:
        """Sends one request and waits for its response."""
        correlation_id = self.send(api, version, **values)
        return self.receive(api, version, correlation_id)

    def send(self, api: str, version: int, /, *, surplus: bytes = b"", **values: object) -> int:
        """Sends one request; `surplus` follows its body. Returns the correlation id."""
        correlation_id = next(self.correlation_ids)
        self.send_frame(request_frame(api, version, correlation_id, values) + surplus)
        return correlation_id

    def receive(self, api: str, version: int, correlation_id: int) -> Any:
        schema: Any = load_entity_schema(api, version, EntityType.response)
        buffer = self.receive_frame()
        header, head = entity_reader(schema.__header_schema__)(buffer, 0)
        assert header.correlation_id == correlation_id
        body, size = entity_reader(schema)(buffer, head)
        assert head + size == len(buffer), f"{len(buffer) - head - size} bytes follow the response of {api}"
        return body

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed(self) -> bool:
        """Waits for the broker to hang up; false if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                chunk = self.socket.recv(size - len(parts))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise Closed(f"after {len(parts)} of {size} bytes")
            parts += chunk
        return bytes(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def request_frame(api: str, version: int, correlation_id: int, values: dict[str, object]) -> bytes:
    schema: Any = load_entity_schema(api, version, EntityType.request)
    header = schema.__header_schema__(
        request_api_key=schema.__api_key__,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="ottla-tests",
    )
    buffer = io.BytesIO()
    entity_writer(schema.__header_schema__)(buffer, header)
    entity_writer(schema)(buffer, build(schema, values))
    return buffer.getvalue()


def build(schema: Any, values: dict[str, object]) -> Any:
    """An instance of a kio class from plain values; what is left out gets zero, empty or null."""
    hints = hints_of(schema)
    built = {}
    for field in fields(schema):
        hint = hints[field.name]
        if field.name in values:
            built[field.name] = convert(hint, values[field.name])
        elif field.default is MISSING:
            built[field.name] = zero(hint)
    unknown = values.keys() - hints.keys()
    assert not unknown, f"{schema.__name__} v{schema.__version__} has no {unknown}, only {sorted(hints)}"
    return schema(**built)


@cache
def hints_of(schema: Any) -> dict[str, Any]:
    names = {field.name for field in fields(schema)}
    return {name: hint for name, hint in typing.get_type_hints(schema).items() if name in names}


def convert(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    hint = without_null(hint)
    if typing.get_origin(hint) is tuple:
        (element, _) = typing.get_args(hint)
        return tuple(convert(element, item) for item in value)
    if isinstance(value, dict):
        return build(hint, value)
    if issubclass(hint, datetime.timedelta) and isinstance(value, int):
        return value * MILLISECOND
    return value


def zero(hint: Any) -> Any:
    if hint is not without_null(hint):
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    if issubclass(hint, datetime.timedelta):
        return 0 * MILLISECOND
    plain = (kind for kind in (bool, int, str, bytes, float) if issubclass(hint, kind))
    return next(plain, hint)()


def without_null(hint: Any) -> Any:
    """The type itself, of `type | None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint
