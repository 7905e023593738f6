"""What the members of a consumer group subscribe to, taken together.

Members subscribe by name, by a regular expression, or both. What an expression stands for is written to the
log, so that it is the same for everybody and for the next coordinator. It never stands for topics that the
member may not see whose heartbeat it was resolved in; another member may see more or fewer (as in Kafka).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ottla.core.ids import Uuid
from ottla.core.topics import Topics
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.pattern import Pattern

NO_TOPICS: frozenset[str] = frozenset()


class Resolved(NamedTuple):
    """The topics that a regular expression stands for."""

    topics: frozenset[str]
    timestamp: int = 0


def topic_names(member: Member, resolved: Mapping[str, Resolved]) -> frozenset[str]:
    """The topics a member wants, whether they exist or not."""
    if not member.topic_regex:
        return member.topic_names
    found = resolved.get(member.topic_regex)
    return member.topic_names if found is None else member.topic_names | found.topics


def all_topic_names(members: Iterable[Member], resolved: Mapping[str, Resolved]) -> frozenset[str]:
    """The topics that any of the members wants."""
    different = {(member.topic_names, member.topic_regex): member for member in members}
    return NO_TOPICS.union(*(topic_names(member, resolved) for member in different.values()))


def topic_ids(names: Iterable[str], topics: Topics) -> frozenset[Uuid]:
    """The ids of those that exist."""
    return frozenset(found for name in names if (found := topics.topic_id(name)) is not None)


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A number that is another one when there is reason to assign anew: a topic came, went or grew.

    Zero when none of the topics exists. It is not the number that Kafka would have; a broker that takes over
    finds that the topics have changed, and assigns once more than it had to. Racks are left out, since no
    assignor looks at them.
    """
    digest = None
    for name in sorted(names):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            digest = hashlib.blake2b(digest_size=8) if digest is None else digest
            digest.update(topic_id + (topics.partition_count(name) or 0).to_bytes(4, "big"))
    return 0 if digest is None else int.from_bytes(digest.digest(), "big", signed=True)


def resolve(
    pattern: Pattern, topics: Topics, may_describe: Callable[[str], bool] | None = None
) -> frozenset[str]:
    """The topics whose whole name matches, as far as they may be seen."""
    return frozenset(filter(may_describe, pattern.matching(topics.names())))
