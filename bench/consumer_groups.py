"""What a large consumer group costs its coordinator: `python -m bench.consumer_groups`.

The machine alone, with a log in memory: no socket and no disk. How long members take to notice what they are
to do is their heartbeat interval's business; this is the work that it is for us.
"""

from __future__ import annotations

import time

from ottla.config.broker import BrokerSettings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.shard import GroupMachine
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.testing.shard import MemoryShard

CALLER = Caller("bench", "/127.0.0.1", 1)


class Topics:
    def __init__(self, count: int, partitions: int) -> None:
        self.partitions = partitions
        self._ids = {f"topic-{number}": Uuid(number.to_bytes(16, "big")) for number in range(1, count + 1)}
        self._names = {topic_id: name for name, topic_id in self._ids.items()}

    def partition_count(self, topic: str) -> int | None:
        return self.partitions if topic in self._ids else None

    def topic_id(self, topic: str) -> Uuid | None:
        return self._ids.get(topic)

    def name_of(self, topic_id: Uuid) -> str | None:
        return self._names.get(topic_id)

    def names(self) -> list[str]:
        return list(self._ids)

    def racks(self, topic: str, partition: int) -> frozenset[str]:
        return frozenset()


class Group:
    """Members that do at once what they are told."""

    def __init__(self, topics: Topics) -> None:
        settings = BrokerSettings()
        self.topics = topics
        self.shard = MemoryShard(
            lambda: GroupMachine(settings=lambda: settings, topics=topics, new_id=lambda: Uuid(bytes(16)))
        )
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, list[TopicPartitions]] = {}

    def join(self, member_id: str) -> None:
        self._send(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member_id,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=self.topics.names(),
                topic_partitions=[],
            )
        )

    def beat(self, member_id: str) -> None:
        self._send(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member_id,
                member_epoch=self.epochs[member_id],
                topic_partitions=self.owned[member_id],
            )
        )

    def _send(self, request: ConsumerGroupHeartbeatRequest) -> None:
        reply: ConsumerGroupHeartbeatResponse = self.shard.call(
            lambda machine, now, _: machine.consumer_group_heartbeat(request, CALLER, now)
        )
        self.epochs[request.member_id] = reply.member_epoch
        if reply.assignment is not None:
            self.owned[request.member_id] = [
                TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in reply.assignment.topic_partitions
            ]

    def settle(self) -> int:
        """Rounds of heartbeats until the group is stable."""
        rounds = 0
        while True:
            group = self.shard.machine.groups["g"]
            assert isinstance(group, ConsumerGroup)
            if group.state_name == "Stable":
                return rounds
            self.shard.advance(1_000)
            rounds += 1
            for member_id in list(self.epochs):
                self.beat(member_id)

    def heartbeat_us(self) -> float:
        machine, now = self.shard.machine, self.shard.now
        requests = [
            ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch)
            for member_id, epoch in self.epochs.items()
        ]
        rounds = max(20_000 // len(requests), 1)
        started = time.process_time()
        for _ in range(rounds):
            for request in requests:
                machine.consumer_group_heartbeat(request, CALLER, now)
        return (time.process_time() - started) / (rounds * len(requests)) * 1e6


def measure(members: int, topics: int, partitions: int) -> str:
    """One line: CPU time for one more member to join a stable group, and for a heartbeat in it."""
    group = Group(Topics(topics, partitions))
    for number in range(members):
        group.join(f"member-{number}")
    group.settle()
    group.shard.advance(1_000)
    written = len(group.shard.log)
    started = time.process_time()
    group.join("newcomer")
    joined_ms = (time.process_time() - started) * 1_000
    rounds = group.settle()
    settled_ms = (time.process_time() - started) * 1_000
    return (
        f"{members:5} members, {topics:4} topics, {topics * partitions:5} partitions: one joins in "
        f"{joined_ms:5.1f} ms, the group settles in {settled_ms:5.0f} ms ({rounds} rounds of heartbeats, "
        f"{len(group.shard.log) - written} records); a heartbeat {group.heartbeat_us():.1f} us"
    )


def main() -> None:
    for members, topics, partitions in ((10, 1, 100), (100, 1, 900), (100, 900, 1), (1_000, 10, 100)):
        print(measure(members, topics, partitions))


if __name__ == "__main__":
    main()
