"""Share groups as a client library uses them: librdkafka's ShareConsumer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from tests.interop.crew import Crew, Member
from tests.interop.feed import Feed
from tests.interop.sharing import configure_group
from tests.interop.topics import Names, create_topic, eventually


def shared(bootstrap: str, unique: Names, partitions: int) -> tuple[str, str]:
    """A topic, and a group that reads it from its beginning."""
    topic, group = unique("shared"), unique("share")
    create_topic(bootstrap, topic, partitions)
    configure_group(bootstrap, group, share_auto_offset_reset="earliest")
    return topic, group


def noted(member: Member, word: str) -> list[str]:
    *lines, _unfinished = member.history.read_text().split("\n")
    return [value for line in lines for value in json.loads(line).get(word, [])]


def test_every_record_is_accepted_once_though_a_member_is_killed(
    quick: str, unique: Names, tmp_path: Path
) -> None:
    topic, group = shared(quick, unique, 2)
    with Crew(tmp_path, quick, group, [topic]) as crew:
        members = [crew.member(f"sharer-{number}", module="tests.interop.sharer") for number in range(3)]
        with Feed(quick, topic, 2, per_second=300) as feed:
            for member in members:
                eventually(lambda member=member: len(noted(member, "accepted")) > 20)
            victim, *others = members
            victim.process.kill()
            victim.process.wait()
            accepted = len(noted(others[0], "accepted"))
            eventually(lambda: len(noted(others[0], "accepted")) > accepted + 20)
        # What it was about to accept when it was killed may be accepted or not. All else is for the others.
        unsure = set(noted(victim, "accepting")) - set(noted(victim, "accepted"))

        def is_done() -> bool:
            done = {value for member in members for value in noted(member, "accepted")}
            return set(feed.values) - done <= unsure

        eventually(is_done)
        for member in others:
            member.leave()
        counts = Counter(value for member in members for value in noted(member, "accepted"))
        assert max(counts.values()) == 1
        for member in others:
            assert not set(noted(member, "delivered")) & set(noted(victim, "accepted"))


def test_what_is_released_comes_back_and_what_is_rejected_does_not(quick: str, unique: Names) -> None:
    topic, group = shared(quick, unique, 1)
    feed = Feed(quick, topic, 1)
    feed.send(6)
    settings = {"bootstrap.servers": quick, "group.id": group, "share.acknowledgement.mode": "explicit"}
    deliveries: dict[str, int] = {}
    with ShareConsumer(settings) as consumer:
        consumer.subscribe([topic])

        def take() -> list[Message]:
            """At least one message."""
            found: list[Message] = []

            def came() -> bool:
                found.extend(message for message in consumer.poll(0.2) if message.error() is None)
                return bool(found)

            eventually(came)
            return found

        def settle(messages: list[Message], first_time: bool) -> None:
            for message in messages:
                value = (message.value() or b"").decode()
                deliveries[value] = deliveries.get(value, 0) + 1
                number = int(value.rpartition("/")[2])
                if number % 3 == 0 and first_time:
                    consumer.acknowledge(message, AcknowledgeType.RELEASE)
                elif number % 3 == 1:
                    consumer.acknowledge(message, AcknowledgeType.REJECT)
                else:
                    consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            assert all(error is None for error in consumer.commit_sync(10.0).values())

        while len(deliveries) < 6:
            settle(take(), first_time=True)
        while sum(deliveries.values()) < 8:
            settle(take(), first_time=False)
        assert not [message for message in consumer.poll(0.5) if message.error() is None]
    assert deliveries == {value: 2 if number % 3 == 0 else 1 for number, value in enumerate(feed.values)}
