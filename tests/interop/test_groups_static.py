"""Static members, who may come back as themselves; and zombies, who may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.crew import Crew, Member
from tests.interop.feed import Feed
from tests.interop.topics import Names, create_topic, eventually

PARTITIONS = 4
CLASSIC = {"client": "confluent", "settings": {"partition.assignment.strategy": "range"}}
CONSUMER = {"client": "confluent", "settings": {"group.protocol": "consumer"}}
PYTHON = {"client": "kafka-python", "settings": {"assignor": "range"}}
AIOKAFKA = {"client": "aiokafka", "settings": {"assignor": "range"}}


# A process takes its time to come back, on a busy machine longer than the sessions of the other tests.
PATIENT = {"confluent": {"session.timeout.ms": 40_000}, "other": {"session_timeout_ms": 40_000}}


def patient(options: dict[str, Any]) -> dict[str, Any]:
    if options is CONSUMER:
        return options  # the broker says how long
    more = PATIENT["confluent" if options is CLASSIC else "other"]
    return {**options, "settings": {**options["settings"], **more}}


@pytest.mark.parametrize(
    "options,crashes",
    [
        (patient(CLASSIC), True),
        (patient(CLASSIC), False),
        (patient(PYTHON), True),
        (patient(AIOKAFKA), True),
        (patient(CONSUMER), False),
    ],
    ids=["confluent-crash", "confluent-stop", "kafka-python-crash", "aiokafka-crash", "consumer-stop"],
)
def test_a_static_member_comes_back_to_its_partitions_and_nobody_else_notices(
    quick: str, unique: Names, tmp_path: Path, options: dict[str, Any], crashes: bool
) -> None:
    topic, group = unique("shared"), unique("group")
    create_topic(quick, topic, PARTITIONS)
    with Crew(tmp_path, quick, group, [topic], **options) as crew:
        with Feed(quick, topic, PARTITIONS) as feed:
            first, other = crew.member("first", instance="one"), crew.member("other", instance="two")
            crew.settles({first: 2, other: 2})
            mine, rebalances = first.owned(), other.count("revoked")
            if crashes:
                crew.kill(first)
            else:
                first.leave()
            again = crew.member("again", instance="one")
            crew.settles({again: 2})
            assert again.owned() == mine
            assert other.count("revoked") == rebalances
        crew.finishes(feed)


@pytest.mark.parametrize("options", [CLASSIC, CONSUMER, PYTHON], ids=["classic", "consumer", "kafka-python"])
def test_a_member_that_was_away_too_long_may_not_commit(
    quick: str, unique: Names, tmp_path: Path, options: dict[str, Any]
) -> None:
    topic, group = unique("shared"), unique("group")
    create_topic(quick, topic, PARTITIONS)
    with Crew(tmp_path, quick, group, [topic], **options) as crew:
        feed = Feed(quick, topic, PARTITIONS)
        feed.send(40)
        zombie = crew.member("zombie", commit="signal")
        eventually(lambda: zombie.polled() == set(feed.values))
        zombie.pause()
        feed.send(40)
        heir = crew.member("heir")
        crew.settles({heir: PARTITIONS})
        eventually(lambda: heir.polled() == set(feed.values))
        assert refused(zombie)
        crew.finishes(feed)


def test_the_former_self_of_a_static_member_may_not_commit(quick: str, unique: Names, tmp_path: Path) -> None:
    topic, group = unique("shared"), unique("group")
    create_topic(quick, topic, PARTITIONS)
    with Crew(tmp_path, quick, group, [topic], **CLASSIC) as crew:
        feed = Feed(quick, topic, PARTITIONS)
        feed.send(40)
        former = crew.member("former", instance="one", commit="signal")
        eventually(lambda: former.polled() == set(feed.values))
        former.pause()
        feed.send(40)
        now = crew.member("now", instance="one")
        crew.settles({now: PARTITIONS})
        assert refused(former)
        crew.finishes(feed)


def refused(member: Member) -> bool:
    """Whether what it commits when it wakes up is refused."""
    member.commit()
    member.resume()

    def commits() -> list[str]:
        return [event.type for event in member.events() if event.function == "commit"]

    eventually(lambda: len(commits()) == 2)
    return commits() == ["invoke", "fail"]
