"""Every message that is declared, and a way to fill any of them in any version with something."""

from __future__ import annotations

import importlib
import pkgutil
from random import Random
from typing import Any

import ottla.protocol.stored
from ottla.core.ids import Uuid
from ottla.protocol import headers
from ottla.protocol.apis import all_apis
from ottla.protocol.schema import Field, fields_of


def api_messages() -> list[Any]:
    """Requests and responses."""
    return [message for api in all_apis() for message in (api.request, api.response)]


def stored_messages() -> list[Any]:
    """Records and the like, and the two headers."""
    names = [info.name for info in pkgutil.iter_modules(ottla.protocol.stored.__path__)]
    modules = [headers, *(importlib.import_module(f"ottla.protocol.stored.{name}") for name in names)]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if hasattr(value, "api_key") and value.__module__ == module.__name__
    ]


def versions_of(message: Any) -> range:
    return range(message.versions.first, message.versions.last + 1)


def filled(message: Any, version: int, seed: int) -> Any:
    """A message whose every field that the version has holds something, the same for the same seed.

    The values are ones that mean something to any client: codes and times are small and not negative.
    """
    return _Filler(version, Random(f"{message.__name__} {version} {seed}")).struct(message)


class _Filler:
    def __init__(self, version: int, random: Random) -> None:
        self.version = version
        self.random = random

    def struct(self, cls: Any) -> Any:
        present = (field for field in fields_of(cls) if self.version in field.versions)
        return cls(**{field.name: self.field(field) for field in present})

    def field(self, field: Field) -> Any:
        can_be_null = field.nullable is not None and self.version in field.nullable
        if can_be_null and self.random.random() < 0.25:
            return None
        if field.repeated:
            return [self.one(field) for _ in range(self.random.randint(0, 3))]
        return self.one(field)

    def one(self, field: Field) -> Any:
        random = self.random
        if field.kind == "struct":
            return self.struct(field.struct)
        if field.kind == "bool":
            return random.random() < 0.5
        if field.kind == "str":
            return "".join(random.choice("abcdefghijkäöü.-_") for _ in range(random.choice((0, 3, 9, 200))))
        if field.kind in ("bytes", "records"):
            return random.randbytes(random.choice((0, 5, 130)))
        if field.kind == "uuid":
            return Uuid(random.randbytes(16))
        if field.kind == "d":
            return float(random.randint(0, 1000)) / 8
        return random.randint(0, 100)
