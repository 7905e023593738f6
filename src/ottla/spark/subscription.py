"""Which partitions a read wants: topics by name, topics by pattern, or partitions by number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.core.types import INTERNAL_TOPICS, TopicPartition
from ottla.spark.offsets import BadOffsets, parse_partitions
from ottla.spark.properties import BadOption


@dataclass(frozen=True)
class Topics:
    """All partitions of these topics, also those that are added later."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """All partitions of the topics in whose name the expression is found; never of Kafka's internal ones."""

    expression: str

    def matching(self, names: Mapping[str, list[int]]) -> list[str]:
        compiled = re.compile(self.expression)
        return [name for name in names if name not in INTERNAL_TOPICS and compiled.search(name)]


@dataclass(frozen=True)
class Partitions:
    """These partitions and no others."""

    partitions: tuple[TopicPartition, ...]


Subscription = Topics | Pattern | Partitions


def parse_subscription(own: Mapping[str, str]) -> Subscription:
    """Exactly one of subscribe, subscribePattern and assign. Raises `BadOption`."""
    given = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in own]
    if not given:
        raise BadOption("one of the options 'subscribe', 'subscribePattern' and 'assign' says what to read")
    if len(given) > 1:
        raise BadOption(f"only one of the options {' and '.join(map(repr, given))} can be given")
    text = own[given[0].lower()].strip()
    match given[0]:
        case "subscribe":
            names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
            if not names:
                raise BadOption("option 'subscribe' names no topic: write topics with commas between them")
            return Topics(names)
        case "subscribePattern":
            return Pattern(_checked(text))
        case _:
            try:
                partitions = tuple(parse_partitions(text))
            except BadOffsets as error:
                raise BadOption(f"option 'assign' is JSON: {error}") from None
            if not partitions:
                raise BadOption("option 'assign' names no partition")
            return Partitions(partitions)


def _checked(expression: str) -> str:
    if not expression:
        raise BadOption("option 'subscribePattern' is empty: write a regular expression, as in 'orders.*'")
    try:
        re.compile(expression)
    except re.error as error:
        raise BadOption(
            f"option 'subscribePattern', {expression}, is no regular expression: {error}"
        ) from None
    return expression
