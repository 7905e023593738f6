"""Who of a consumer group reads which partition, decided by the broker.

An assignor is a function without memory: it is given the members, what each subscribes to and was to have so
far, and the size of every topic, and answers what each is to have from now on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.groups.assignors.range import assign as assign_ranges
from ottla.groups.assignors.subscribers import Assignment, PartitionCounts, Subscriber
from ottla.groups.assignors.uniform import assign as assign_uniformly

Assignor = Callable[[Mapping[str, Subscriber], PartitionCounts], dict[str, Assignment]]

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
