"""Share groups on several nodes: who leads a partition, its group and its state need not be the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.testing.asking import ask
from ottla.testing.cluster import TestCluster
from tests.cluster.asking import GROUP, coordinator
from tests.cluster.feeds import ConfluentFeed
from tests.cluster.replicas import check_replicas
from tests.interop.crew import Crew, Member
from tests.interop.sharing import configure_group
from tests.interop.topics import eventually

DESCRIBE_SHARE_GROUP_OFFSETS = 90
PARTITIONS = 3
SECONDS = 60.0


def noted(member: Member, word: str) -> list[str]:
    *lines, _unfinished = member.history.read_text().split("\n")
    return [value for line in lines for value in json.loads(line).get(word, [])]


def lags(cluster: TestCluster, group: str, topic: str) -> list[int]:
    asked = DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=list(range(PARTITIONS)))
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[asked])]
    )
    answer = ask(coordinator(cluster, group, GROUP).bootstrap, DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)
    return [each.lag for topic in answer.groups[0].topics for each in topic.partitions]


@pytest.mark.heavy
def test_every_record_is_accepted_though_nodes_are_killed(cluster: TestCluster, tmp_path: Path) -> None:
    topic = cluster.topic(partitions=PARTITIONS, min_insync_replicas=2)
    group = cluster.unique("share")
    configure_group(cluster.nodes[0].bootstrap, group, share_auto_offset_reset="earliest")
    with Crew(tmp_path, cluster.bootstrap, group, [topic]) as crew:
        members = [crew.member(f"sharer-{number}", module="tests.interop.sharer") for number in range(2)]

        def accepted() -> set[str]:
            return {value for member in members for value in noted(member, "accepted")}

        def left() -> set[str]:
            # What was being accepted when its node was killed may count, though nobody could say so.
            unsure = {value for member in members for value in noted(member, "accepting")}
            return set(feed.values) - accepted() - unsure

        with ConfluentFeed(cluster.bootstrap, topic, PARTITIONS) as feed:
            feed.more(50)
            eventually(lambda: len(accepted()) > 20, SECONDS)
            for find in (
                lambda: cluster.leader(topic, 0),
                lambda: coordinator(cluster, group, GROUP),
                lambda: cluster.leader("__share_group_state", 0),
            ):
                dead = find()
                dead.kill()
                feed.more(30)
                dead.start()
                cluster.wait_until_stable()
            feed.stop()
        eventually(lambda: not left(), SECONDS)
        # And whatever was unsure is accepted or has come again: nothing is left for the group to do.
        eventually(lambda: lags(cluster, group, topic) == [0] * PARTITIONS, SECONDS)
        for member in members:
            member.leave()
    check_replicas(cluster)
