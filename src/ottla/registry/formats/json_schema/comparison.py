"""How two JSON Schemas differ, as Confluent's registry sees it.

`original` is what data was written with, `update` what it is read with. Pairs of subschemas are compared once
each, however many references lead to them. A pair that is met again while it is compared, through a recursive
reference, is taken to fit; if it then turns out not to, all is compared again with that known, until nothing
new turns up.

A comparison of a pair is a generator that yields the pairs inside of it and is sent what was found of them.
So schemas that refer to each other in a chain of thousands take no stack."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from ottla.registry.formats.json_schema.differences import Differences
from ottla.registry.formats.json_schema.model import MISSING, ReferenceSchema, Subschema
from ottla.registry.formats.json_schema.patterns import Pattern, compiled
from ottla.registry.formats.json_schema.shapes import shape
from ottla.registry.formats.json_schema.text import write

Pair = tuple[Subschema, Subschema]


class Trial(NamedTuple):
    """A pair of which all that matters is whether it fits: the comparison ends with the first thing that does
    not. Of many alternatives most do not fit, and most of them show it soon."""

    original: Subschema
    update: Subschema


Steps = Generator[Pair | Trial, Differences, None]
Compared = Callable[["Comparison", Differences, Subschema, Subschema], Steps]

# Bounds the time of a comparison, and what it keeps: in parts of subschemas that are looked at.
MAX_WORK = 1_000_000
# A pair that is compared for the first time takes as long as so many of them.
_NEW_PAIR = 4
# As do so many steps of a pattern.
_STEPS = 3


class TooMuchWork(Exception):
    """The schemas are too large, too many of their parts to be matched with too many others."""


class Comparison:
    """`compared` says how a pair is compared. What is compatible is told of only if `everything` is."""

    def __init__(self, compared: Compared, *, everything: bool = False) -> None:
        self._compared = compared
        self._everything = everything
        self.work = 0
        self._texts: dict[int, str] = {}
        self._patterns: dict[str, Pattern | None] = {}
        self._shapes: dict[object, int] = {}
        self._shape_of: dict[Subschema, int] = {}
        self._refused: dict[Pair, Differences] = {}
        self._done: dict[Pair, Differences] = {}
        self._unfit: dict[Pair, Differences] = {}
        self._assumed = False

    def compare(self, original: Subschema, update: Subschema) -> Differences:
        """What is different. Raises TooMuchWork."""
        while True:
            self._done, self._unfit, self._assumed = {}, {}, False
            found = self._run(original, update)
            refused = self._unfit | {pair: each for pair, each in self._done.items() if not each.compatible}
            if not self._assumed or refused.keys() == self._refused.keys():
                return found
            self._refused = refused

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise TooMuchWork

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a property has a name that a pattern is found in."""
        if pattern not in self._patterns:
            self.spend(1 + len(pattern) // _STEPS)
            self._patterns[pattern] = compiled(pattern)
        known = self._patterns[pattern]
        if known is None:
            return False
        self.spend(1 + len(known.steps) * len(name) // _STEPS)
        return known.found_in(name)

    def text(self, value: Any) -> str | None:
        """A JSON value as what it can be compared by: 1 and 1.0 are not the same, nor are 1 and true."""
        if value is MISSING:
            return None
        # Values belong to the schemas, which outlive the comparison, and so do their ids.
        known = self._texts.get(id(value))
        if known is None:
            known = self._texts[id(value)] = write(value, ordered=True)
        return known

    def distinct(self, schemas: list[Subschema]) -> list[Subschema]:
        """Schemas without those that say the same as one before them."""
        self.spend(len(schemas))
        by_shape: dict[int, Subschema] = {}
        for schema in schemas:
            by_shape.setdefault(shape(schema, self._shapes, self._shape_of), schema)
        return list(by_shape.values())

    def _run(self, original: Subschema, update: Subschema) -> Differences:
        pair, trial = (_referred(original), _referred(update)), False
        stack: list[tuple[Pair, bool, Differences, Steps]] = []
        under_way: set[Pair] = set()
        while True:
            self.spend(1)
            known = self._known(pair, trial, under_way)
            if known is None:
                self.spend(_NEW_PAIR)
                found = Differences(everything=self._everything)
                under_way.add(pair)
                stack.append((pair, trial, found, self._compared(self, found, *pair)))
            # `known` is what the topmost generator waits for, or None to start it.
            while True:
                pair, trial, found, steps = stack[-1]
                try:
                    wanted = next(steps) if known is None else steps.send(known)
                    if found.compatible or not trial:
                        break
                    steps.close()
                except StopIteration:
                    pass
                stack.pop()
                under_way.discard(pair)
                known = found
                if trial and not found.compatible:
                    self._unfit[pair] = found
                else:
                    self._done[pair] = found
                if not stack:
                    return found
            pair = (_referred(wanted[0]), _referred(wanted[1]))
            trial = trial or isinstance(wanted, Trial)

    def _known(self, pair: Pair, trial: bool, under_way: set[Pair]) -> Differences | None:
        known = self._done.get(pair)
        if known is None and trial:
            known = self._unfit.get(pair)
        if known is None and pair in under_way:
            known = self._refused.get(pair)
            if known is None:
                self._assumed = True
                return Differences()
        return known


def _referred(schema: Subschema) -> Subschema:
    """What a reference refers to, one step: as in Confluent's registry, a reference to a reference is a kind
    of its own."""
    if isinstance(schema, ReferenceSchema):
        assert schema.target is not None, schema.ref
        return schema.target
    return schema
