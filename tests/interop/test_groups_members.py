"""Members of consumer groups that join, leave and crash, in every client and protocol.

Whatever happens, a partition has one owner at a time, every record is read, and no committed offset is lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.crew import Crew
from tests.interop.feed import Feed
from tests.interop.topics import Names, create_topic
from tests.interop.wire import Wire

PARTITIONS = 6

CLIENTS: dict[str, dict[str, Any]] = {
    "confluent-eager": {
        "client": "confluent",
        "settings": {"partition.assignment.strategy": "range"},
    },
    "confluent-cooperative": {
        "client": "confluent",
        "settings": {"partition.assignment.strategy": "cooperative-sticky"},
    },
    "confluent-consumer": {"client": "confluent", "settings": {"group.protocol": "consumer"}},
    "kafka-python-eager": {"client": "kafka-python", "settings": {"assignor": "range"}},
    "kafka-python-cooperative": {"client": "kafka-python", "settings": {"assignor": "cooperative-sticky"}},
    "aiokafka-eager": {"client": "aiokafka", "settings": {"assignor": "roundrobin"}},
}


@pytest.mark.parametrize("options", CLIENTS.values(), ids=CLIENTS)
def test_members_join_leave_and_crash(
    quick: str, unique: Names, tmp_path: Path, options: dict[str, Any]
) -> None:
    topic, group = new(quick, unique)
    with Crew(tmp_path, quick, group, [topic], **options) as crew:
        with Feed(quick, topic, PARTITIONS) as feed:
            first = crew.member("first")
            crew.settles({first: 6})
            second, third = crew.member("second"), crew.member("third")
            crew.settles({first: 2, second: 2, third: 2})
            second.leave()
            crew.settles({first: 3, third: 3})
            crew.kill(third)
            crew.settles({first: 6})
        crew.finishes(feed)


def test_three_clients_share_one_group(quick: str, unique: Names, tmp_path: Path) -> None:
    topic, group = new(quick, unique)
    with Crew(tmp_path, quick, group, [topic]) as crew:
        with Feed(quick, topic, PARTITIONS) as feed:
            rdkafka = crew.member("confluent", **CLIENTS["confluent-eager"])
            python = crew.member("kafka-python", **CLIENTS["kafka-python-eager"])
            asynchronous = crew.member("aiokafka", client="aiokafka", settings={"assignor": "range"})
            crew.settles({rdkafka: 2, python: 2, asynchronous: 2})
            crew.kill(rdkafka)
            crew.settles({python: 3, asynchronous: 3})
        crew.finishes(feed)


def test_a_group_changes_its_protocol_while_it_runs(quick: str, unique: Names, tmp_path: Path) -> None:
    topic, group = new(quick, unique)
    old, modern = CLIENTS["confluent-cooperative"], CLIENTS["confluent-consumer"]
    with Crew(tmp_path, quick, group, [topic]) as crew:
        with Feed(quick, topic, PARTITIONS) as feed:
            first = crew.member("first", **old)
            crew.settles({first: 6})
            assert group_type(quick, group) == "classic"
            second = crew.member("second", **modern)
            crew.settles({first: 3, second: 3})
            assert group_type(quick, group) == "consumer"
            first.leave()
            crew.settles({second: 6})
            third = crew.member("third", **old)
            crew.settles({second: 3, third: 3})
            second.leave()
            crew.settles({third: 6})
            assert group_type(quick, group) == "classic"
        crew.finishes(feed)


def new(bootstrap: str, unique: Names) -> tuple[str, str]:
    """A topic of six partitions, and the name of a group."""
    topic, group = unique("shared"), unique("group")
    create_topic(bootstrap, topic, PARTITIONS)
    return topic, group


def group_type(bootstrap: str, group: str) -> str:
    with Wire(bootstrap) as wire:
        listed = wire.ask("list_groups", 5).groups
    return str(next(found.group_type for found in listed if found.group_id == group))
