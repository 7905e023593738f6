"""A consumer group through anything that can happen to it.

Members of both protocols join, leave, crash, miss answers and change their minds; topics come, grow and go;
time passes; the coordinator fails over. Throughout, no partition has two owners, and what the log says is
what the machine knows. And when they are left in peace, every partition finds its place.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import AWAY
from ottla.groups.shard import GroupMachine
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard
from tests.property.group_members import ClassicClient, Client, ConsumerClient, Partition

TOPICS = ("t", "u", "v")
subscriptions = st.lists(st.sampled_from(TOPICS), unique=True)
picks = st.integers(0, 1_000)


def known(machine: GroupMachine) -> dict[str, Any]:
    """What a machine knows of its groups that is in the log."""
    result: dict[str, Any] = {}
    for group_id, group in machine.groups.items():
        if isinstance(group, ConsumerGroup):
            result[group_id] = {
                name: getattr(group, name)
                for name in (
                    "epoch",
                    "metadata_hash",
                    "assignment_epoch",
                    "assigned_at_ms",
                    "members",
                    "static",
                    "targets",
                    "owners",
                    "resolved",
                    "classic_count",
                )
            }
            result[group_id]["protocols"] = +group.classic_protocols
        else:
            assert isinstance(group, ClassicGroup)
            result[group_id] = group.logged
    return result


class ConsumerGroups(RuleBasedStateMachine):
    cooperative = False

    def __init__(self) -> None:
        super().__init__()
        self.topics = ScenarioTopics()
        self.topics.add("t", 3)
        self.settings = BrokerSettings(
            group_initial_rebalance_delay_ms=0, group_consumer_migration_policy="bidirectional"
        )
        self.ids = 0
        self.shard: MemoryShard[GroupMachine] = MemoryShard(
            lambda: GroupMachine(settings=lambda: self.settings, topics=self.topics, new_id=self.new_id)
        )
        self.clients: list[Client] = []
        self.seen: tuple[ConsumerGroup, int] | None = None  # a group, and its epoch

    def new_id(self) -> Uuid:
        self.ids += 1
        return Uuid(self.ids.to_bytes(16, "big"))

    def new_name(self) -> str:
        return f"c{self.new_id()[-1]}-{self.ids}"

    @property
    def consumers(self) -> list[ConsumerClient]:
        return [client for client in self.clients if isinstance(client, ConsumerClient)]

    # What members do

    @precondition(lambda self: len(self.clients) < 6)
    @rule(topics=subscriptions, regex=st.sampled_from([None, None, None, "[tu]", ".*"]))
    def start_consumer(self, topics: list[str], regex: str | None) -> None:
        self.clients.append(ConsumerClient(self.shard, self.new_name(), topics, regex=regex))

    @precondition(lambda self: len(self.clients) < 6)
    @rule(topics=subscriptions)
    def start_static_consumer(self, topics: list[str]) -> None:
        name = self.new_name()
        self.clients.append(ConsumerClient(self.shard, name, topics, instance_id=f"i-{name}"))

    @precondition(lambda self: len(self.clients) < 6)
    @rule(topics=subscriptions)
    def start_classic(self, topics: list[str]) -> None:
        self.clients.append(ClassicClient(self.shard, self.new_name(), topics, cooperative=self.cooperative))

    @precondition(lambda self: self.clients)
    @rule(pick=picks, lost=st.sampled_from([False, False, False, True]), prompt=st.booleans())
    def step(self, pick: int, lost: bool, prompt: bool) -> None:
        client = self.clients[pick % len(self.clients)]
        client.step(lost=lost)
        if prompt and isinstance(client, ConsumerClient):
            client.reconcile()

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_steps(self) -> None:
        for client in self.clients:
            client.step()

    @precondition(lambda self: self.consumers)
    @rule(pick=picks)
    def reconcile(self, pick: int) -> None:
        self.consumers[pick % len(self.consumers)].reconcile()

    @precondition(lambda self: self.consumers)
    @rule(pick=picks, topics=subscriptions, regex=st.sampled_from([None, "[tu]", "u|v"]))
    def subscribe(self, pick: int, topics: list[str], regex: str | None) -> None:
        self.consumers[pick % len(self.consumers)].subscribe(topics, regex)

    @precondition(lambda self: self.clients)
    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        self.clients.pop(pick % len(self.clients)).leave()

    @precondition(lambda self: self.clients)
    @rule(pick=picks)
    def crash(self, pick: int) -> None:
        self.clients.pop(pick % len(self.clients))

    @precondition(lambda self: any(client.instance_id for client in self.consumers))
    @rule(pick=picks)
    def bounce(self, pick: int) -> None:
        static = [client for client in self.consumers if client.instance_id]
        static[pick % len(static)].bounce(self.new_name())

    # What else happens

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 4))
    def grow(self, topic: str, more: int) -> None:
        self.topics.add(topic, (self.topics.partition_count(topic) or 0) + more)
        self.shard.take(lambda machine, now: machine.topics_changed({}, {topic}, now))

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        if self.topics.topic_id(topic) is not None:
            deleted = {self.topics.remove(topic): topic}
            self.shard.take(lambda machine, now: machine.topics_changed(deleted, set(), now))

    @rule(ms=st.sampled_from([1, 300, 1_000, 1_000, 5_000, 10_000, 20_000, 45_000]))
    def advance(self, ms: int) -> None:
        self.shard.advance(ms)

    @rule(policy=st.sampled_from(["bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"]))
    def set_policy(self, policy: str) -> None:
        self.settings = BrokerSettings(
            group_initial_rebalance_delay_ms=0, group_consumer_migration_policy=policy
        )

    @rule()
    def fail_over(self) -> None:
        self.shard.restart()

    @rule()
    def leave_in_peace(self) -> None:
        """Everybody is heard from, nobody does anything else: the group comes to rest."""
        calm = 0
        for second in range(100):
            # The sessions of crashed members, and the time they had to give up partitions, are over by then.
            if second > 50 and calm >= 10:
                break
            written = len(self.shard.log)
            self.shard.advance(1_000)
            for client in self.clients:
                client.step()
                if isinstance(client, ConsumerClient):
                    client.reconcile()
            calm = calm + 1 if len(self.shard.log) == written else 0
        assert calm >= 10, "the group does not come to rest"
        group = self.shard.machine.groups.get("g")
        if isinstance(group, ConsumerGroup) and group.members:
            assert group.state_name == "Stable", group.state_name
            self._check_rest(group)

    def _check_rest(self, group: ConsumerGroup) -> None:
        here = {client.member_id: client for client in self.clients}  # type: ignore[attr-defined]
        members = {m.member_id: m for m in group.members.values() if m.epoch != AWAY}
        assert set(members) <= set(here)
        wanted = {
            (topic_id, index)
            for topic in group.subscribed
            if (topic_id := self.topics.topic_id(topic)) is not None
            for index in range(self.topics.partition_count(topic) or 0)
        }
        owned = [partition for member_id in members for partition in here[member_id].owned]
        assert sorted(owned) == sorted(wanted)
        for member_id, member in members.items():
            assert here[member_id].owned == set(member.assigned) == set(group.target_of(member_id))
        self._check_level(group)

    def _check_level(self, group: ConsumerGroup) -> None:
        """By the uniform assignor nobody has two more than somebody who could have one of them."""
        for member in group.members.values():
            for topic_id in {topic_id for topic_id, _ in member.assigned}:
                for other in group.members.values():
                    names = set(other.topic_names)
                    if other.topic_regex:
                        names |= group.resolved[other.topic_regex].topics
                    if self.topics.name_of(topic_id) in names:
                        assert len(member.assigned) - len(other.assigned) <= 1

    # What must always hold

    @invariant()
    def a_partition_has_one_owner(self) -> None:
        seen: dict[Partition, str] = {}
        for client in self.clients:
            if client.is_member:
                for partition in client.owned:
                    assert partition not in seen, f"{client.name} and {seen[partition]} own {partition}"
                    seen[partition] = client.name

    @invariant()
    def the_coordinator_knows_one_owner(self) -> None:
        group = self.shard.machine.groups.get("g")
        if isinstance(group, ConsumerGroup):
            owners: dict[Partition, str] = {}
            for member in group.members.values():
                for partition in [*member.assigned, *member.revoking]:
                    assert partition not in owners
                    owners[partition] = member.member_id
            assert owners == group.owners

    @invariant()
    def the_log_says_what_the_machine_knows(self) -> None:
        assert known(self.shard.replayed()) == known(self.shard.machine)

    @invariant()
    def epochs_only_rise(self) -> None:
        group = self.shard.machine.groups.get("g")
        if isinstance(group, ConsumerGroup):
            assert self.seen is None or self.seen[0] is not group or group.epoch >= self.seen[1]
            assert group.assignment_epoch <= group.epoch
            assert all(member.epoch <= group.assignment_epoch for member in group.members.values())
            self.seen = group, group.epoch

    def teardown(self) -> None:
        self.leave_in_peace()


class CooperativeConsumerGroups(ConsumerGroups):
    cooperative = True


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestCooperativeConsumerGroups = CooperativeConsumerGroups.TestCase
TestCooperativeConsumerGroups.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
