"""Offsets of many partitions: their JSON, and how far a batch goes. Pure.

The JSON is that of Spark's Kafka connector, `{"topic": {"0": 23}}`, in the options as in the checkpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.core.types import TopicPartition

Offsets = Mapping[TopicPartition, int]

LATEST: Final = -1
EARLIEST: Final = -2


class BadOffsets(ValueError):
    """Text that is not the JSON of offsets or partitions."""


def describe(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(partition) for partition in sorted(partitions)) or "none"


# --- JSON ----------------------------------------------------------------------------------


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    return from_json(_loaded(text, '{"topicA": {"0": 23, "1": -1}, "topicB": {"0": -2}}'))


def parse_partitions(text: str) -> list[TopicPartition]:
    example = '{"topicA": [0, 1], "topicB": [2]}'
    found = []
    for topic, partitions in _loaded(text, example).items():
        if not isinstance(partitions, list) or not all(_is_index(partition) for partition in partitions):
            raise BadOffsets(f"expected for example {example}, got {text}")
        found += [TopicPartition(topic, partition) for partition in partitions]
    return sorted(set(found))


def from_json(value: Any) -> dict[TopicPartition, int]:
    """Offsets from the object that a checkpoint or an option holds."""
    offsets: dict[TopicPartition, int] = {}
    try:
        for topic, partitions in value.items():
            for partition, offset in partitions.items():
                if not partition.isdecimal() or not isinstance(offset, int) or isinstance(offset, bool):
                    raise ValueError
                offsets[TopicPartition(topic, int(partition))] = offset
    except (AttributeError, ValueError):
        raise BadOffsets(
            f'expected for example {{"topicA": {{"0": 23, "1": -1}}}}, got {json.dumps(value)}'
        ) from None
    return offsets


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """The object to store. In order, since Spark compares offsets by their text."""
    result: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(offsets):
        result.setdefault(topic, {})[str(partition)] = offsets[TopicPartition(topic, partition)]
    return result


def _loaded(text: str, example: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadOffsets(f"expected for example {example}, got {text}")
    return value


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# --- limits --------------------------------------------------------------------------------


def available(start: Offsets, end: Offsets) -> int:
    """How many offsets are between the two, counting partitions that are new from 0."""
    return sum(offset - start.get(partition, 0) for partition, offset in end.items())


def limited(limit: int, start: Offsets, end: Offsets) -> dict[TopicPartition, int]:
    """The end of a batch of about `limit` offsets, shared among partitions by what each of them has.

    `start` has the first offset of new partitions too. No partition that has something is left out, so that a
    small one does not starve beside a large one.
    """
    sizes = {p: end[p] - start[p] for p in end if p in start and end[p] > start[p]}
    total = sum(sizes.values())
    chosen = dict(end)
    for partition, size in sizes.items():
        share = limit * (size / total)
        taken = math.ceil(share) if share < 1 else math.floor(share)
        chosen[partition] = min(end[partition], start[partition] + taken)
    return chosen
