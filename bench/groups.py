"""Groups: positions committed, and heartbeats of a large group."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from bench.messages import DEPTH, PATIENCE_SECONDS, answer, ask, find_coordinator, frame, pipelined
from bench.wire import Connection, create_topic
from bench.workload import Family, Figure, Selection, Site, Workload
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest

MEMBERS = 500
# A coordinator works out assignments at most once a second (group.consumer.assignment.interval.ms).
REST_SECONDS = 2.5


def workloads() -> Iterator[Workload]:
    yield Workload(Family.GROUPS, "groups: offset commits", offset_commits, Selection.SMOKE, synced=True)
    yield Workload(Family.GROUPS, "groups: heartbeats, classic protocol", classic_heartbeats)
    yield Workload(Family.GROUPS, "groups: heartbeats, consumer protocol", consumer_heartbeats)


def offset_commits(site: Site) -> list[Figure]:
    """One partition per commit, by a consumer that assigns its partitions itself."""
    subject = site.subject
    create_topic(subject.address, "committed")
    find_coordinator(subject, "bench-commits")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = OffsetCommitRequestTopic(name="committed", partitions=[partition])
    request = OffsetCommitRequest(group_id="bench-commits", topics=[topic])
    with Connection(subject.address) as connection:
        until_served(
            lambda: ask(connection, request, 7).topics[0].partitions[0].error_code, "an offset commit"
        )
        return pipelined(site, "offset commits", connection, [frame(request, 7)] * DEPTH, 20_000)


def until_served(error: Any, what: str) -> None:
    """Asks until the coordinator is there (14, 15, 16 say that it is not yet)."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while code := error():
        if code not in (14, 15, 16) or time.monotonic() > deadline:
            raise RuntimeError(f"{what} is answered with error {code}")
        time.sleep(0.05)


# --- heartbeats ------------------------------------------------------------------------------


def classic_heartbeats(site: Site) -> list[Figure]:
    """Members of one stable classic group."""
    subject, members = site.subject, site.sized(MEMBERS)
    group = f"bench-classic-{time.monotonic_ns()}"
    find_coordinator(subject, group)
    with ExitStack() as stack:
        connections = [stack.enter_context(Connection(subject.address)) for _ in range(members)]
        ids, generation = form_classic_group(group, connections)
        beats = [
            HeartbeatRequest(group_id=group, generation_id=generation, member_id=member) for member in ids
        ]
        first = connections[0]
        name = f"heartbeats, classic group of {members:,}"
        figures = pipelined(site, name, first, [frame(beat, 3) for beat in beats], 30_000)
        if error := ask(first, beats[-1], 3).error_code:
            raise RuntimeError(f"a heartbeat is answered with error {error}")
        return figures


def form_classic_group(group: str, connections: list[Connection]) -> tuple[list[str], int]:
    """One member per connection, since joining is waiting; their ids, and the generation they are in."""

    def join(member: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )

    # Version 3 does not ask for a member id first. The first member is in a generation of its own at once,
    # and the others wait for it to join again: it does when they are all there.
    first, *others = connections
    until_served(lambda: ask(first, join(""), 3).error_code, "a join")
    leader = ask(first, DescribeGroupsRequest(groups=[group]), 4).groups[0].members[0].member_id
    for connection in others:
        connection.socket.sendall(frame(join(""), 3))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(ask(first, DescribeGroupsRequest(groups=[group]), 4).groups[0].members) < len(connections):
        if time.monotonic() > deadline:
            raise RuntimeError("members do not get into the group")
        time.sleep(0.02)
    first.socket.sendall(frame(join(leader), 3))
    answers = [answer(join(""), 3, connection.receive()) for connection in connections]
    if errors := {each.error_code for each in answers} - {0}:
        raise RuntimeError(f"joins are answered with errors {errors}")
    (generation,) = {each.generation_id for each in answers}
    for connection, each in zip(connections, answers, strict=True):
        sync = SyncGroupRequest(group_id=group, generation_id=generation, member_id=each.member_id)
        connection.socket.sendall(frame(sync, 3))
    for connection in connections:
        connection.receive()
    return [each.member_id for each in answers], generation


def consumer_heartbeats(site: Site) -> list[Figure]:
    """Members of one consumer group (KIP-848) that have nothing new to say or to hear."""
    subject, members = site.subject, site.sized(MEMBERS)
    create_topic(subject.address, "heartbeats", 100)
    group = f"bench-heartbeats-{time.monotonic_ns()}"
    find_coordinator(subject, group)
    with Connection(subject.address) as connection:
        crew = [Member(connection, group, f"member-{number}") for number in range(members)]
        for member in crew:
            member.join()
        began = restless = time.monotonic()
        while time.monotonic() - restless < REST_SECONDS:
            news = [member.beat() for member in crew]
            if any(news) or len({member.epoch for member in crew}) > 1:
                restless = time.monotonic()
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise RuntimeError("a consumer group does not settle")
        name = f"heartbeats, consumer group of {members:,}"
        frames = [frame(member.request(), 1) for member in crew]
        figures = pipelined(site, name, connection, frames, 30_000)
        if crew[-1].beat():
            raise RuntimeError("the group was not at rest")
        return figures


class Member:
    """A member of a consumer group, as far as it takes to get it to rest."""

    def __init__(self, connection: Connection, group: str, member_id: str) -> None:
        self.connection, self.group, self.id = connection, group, member_id
        self.epoch = 0
        self.owned: list[TopicPartitions] = []

    def request(self, **values: Any) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.id, member_epoch=self.epoch, **values
        )

    def join(self) -> None:
        wanted = self.request(
            rebalance_timeout_ms=60_000, subscribed_topic_names=["heartbeats"], topic_partitions=[]
        )
        until_served(lambda: self._said(ask(self.connection, wanted, 1)), "a heartbeat")

    def beat(self) -> bool:
        """Whether there was something new."""
        before = self.epoch, self.owned
        found = ask(self.connection, self.request(topic_partitions=self.owned), 1)
        if error := self._said(found):
            raise RuntimeError(f"a heartbeat is answered with error {error}: {found.error_message}")
        return (self.epoch, self.owned) != before

    def _said(self, found: Any) -> int:
        if found.error_code == 0:
            self.epoch = found.member_epoch
            if found.assignment is not None:
                self.owned = [
                    TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                    for each in found.assignment.topic_partitions
                ]
        return int(found.error_code)
