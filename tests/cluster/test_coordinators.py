"""Groups and transactions whose coordinator is killed: another node goes on with what was written."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.testing.cluster import TestCluster
from tests.cluster.asking import GROUP, TRANSACTION, committed, coordinator
from tests.cluster.feeds import ConfluentFeed
from tests.cluster.money import Money, balance
from tests.cluster.replicas import check_replicas
from tests.interop.crew import Crew
from tests.interop.topics import eventually
from tests.interop.transactional import drain, seen

PARTITIONS = 4
GROUPS = {
    "classic": {"client": "confluent", "settings": {"session.timeout.ms": 45_000}},
    "consumer": {"client": "confluent", "settings": {"group.protocol": "consumer"}},
    "python": {"client": "kafka-python", "settings": {"session_timeout_ms": 45_000}},
}


@pytest.mark.heavy
def test_members_of_groups_go_on_when_their_coordinator_is_killed(
    cluster: TestCluster, tmp_path: Path
) -> None:
    topic = cluster.topic(partitions=PARTITIONS)
    suffix = cluster.unique("group")
    with ExitStack() as stack:
        crews = []
        for kind, options in GROUPS.items():
            home = tmp_path / kind
            home.mkdir()
            crew = Crew(home, cluster.bootstrap, f"{suffix}-{kind}", [topic], **options)
            crews.append(stack.enter_context(crew))
        feed = stack.enter_context(ConfluentFeed(cluster.bootstrap, topic, PARTITIONS))
        for crew in crews:
            crew.settles({crew.member(f"{crew.group}-1"): 2, crew.member(f"{crew.group}-2"): 2})
            crew.has_polled(feed.values[:])
        dead = coordinator(cluster, crews[0].group, GROUP)
        dead.kill()
        for crew in crews:
            committed(crew.recorder, cluster, crew.group, feed.names())
        feed.more(50)
        for crew in crews:
            crew.has_polled(feed.values[:-20])
        dead.start()
        cluster.wait_until_stable()
        feed.more(20)
        feed.stop()
        for crew in crews:
            crew.has_polled(feed.values)
            eventually(
                lambda crew=crew: (
                    sum(
                        at or 0 for at in committed(crew.recorder, cluster, crew.group, feed.names()).values()
                    )
                    == len(feed.values)
                )
            )
            for member in crew.members:
                member.leave()
            crew.check(feed.recorder)
    check_replicas(cluster)


def test_transactions_are_whole_when_their_coordinator_is_killed(cluster: TestCluster) -> None:
    topic = cluster.topic(partitions=PARTITIONS, min_insync_replicas=2)
    accounts = [f"{topic}-{number}" for number in range(PARTITIONS)]
    with Money(cluster.bootstrap, accounts, cluster.unique("bank")) as bank:
        bank.more(5)
        dead = coordinator(cluster, bank.transactional_id, TRANSACTION)
        dead.kill()
        bank.more(5)
        dead.start()
        cluster.wait_until_stable()
        leader = cluster.leader(topic, 0)
        leader.kill()
        bank.more(5)
        leader.start()
        cluster.wait_until_stable()
        bank.more(2)
    last = drain(cluster.bootstrap, accounts, committed=True)
    assert balance(seen(last)) == 0
    bank.check(last)
    check_replicas(cluster)
