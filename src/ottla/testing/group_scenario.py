"""Says the lines of a transcript to the machine of one group shard.

A line is a verb, who does it, and details as `name=value`. Who: a client's name, which is its client id too;
`-` for somebody without a member id. The member id that a client was given is remembered. Details that are
left out are the usual ones: group `g`, the newest version, the generation the client was told last.
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.core.outcome import Now, Outcome
from ottla.groups.records import read
from ottla.groups.shard import GroupMachine
from ottla.protocol import codec
from ottla.protocol.errors import error_name
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.protocol.wire import MalformedFrame
from ottla.testing.shard import Marker, MemoryShard, Ticket, Written

# Ids are counted here, and shown as the number they are.
_COUNTED_ID: Final = re.compile(r"00000000-0000-0000-0000-0{8}([0-9a-f]{4})")
_SHORT: Final = struct.Struct(">h")


class ScenarioTopics:
    """Topics by name, with ids that are counted."""

    def __init__(self) -> None:
        self._partitions: dict[str, int] = {}
        self._ids: dict[str, Uuid] = {}
        self._count = 0

    def add(self, name: str, partitions: int) -> None:
        if name not in self._partitions:
            self._count += 1
            self._ids[name] = Uuid(b"topic".ljust(15, b".") + bytes([self._count]))
        self._partitions[name] = partitions

    def remove(self, name: str) -> Uuid:
        del self._partitions[name]
        return self._ids.pop(name)

    def partition_count(self, topic: str) -> int | None:
        return self._partitions.get(topic)

    def topic_id(self, topic: str) -> Uuid | None:
        return self._ids.get(topic)

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, known in self._ids.items() if known == topic_id), None)

    def names(self) -> list[str]:
        return list(self._partitions)

    def racks(self, topic: str, partition: int) -> frozenset[str]:
        return frozenset()


class GroupScenario:
    """Verbs are methods named `do_...`; what happened is told in lines."""

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.settings: BrokerSettings = broker_settings({"node.id": "1", "process.roles": "broker"})
        self.topics = ScenarioTopics()
        self.member_ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self._ids = 0
        self.shard: MemoryShard[GroupMachine] = MemoryShard(self._machine)

    def _machine(self) -> GroupMachine:
        return GroupMachine(settings=lambda: self.settings, topics=self.topics, new_id=self.new_id)

    def new_id(self) -> Uuid:
        self._ids += 1
        return Uuid(self._ids.to_bytes(16, "big"))

    def run(self, line: str) -> list[str]:
        verb, *words = line.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        answer = getattr(self, "do_" + verb.replace("-", "_"))(plain, named)
        lines = [self._shown(news) for news in self.shard.take_news()]
        if isinstance(answer, Ticket) and answer.waits:
            lines.append(f"{answer.owner} waits")
        elif isinstance(answer, list):
            lines += answer
        return [_COUNTED_ID.sub(lambda found: str(int(found[1], 16)), each) for each in lines]

    # The surroundings

    def do_topic(self, plain: list[str], named: dict[str, str]) -> None:
        """topic t=4: a topic has so many partitions."""
        for name, count in named.items():
            self.topics.add(name, int(count))
        self.shard.take(lambda machine, now: machine.topics_changed({}, set(named), now))

    def do_delete_topic(self, plain: list[str], named: dict[str, str]) -> None:
        deleted = {self.topics.remove(name): name for name in plain}
        self.shard.take(lambda machine, now: machine.topics_changed(deleted, set(), now))

    def do_set(self, plain: list[str], named: dict[str, str]) -> None:
        """set group.max.size=2: properties of the broker."""
        self.properties |= named
        self.settings = broker_settings({"node.id": "1", "process.roles": "broker", **self.properties})

    def do_advance(self, plain: list[str], named: dict[str, str]) -> None:
        """advance 3000: milliseconds pass."""
        self.shard.advance(int(plain[0]))

    def do_restart(self, plain: list[str], named: dict[str, str]) -> None:
        self.shard.restart()

    # Classic members

    def do_join(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """join a protocols=range,roundrobin topics=t session=10000 rebalance=60000 instance=i version=9"""
        (who,) = plain
        topics = named.get("topics", "t").split(",")
        subscription = _SHORT.pack(0) + codec.encode(ConsumerProtocolSubscription(topics=topics), 0)
        request = JoinGroupRequest(
            group_id=named.get("group", "g"),
            session_timeout_ms=int(named.get("session", 10_000)),
            rebalance_timeout_ms=int(named.get("rebalance", 60_000)),
            member_id=named.get("member", self.member_ids.get(who, "")),
            group_instance_id=named.get("instance"),
            protocol_type=named.get("type", "consumer"),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription)
                for name in named.get("protocols", "range").split(",")
                if name
            ],
        )
        request.member_id = self._in_full(request.member_id)
        caller = Caller(who, "/127.0.0.1", int(named.get("version", 9)))
        return self.shard.run(
            lambda machine, now, ticket: machine.join_group(request, caller, now, ticket), owner=who
        )

    def do_sync(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """sync a a:=t-0,t-1 b:=t-2: the leader names assignments by client; others none."""
        (who,) = plain
        request = SyncGroupRequest(
            group_id=named.get("group", "g"),
            generation_id=int(named.get("generation", self.generations.get(who, -1))),
            member_id=self._in_full(named.get("member", self.member_ids.get(who, ""))),
            group_instance_id=named.get("instance"),
            protocol_type=named.get("type"),
            protocol_name=named.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=self.member_ids[client[:-1]], assignment=_assignment(text.split(","))
                )
                for client, text in named.items()
                if client.endswith(":")
            ],
        )
        caller = Caller(who, "/127.0.0.1", 5)
        return self.shard.run(
            lambda machine, now, ticket: machine.sync_group(request, caller, now, ticket), owner=who
        )

    def do_beat(self, plain: list[str], named: dict[str, str]) -> Ticket:
        (who,) = plain
        request = HeartbeatRequest(
            group_id=named.get("group", "g"),
            generation_id=int(named.get("generation", self.generations.get(who, -1))),
            member_id=self._in_full(named.get("member", self.member_ids.get(who, ""))),
            group_instance_id=named.get("instance"),
        )
        caller = Caller(who, "/127.0.0.1", 4)
        return self.shard.run(lambda machine, now, _: machine.heartbeat(request, caller, now), owner=who)

    def do_live(self, plain: list[str], named: dict[str, str]) -> list[str]:
        """live a b for=60000: time passes, with a heartbeat of each every three seconds. Shows news."""
        left_ms, told = int(named["for"]), []
        while left_ms > 0:
            step_ms = min(left_ms, 3_000)
            left_ms -= step_ms
            self.shard.advance(step_ms)
            for who in plain:
                self.do_beat([who], named)
            told += [line for line in map(self._shown, self.shard.take_news()) if line not in told]
        return told

    def do_leave(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """leave a b: members; leave - instance=i: an administrator removes a static member."""
        members = [
            MemberIdentity(member_id=self.member_ids.get(who, who)) for who in plain if who != "-"
        ] or [MemberIdentity(member_id="", group_instance_id=named.get("instance"))]
        request = LeaveGroupRequest(group_id=named.get("group", "g"), members=members)
        caller = Caller("", "/127.0.0.1", 5)
        return self.shard.run(
            lambda machine, now, _: machine.leave_group(request, caller, now), owner=",".join(plain)
        )

    # Positions

    def do_commit(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """commit a t-0=40 metadata=x retention=1000"""
        (who,) = plain
        request = OffsetCommitRequest(
            group_id=named.get("group", "g"),
            generation_id_or_member_epoch=int(named.get("generation", self.generations.get(who, -1))),
            member_id=self._in_full(named.get("member", self.member_ids.get(who, ""))),
            group_instance_id=named.get("instance"),
            retention_time_ms=int(named.get("retention", -1)),
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=named.get("metadata", ""),
                        )
                    ],
                )
                for topic, partition, offset in _positions(named)
            ],
        )
        caller = Caller(who, "/127.0.0.1", int(named.get("version", 9)))
        return self.shard.run(lambda machine, now, _: machine.offset_commit(request, caller, now), owner=who)

    def do_txn_commit(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """txn-commit a producer=7 t-0=40"""
        (who,) = plain
        producer = (int(named["producer"]), int(named.get("epoch", 0)))
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=named.get("group", "g"),
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id=int(named.get("generation", self.generations.get(who, -1))),
            member_id=self._in_full(named.get("member", self.member_ids.get(who, ""))),
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                    ],
                )
                for topic, partition, offset in _positions(named)
            ],
        )
        caller = Caller(who, "/127.0.0.1", int(named.get("version", 3)))
        return self.shard.run(
            lambda machine, now, _: machine.txn_offset_commit(request, caller, now),
            transaction=producer,
            owner=who,
        )

    def do_marker(self, plain: list[str], named: dict[str, str]) -> None:
        """marker commit producer=7: the transaction ends in this partition."""
        self.shard.end_transaction(int(named["producer"]), int(named.get("epoch", 0)), plain[0] == "commit")

    def do_fetch(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """fetch t-0 t-1 stable: positions; of everything when none is named."""
        stable = "stable" in plain
        places = [_place(word) for word in plain if word != "stable"]
        asked = OffsetFetchRequestGroup(
            group_id=named.get("group", "g"),
            topics=[OffsetFetchRequestTopics(name=t, partition_indexes=[p]) for t, p in places] or None,
        )
        caller = Caller("", "/127.0.0.1", 9)
        return self.shard.run(
            lambda machine, now, _: machine.offset_fetch(asked, caller, stable), owner="fetch"
        )

    def do_delete_offsets(self, plain: list[str], named: dict[str, str]) -> Ticket:
        request = OffsetDeleteRequest(
            group_id=named.get("group", "g"),
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
                )
                for topic, partition in map(_place, plain)
            ],
        )
        return self.shard.run(lambda machine, now, _: machine.offset_delete(request), owner="delete-offsets")

    # Groups

    def do_delete(self, plain: list[str], named: dict[str, str]) -> Ticket:
        (group,) = plain
        return self.shard.run(lambda machine, now, _: machine.delete_group(group), owner="delete")

    def do_list(self, plain: list[str], named: dict[str, str]) -> list[str]:
        """list state=Stable,Empty type=classic"""
        listed = self.shard.machine.list_groups(
            [each for each in named.get("state", "").split(",") if each],
            [each for each in named.get("type", "").split(",") if each],
        )
        return [
            f"{each.group_id} {each.group_state} {each.group_type} type={each.protocol_type}"
            for each in listed
        ]

    def do_describe(self, plain: list[str], named: dict[str, str]) -> Ticket:
        (group,) = plain

        def command(machine: GroupMachine, now: Now, ticket: Ticket) -> Outcome:
            return Outcome(reply=machine.describe_group(group))

        ticket = self.shard.run(command, owner="describe")
        return ticket

    # What is shown

    def _shown(self, news: Written | Marker | Ticket) -> str:
        if isinstance(news, Marker):
            return f"marker {'commit' if news.committed else 'abort'} producer={news.producer_id}"
        if isinstance(news, Written):
            return f"write {shown_record(news)}"
        who = f"{news.owner}:"
        if news.error is not None:
            return f"{who} error {news.error.code} {news.error.name}"
        if isinstance(news.reply, JoinGroupResponse):
            self._note(news.owner, news.reply)
        return f"{who} {shown_reply(news.reply)}"

    def _note(self, who: str, reply: JoinGroupResponse) -> None:
        if reply.member_id:
            self.member_ids[who] = reply.member_id
        if reply.generation_id >= 0:
            self.generations[who] = reply.generation_id

    def _in_full(self, member_id: str) -> str:
        """A member id as it is shown may be said: a-1."""
        found = re.fullmatch(r"(\w+)-(\d{1,4})", member_id)
        return f"{found[1]}-00000000-0000-0000-0000-{int(found[2]):012x}" if found else member_id


def shown_reply(reply: Any) -> str:
    """A reply in a line."""
    if reply is True:
        return "ok"
    code = getattr(reply, "error_code", 0)
    if code:
        text = f"error {code} {error_name(code)}"
        member_id = getattr(reply, "member_id", "")
        return f"{text} member={member_id}" if member_id else text
    if isinstance(reply, JoinGroupResponse):
        text = f"joined as {reply.member_id} generation={reply.generation_id} leader={reply.leader}"
        text += f" protocol={reply.protocol_name}"
        if reply.members:
            text += f" members={','.join(sorted(each.member_id for each in reply.members))}"
        return text + (" skip-assignment" if reply.skip_assignment else "")
    if isinstance(reply, SyncGroupResponse):
        return f"synced {_shown_assignment(reply.assignment)}"
    if isinstance(reply, LeaveGroupResponse):
        return " ".join(
            f"{each.member_id or each.group_instance_id} {_shown_error(each.error_code)}"
            for each in reply.members
        )
    if isinstance(reply, OffsetFetchResponseGroup):
        return _shown_fetch(reply)
    if hasattr(reply, "group_state"):
        members = " ".join(
            f"[{each.member_id} {each.client_host} {_shown_assignment(each.member_assignment)}]"
            for each in reply.members
        )
        text = f"{reply.group_state} type={reply.protocol_type} protocol={reply.protocol_data} {members}"
        return text.strip()
    if hasattr(reply, "topics"):
        return " ".join(
            f"{topic.name}-{each.partition_index} {_shown_error(each.error_code)}"
            for topic in reply.topics
            for each in topic.partitions
        )
    return "ok"


def shown_record(written: Written) -> str:
    """A record in a line."""
    entry = read(written.record)
    assert entry is not None, written
    key, value = entry.key, entry.value
    within = f" producer={written.at.producer_id}" if written.at.producer_id >= 0 else ""
    if entry.type == 1:
        text = f"offset {key.group} {key.topic}-{key.partition}"
        if value is None:
            return f"{text} gone{within}"
        text += f"={value.offset}{within}"
        text += f" metadata={value.metadata}" if value.metadata else ""
        return text + (" expires" if value.expire_timestamp != -1 else "")
    if entry.type == 2:
        if value is None:
            return f"group {key.group} gone"
        text = f"group {key.group} generation={value.generation} type={value.protocol_type}"
        text += f" protocol={value.protocol or '-'} leader={value.leader or '-'}"
        for member in value.members:
            text += f" [{member.member_id} {_shown_assignment(member.assignment)}]"
        return text
    name = type(key).__name__.removesuffix("Key")
    fields = " ".join(str(getattr(key, field)) for field in key.__declared__)
    if value is None:
        return f"{name} {fields} gone"
    said = " ".join(f"{field}={getattr(value, field)}" for field in value.__declared__)
    return f"{name} {fields} {said}"


def _positions(named: dict[str, str]) -> list[tuple[str, int, int]]:
    """Of `t-0=40 metadata=x`, what is a position."""
    return [(*_place(word), int(value)) for word, value in named.items() if re.search(r"-\d+$", word)]


def _place(word: str) -> tuple[str, int]:
    topic, _, partition = word.rpartition("-")
    return topic, int(partition)


def _assignment(places: list[str]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in map(_place, places):
        topics.setdefault(topic, []).append(partition)
    assigned = [TopicPartition(topic=topic, partitions=each) for topic, each in topics.items()]
    return _SHORT.pack(0) + codec.encode(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


def _shown_assignment(assignment: bytes) -> str:
    try:
        topics = codec.decode(ConsumerProtocolAssignment, 0, assignment, 2).assigned_partitions
    except MalformedFrame:
        return "nothing"
    return ",".join(f"{topic.topic}-{each}" for topic in topics for each in topic.partitions)


def _shown_fetch(reply: OffsetFetchResponseGroup) -> str:
    found = [
        f"{topic.name}-{each.partition_index}={each.committed_offset}"
        + (f" {_shown_error(each.error_code)}" if each.error_code else "")
        for topic in reply.topics
        for each in topic.partitions
    ]
    return " ".join(found) or "nothing"


def _shown_error(code: int) -> str:
    return "ok" if code == 0 else f"{code} {error_name(code)}"
