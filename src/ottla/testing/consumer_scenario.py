"""Says the lines of a transcript about consumer groups to the machine of one group shard.

Members of the consumer protocol make their own ids: here a client's name is its member id. `hb` is its
heartbeat; the epoch that a client was told last is remembered, and what it was given last is what it has as
soon as it says so: `hb a owns`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.core.caller import Caller
from ottla.core.outcome import Outcome
from ottla.groups.consumer.member import State
from ottla.groups.records import read
from ottla.protocol.errors import error_name
from ottla.protocol.messages.consumer_group_describe import DescribedGroup
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.testing.group_scenario import GroupScenario, ScenarioTopics
from ottla.testing.shard import Marker, Ticket, Written


class ConsumerScenario(GroupScenario):
    def __init__(self) -> None:
        super().__init__()
        self.epochs: dict[str, int] = {}
        self.given: dict[str, list[str]] = {}  # client -> the partitions it was told last

    def do_hb(self, plain: list[str], named: dict[str, str]) -> Ticket:
        """hb a epoch=0 topics=t,u regex=t.* owns=t-0,t-1 instance=i assignor=range; topics=- for none"""
        who, *flags = plain
        epoch = int(named.get("epoch", self.epochs.get(who, 0)))
        joins = epoch == 0
        topics = named.get("topics", "t" if joins and "regex" not in named else None)
        owned = None
        if joins or "owns" in flags or "owns" in named:
            owned = [] if joins and "owns" not in named else self.given.get(who, [])
            owned = [each for each in named["owns"].split(",") if each] if "owns" in named else owned
        request = ConsumerGroupHeartbeatRequest(
            group_id=named.get("group", "g"),
            member_id=named.get("member", who),
            member_epoch=epoch,
            instance_id=named.get("instance"),
            rack_id=named.get("rack"),
            rebalance_timeout_ms=int(named.get("rebalance", 60_000 if joins else -1)),
            subscribed_topic_names=(
                None if topics in (None, "-") else [each for each in (topics or "").split(",") if each]
            ),
            subscribed_topic_regex=named.get("regex"),
            server_assignor=named.get("assignor"),
            topic_partitions=None if owned is None else self._partitions(owned),
        )
        caller = Caller(who, "/127.0.0.1", int(named.get("version", 1)))
        return self.shard.run(
            lambda machine, now, _: machine.consumer_group_heartbeat(request, caller, now), owner=who
        )

    def do_describe_consumer(self, plain: list[str], named: dict[str, str]) -> Ticket:
        (group,) = plain
        return self.shard.run(
            lambda machine, now, _: Outcome(reply=machine.describe_consumer_group(group)), owner="describe"
        )

    def do_settle(self, plain: list[str], named: dict[str, str]) -> list[str]:
        """settle a b: heartbeats of everybody, half a second apart, until nothing more is written."""
        quiet = 0
        while quiet < 2:
            self.shard.advance(500)
            for who in plain:
                self.do_hb([who, "owns"], named)
            news = self.shard.take_news()
            quiet = 0 if any(isinstance(each, Written) for each in news) else quiet + 1
            for each in news:
                self._shown(each)
        return [f"{who} epoch={self.epochs[who]} {_listed(self.given.get(who, []))}" for who in plain]

    def _partitions(self, owned: list[str]) -> list[TopicPartitions]:
        topics: dict[str, list[int]] = {}
        for each in owned:
            topic, _, index = each.rpartition("-")
            topics.setdefault(topic, []).append(int(index))
        result = []
        for topic, indices in topics.items():
            topic_id = self.topics.topic_id(topic)
            if topic_id is not None:
                result.append(TopicPartitions(topic_id=topic_id, partitions=indices))
        return result

    def _shown(self, news: Written | Marker | Ticket) -> str:
        if isinstance(news, Written):
            told = shown_consumer_record(news, self.topics)
            return super()._shown(news) if told is None else f"write {told}"
        if isinstance(news, Ticket) and isinstance(news.reply, ConsumerGroupHeartbeatResponse):
            return f"{news.owner}: {self._shown_heartbeat(news.owner, news.reply)}"
        if isinstance(news, Ticket) and isinstance(news.reply, DescribedGroup):
            return f"describe: {_shown_group(news.reply)}"
        return super()._shown(news)

    def _shown_heartbeat(self, who: str, reply: ConsumerGroupHeartbeatResponse) -> str:
        if reply.error_code:
            return f"error {reply.error_code} {error_name(reply.error_code)}"
        if reply.member_epoch < 0:
            self.epochs.pop(who, None)
            self.given.pop(who, None)
            return f"epoch={reply.member_epoch}"
        self.epochs[who] = reply.member_epoch
        text = f"epoch={reply.member_epoch}"
        if reply.assignment is not None:
            self.given[who] = _named(reply.assignment.topic_partitions, self.topics)
            text += f" given {_listed(self.given[who])}"
        return text + (
            f" every={reply.heartbeat_interval_ms}" if reply.heartbeat_interval_ms != 5_000 else ""
        )


def _named(topics: Iterable[Any], known: ScenarioTopics) -> list[str]:
    named = [
        (known.name_of(topic.topic_id) or "deleted", index, since)
        for topic in topics
        for index, since in zip(
            topic.partitions,
            getattr(topic, "assignment_epochs", None) or [None] * len(topic.partitions),
            strict=True,
        )
    ]
    return [
        f"{name}-{index}" if since is None else f"{name}-{index}@{since}"
        for name, index, since in sorted(named)
    ]


def _listed(partitions: list[str]) -> str:
    return ",".join(partitions) or "nothing"


def shown_consumer_record(written: Written, topics: ScenarioTopics) -> str | None:
    """A record of a consumer group in a line; None for others."""
    entry = read(written.record)
    assert entry is not None, written
    key, value = entry.key, entry.value
    whose = f"{key.group_id} {getattr(key, 'member_id', '')}".strip() if hasattr(key, "group_id") else ""
    names = {
        3: "epoch",
        4: "partition-metadata",
        5: "member",
        6: "target-epoch",
        7: "target",
        8: "current",
        16: "regex",
    }
    if entry.type not in names:
        return None
    text = f"{names[entry.type]} {whose}"
    if entry.type == 16:
        text += f" {key.regular_expression}"
    if value is None:
        return f"{text} gone"
    match entry.type:
        case 3:
            text += f" {value.epoch}"
        case 5:
            text += f" topics={','.join(value.subscribed_topic_names)}"
            text += f" regex={value.subscribed_topic_regex}" if value.subscribed_topic_regex else ""
            text += f" instance={value.instance_id}" if value.instance_id else ""
            text += f" assignor={value.server_assignor}" if value.server_assignor else ""
            text += " classic" if value.classic_member_metadata is not None else ""
        case 6:
            text += f" {value.assignment_epoch}"
        case 7:
            text += f" {_listed(_named(value.topic_partitions, topics))}"
        case 8:
            text += f" epoch={value.member_epoch} previous={value.previous_member_epoch}"
            text += f" {State(value.state).name} {_listed(_named(value.assigned_partitions, topics))}"
            if value.partitions_pending_revocation:
                text += f" revoking {_listed(_named(value.partitions_pending_revocation, topics))}"
        case 16:
            text += f" = {','.join(value.topics)}"
    return text


def _shown_group(group: DescribedGroup) -> str:
    text = f"{group.group_state} epoch={group.group_epoch} assignment={group.assignment_epoch}"
    text += f" assignor={group.assignor_name}"
    for member in group.members:
        has = [
            f"{each.topic_name}-{i}" for each in member.assignment.topic_partitions for i in each.partitions
        ]
        to_have = [
            f"{each.topic_name}-{i}"
            for each in member.target_assignment.topic_partitions
            for i in each.partitions
        ]
        text += (
            f" [{member.member_id} epoch={member.member_epoch} has={_listed(has)} target={_listed(to_have)}"
        )
        text += " classic]" if member.member_type == 0 else "]"
    return text
