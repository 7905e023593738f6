"""Whether what one schema wrote another can read: the rules of Java's `SchemaCompatibility`, quirks included.

Names are compared without their namespaces; the reader's aliases in full. A reader's field whose type is an
enum with a default of its own, and which the writer does not have, is told to be of another type. A branch of
the writer's union that no branch of the reader's can read is one difference, whatever is wrong within. A pair
of types that is met again within itself is held to be compatible.

Ours differs in how often it tells: a difference of a type that is used in two places is told once, and no
more than `MAX_DIFFERENCES` are. It differs too where Java would take too long: if `EXACT_STEPS` were not
enough, then branches of unions are compared only if their names let them, which Java would find out later,
and schemas that take more than `MAX_STEPS` all the same are refused.

Nothing here calls itself, since types may be nested through names as deep as a text is long: what compares a
pair is a generator that asks for the pairs it depends on.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, TypeAlias

from ottla.registry.formats.avro.types import (
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    NoDefault,
    Record,
    Type,
    Union,
)

MAX_DIFFERENCES = 100
EXACT_STEPS = 100_000
MAX_STEPS = 500_000

PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
_DESCRIPTIONS: Final = {
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "FIXED_SIZE_MISMATCH": (
        "The size of FIXED type field at path '{path}' in the reader schema"
        " does not match with the writer schema"
    ),
    "MISSING_ENUM_SYMBOLS": (
        "The reader schema is missing enum symbols '{message}' at path '{path}' in the writer schema"
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{message}' at path '{path}' in the reader schema has no default value"
        " and is missing in the writer schema"
    ),
    "TYPE_MISMATCH": (
        "The type (path '{path}') of a field in the reader schema does not match with the writer schema"
    ),
    "MISSING_UNION_BRANCH": (
        "The reader schema is missing a type inside a union field at path '{path}' in the writer schema"
    ),
}


@dataclass(eq=False, slots=True)
class Location:
    """Where in a schema's JSON, as the way back to its root."""

    parent: Location | None = None
    tokens: tuple[str | int, ...] = ()

    def at(self, *tokens: str | int) -> Location:
        return Location(self, tokens)

    def __str__(self) -> str:
        tokens: list[str] = []
        location: Location | None = self
        while location is not None:
            tokens.extend(map(str, reversed(location.tokens)))
            location = location.parent
        return "/" + "/".join(reversed(tokens))


@dataclass(eq=False, slots=True)
class Difference:
    type: str
    location: Location
    message: str

    def __str__(self) -> str:
        described = _DESCRIPTIONS[self.type].format(path=self.location, message=self.message)
        return f"{{errorType:'{self.type}', description:'{described}', additionalInfo:'{self.message}'}}"


class Incomparable(Exception):
    """Java throws here, and Confluent's registry answers with the message."""


class TooLong(Exception):
    """The comparison takes more steps than it may."""


Differences: TypeAlias = dict[Difference, None]  # As a set that keeps its order.
NOTHING: Final[Differences] = {}
Pair: TypeAlias = tuple[Type, Type, Location]
Comparing: TypeAlias = Generator[Pair, Differences, Differences]


def differences(reader: Type, writer: Type) -> list[str]:
    """Why `reader` cannot read what `writer` wrote. Nothing if it can."""
    try:
        try:
            found = _Comparison(EXACT_STEPS, by_name=False).compare(reader, writer)
        except TooLong:
            found = _Comparison(MAX_STEPS, by_name=True).compare(reader, writer)
    except Incomparable as error:
        return [f"Unexpected exception during compatibility check: {error}"]
    except TooLong:
        return [f"The schemas take more than {MAX_STEPS} steps to compare"]
    return [str(difference) for difference in found]


class _Comparison:
    """Types are told apart by identity: the schemas hold them for as long as this lives."""

    def __init__(self, max_steps: int, *, by_name: bool) -> None:
        self._steps = max_steps
        self._by_name = by_name
        self._found: dict[tuple[int, int], Differences] = {}
        self._branches: dict[int, dict[tuple[str, str | None, str | None], list[Type]]] = {}
        self._fields: dict[int, dict[str, Field]] = {}

    def compare(self, reader: Type, writer: Type) -> Differences:
        waiting: list[tuple[tuple[int, int], Comparing]] = []
        asked: Pair | None = (reader, writer, Location())
        answer: Differences | None = None
        while True:
            if asked is not None:
                self._step(1)
                pair = id(asked[0]), id(asked[1])
                answer = self._found.get(pair)
                if answer is None:
                    # While a pair is compared it counts as compatible. What speaks against it will be found.
                    self._found[pair] = NOTHING
                    waiting.append((pair, self._pair(*asked)))
            comparing = waiting[-1][1]
            try:
                asked = next(comparing) if answer is None else comparing.send(answer)
            except StopIteration as finished:
                pair, _ = waiting.pop()
                asked, answer = None, finished.value
                self._found[pair] = finished.value
                if not waiting:
                    return self._found[pair]

    def _pair(self, reader: Type, writer: Type, at: Location) -> Comparing:
        found: Differences = {}
        match reader, writer:
            case Union(), Union():
                for index, branch in enumerate(writer.branches):
                    if (yield reader, branch, Location()):
                        _add(found, _missing_branch(branch, at.at(index)))
            case _, Union():
                for index, branch in enumerate(writer.branches):
                    _merge(found, (yield reader, branch, at.at(index)))
            case Union(), _:
                for branch in self._branches_for(writer, reader) if self._by_name else reader.branches:
                    if not (yield branch, writer, Location()):
                        return found
                _add(found, _missing_branch(writer, at))
            case Array(), Array():
                _merge(found, (yield reader.items, writer.items, at.at("items")))
            case Map(), Map():
                _merge(found, (yield reader.values, writer.values, at.at("values")))
            case Record(), Record():
                self._check_names(reader, writer, at, found)
                yield from self._records(reader, writer, at, found)
            case Enum(), Enum():
                self._check_names(reader, writer, at, found)
                self._check_symbols(reader, writer, at, found)
            case Fixed(), Fixed():
                self._check_names(reader, writer, at, found)
                if reader.size != writer.size:
                    message = f"expected: {writer.size}, found: {reader.size}"
                    _add(found, Difference("FIXED_SIZE_MISMATCH", at.at("size"), message))
            case _:
                if reader.kind != writer.kind and writer.kind not in PROMOTIONS.get(reader.kind, ()):
                    kinds = reader.kind.upper(), writer.kind.upper()
                    message = "reader type: {} not compatible with writer type: {}".format(*kinds)
                    _add(found, Difference("TYPE_MISMATCH", at, message))
        return found

    def _records(
        self, reader: Record, writer: Record, at: Location, found: Differences
    ) -> Generator[Pair, Differences, None]:
        writer_fields = self._fields.get(id(writer))
        if writer_fields is None:
            writer_fields = self._fields[id(writer)] = {field.name: field for field in writer.fields}
        for position, field in enumerate(reader.fields):
            self._step(1 + len(field.aliases))
            written = [writer_fields[name] for name in (field.name, *field.aliases) if name in writer_fields]
            if len(written) > 1:
                raise Incomparable(
                    f"Reader record field {field.name} type:{field.type.kind.upper()} pos:{position} matches"
                    f" multiple fields in writer record schema {writer.name.full}"
                )
            if written and field.type.kind in PRIMITIVES and field.type.kind == written[0].type.kind:
                continue  # Most fields are, and need not be asked for.
            if written:
                _merge(found, (yield field.type, written[0].type, at.at("fields", position, "type")))
            elif isinstance(field.default, NoDefault):
                if isinstance(field.type, Enum) and field.type.default is not None:
                    _merge(found, (yield field.type, writer, at.at("fields", position, "type")))
                else:
                    here = at.at("fields", position)
                    _add(found, Difference("READER_FIELD_MISSING_DEFAULT_VALUE", here, field.name))

    def _check_names(self, reader: Named, writer: Named, at: Location, found: Differences) -> None:
        if reader.name.simple != writer.name.simple:
            self._step(len(reader.aliases))
            if writer.name.full not in reader.alias_names:
                _add(found, Difference("NAME_MISMATCH", at.at("name"), f"expected: {writer.name.full}"))

    def _check_symbols(self, reader: Enum, writer: Enum, at: Location, found: Differences) -> None:
        if reader.default is not None:
            return
        self._step(len(reader.symbols) + len(writer.symbols))
        missing = sorted(set(writer.symbols).difference(reader.symbols))
        if missing:
            message = f"[{', '.join(missing)}]"
            _add(found, Difference("MISSING_ENUM_SYMBOLS", at.at("symbols"), message))

    def _branches_for(self, writer: Type, reader: Union) -> list[Type]:
        """Those of a reader's branches that could be compatible, going by kinds and names alone."""
        branches = self._branches.get(id(reader))
        if branches is None:
            branches = self._branches[id(reader)] = _by_name(reader)
        if isinstance(writer, Named):
            by_name = branches.get((writer.kind, writer.name.simple, None), [])
            return by_name + branches.get((writer.kind, None, writer.name.full), [])
        kinds = (writer.kind, *(kind for kind, promoted in PROMOTIONS.items() if writer.kind in promoted))
        return [branch for kind in kinds for branch in branches.get((kind, None, None), [])]

    def _step(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise TooLong


def _by_name(union: Union) -> dict[tuple[str, str | None, str | None], list[Type]]:
    """By kind and simple name, and by kind and alias."""
    branches: dict[tuple[str, str | None, str | None], list[Type]] = {}
    for branch in union.branches:
        if isinstance(branch, Named):
            branches.setdefault((branch.kind, branch.name.simple, None), []).append(branch)
            for alias in branch.alias_names:
                branches.setdefault((branch.kind, None, alias), []).append(branch)
        else:
            branches.setdefault((branch.kind, None, None), []).append(branch)
    return branches


def _missing_branch(writer: Type, at: Location) -> Difference:
    return Difference("MISSING_UNION_BRANCH", at, f"reader union lacking writer type: {writer.kind.upper()}")


def _add(found: Differences, difference: Difference) -> None:
    if len(found) < MAX_DIFFERENCES:
        found[difference] = None


def _merge(found: Differences, more: Differences) -> None:
    for difference in more:
        _add(found, difference)
