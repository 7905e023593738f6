"""Members of consumer groups that join, leave and crash, in every client and protocol.

Whatever happens, a partition has one owner at a time, every record is read, and no committed offset is lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.crew import Crew
from tests.interop.feed import Feed
from tests.interop.topics import Names, create_topic, eventually

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
    topic, group = unique("shared"), unique("group")
    create_topic(quick, topic, PARTITIONS)
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
        crew.has_polled(feed.values)
        partitions = [f"{topic}-{number}" for number in range(PARTITIONS)]
        eventually(lambda: _is_all_committed(crew, quick, partitions, feed))
        first.leave()
        crew.check(feed.recorder)


def _is_all_committed(crew: Crew, bootstrap: str, partitions: list[str], feed: Feed) -> bool:
    found = crew.fetch_offsets(bootstrap, partitions)
    return sum(offset or 0 for offset in found.values()) == len(feed.values)
