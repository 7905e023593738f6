"""The target assignment: what each member of a consumer group is to have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.core.topics import Topics
from ottla.groups.assignors import ASSIGNORS
from ottla.groups.assignors.subscribers import Assignment, Subscriber
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.subscriptions import Resolved, topic_ids, topic_names


def assignors(settings: BrokerSettings) -> list[str]:
    """The assignors on offer, the default first. Those that only a Java broker has are left out."""
    return [name for name in settings.group_consumer_assignors if name in ASSIGNORS] or list(ASSIGNORS)


def preferred_assignor(members: Iterable[Member], settings: BrokerSettings) -> str:
    """The one that most members ask for, or the default when none asks for any that is on offer."""
    offered = assignors(settings)
    votes = Counter(member.assignor for member in members if member.assignor in offered)
    return max(offered, key=lambda name: votes[name])


def may_assign(assigned_at_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the last assignment is long enough ago. Members that come together are assigned together.

    A clock that was put back must not keep a group from ever being assigned again.
    """
    return not assigned_at_ms <= now_ms < assigned_at_ms + interval_ms


def next_targets(
    members: Mapping[str, Member],
    had: Mapping[str, Assignment],
    resolved: Mapping[str, Resolved],
    topics: Topics,
    settings: BrokerSettings,
) -> dict[str, Assignment]:
    """What each member is to have from now on; `had` is what each was to have until now."""
    wanted: dict[tuple[frozenset[str], str], frozenset[Uuid]] = {}
    counts: dict[Uuid, int] = {}
    subscribers: dict[str, Subscriber] = {}
    for member_id, member in members.items():
        subscription = member.topic_names, member.topic_regex
        ids = wanted.get(subscription)
        if ids is None:
            names = topic_names(member, resolved)
            ids = wanted[subscription] = topic_ids(names, topics)
            for name in names:
                topic_id = topics.topic_id(name)
                if topic_id is not None:
                    counts[topic_id] = topics.partition_count(name) or 0
        subscribers[member_id] = Subscriber(
            ids, had.get(member_id, frozenset()), member.instance_id, member.rack_id
        )
    return ASSIGNORS[preferred_assignor(members.values(), settings)](subscribers, counts)
