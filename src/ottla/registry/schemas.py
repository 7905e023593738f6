"""What the registry keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SchemaType(Enum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that a schema uses, under the name it is used by."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as text. Two that are equal have the same id."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether all of it can be written as UTF-8. JSON has escapes for what no text has."""
        try:
            self.text.encode()
            for reference in self.references:
                reference.name.encode()
                reference.subject.encode()
        except UnicodeEncodeError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False
