"""Files that .proto text can import, and pools of descriptors made of them.

Those of Google come from the protobuf library, and those under google/type from googleapis-common-protos
where that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.described import FileDescriptorProto

DESCRIPTOR = "google/protobuf/descriptor.proto"
# It extends options, and Confluent's tools use it without an import.
META = "confluent/meta.proto"
_GOOGLES = re.compile(r"google/(?:protobuf/(?:compiler/)?|type/)[a-z_]+\.proto")


@dataclass(slots=True, eq=False)
class Linked:
    """A file whose names are resolved: its FileDescriptorProto, and the fields that were written without a
    label, by message and number, which a descriptor does not tell."""

    proto: Any
    unlabelled: set[tuple[str, int]] = field(default_factory=set)


class Files:
    """Files by the name they are imported by. What a file imports is here before it. `known` gives those that
    need not be brought, apart from Google's."""

    def __init__(self, known: Callable[[str], Linked | None]) -> None:
        self._files: dict[str, Linked] = {}
        self._known = known

    def add(self, linked: Linked) -> None:
        self._files[linked.proto.name] = linked

    def find(self, name: str) -> Linked | None:
        if name not in self._files:
            linked = _googles(name) if _GOOGLES.fullmatch(name) else self._known(name)
            if linked is None:
                return None
            for dependency in linked.proto.dependency:
                self.find(dependency)
            self._files[name] = linked
        return self._files[name]

    def visible(self, proto: Any) -> list[Linked]:
        """What the names in a file can mean: its imports and all that these import publicly."""
        found: dict[str, Linked] = {}
        wanted = list(proto.dependency)
        while wanted:
            name = wanted.pop()
            if name not in found:
                linked = found[name] = self._files[name]
                wanted += [linked.proto.dependency[index] for index in linked.proto.public_dependency]
        return list(found.values())

    def used_by(self, proto: Any) -> list[Linked]:
        """All that a file imports, directly or not, with what is imported before what imports it."""
        found: set[str] = set()
        wanted = list(proto.dependency)
        while wanted:
            name = wanted.pop()
            if name not in found:
                found.add(name)
                wanted += self._files[name].proto.dependency
        return [linked for name, linked in self._files.items() if name in found]

    def pool(self, proto: Any, *, with_meta: bool = False) -> Any:
        """A pool that has a file and all it imports. Raises InvalidSchema if the library refuses the file."""
        pool = DescriptorPool()
        used = self.used_by(proto)
        try:
            for linked in used:
                pool.Add(linked.proto)
            pool.Add(proto)
        except (TypeError, ValueError) as error:
            reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
            raise InvalidSchema(f"the Protobuf library refuses it: {reason}") from None
        for name in (DESCRIPTOR, META) if with_meta else ():
            known = self.find(name)
            if known is not None and known not in used:
                # A file may have the same names itself: then it is the one that is meant.
                with suppress(TypeError):
                    pool.Add(known.proto)
        return pool


def options_class(pool: Any, options: Any) -> Any:
    """The class of a message for options that knows the extensions in a pool, or None if it knows none."""
    try:
        descriptor = pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
    except KeyError:
        return None
    return GetMessageClass(descriptor) if descriptor.file.name == DESCRIPTOR else None


@cache
def _googles(name: str) -> Linked | None:
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError:
        return None
    proto = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return Linked(proto)
