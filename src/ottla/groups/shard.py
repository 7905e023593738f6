"""The machine of one partition of `__consumer_offsets`: its groups, and their committed positions.

A command answers an `Outcome` and changes nothing that is in the log; `apply` folds in what was written,
live or when the log is read after a failover. The shell that does the writing and waiting is
`runtime/coordinator.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from ottla.config.broker import BrokerSettings
from ottla.config.group import GroupSettings, group_settings
from ottla.core.caller import Caller
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.core.topics import Topics
from ottla.groups import offset_requests
from ottla.groups.classic import protocol as classic
from ottla.groups.classic import rebalance
from ottla.groups.classic.group import ClassicGroup, apply_group_metadata, refused
from ottla.groups.consumer import apply as consumer_records
from ottla.groups.consumer import classic_members, describe, heartbeat, membership
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.timeouts import Timeouts
from ottla.groups.group import Group
from ottla.groups.offsets import Offsets, commit_tombstone
from ottla.groups.records import read
from ottla.groups.share import apply as share_records
from ottla.groups.timers import Timers
from ottla.protocol.errors import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    UnknownMemberId,
    UnsupportedVersion,
)
from ottla.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.describe_groups import DescribedGroup
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.list_groups import ListedGroup
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

# The most tombstones that one sweep writes at a time: they have to fit into one batch.
SLICE: Final = 1_000
NO_OVERRIDES: Final[dict[str, str]] = {}

Apply = Callable[["GroupMachine", Any, Any, Applied], None]


def _apply_offset(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    machine.offsets.apply(key, value, at)
    if value is not None and key.group not in machine.groups:
        # A consumer that is in no group, only stores its positions under a group's name.
        machine.groups[key.group] = ClassicGroup(key.group, machine)


# Record type -> what folds it into the shard. Types that are not here are skipped.
APPLY: Final[dict[int, Apply]] = {
    0: _apply_offset,
    1: _apply_offset,
    2: lambda machine, key, value, at: apply_group_metadata(machine, key, value),
    **consumer_records.APPLY,
    **share_records.APPLY,
}


class GroupMachine:
    """The groups of one partition. Time, ids and the cluster's topics come in from outside."""

    def __init__(
        self,
        *,
        settings: Callable[[], BrokerSettings],
        topics: Topics,
        new_id: Callable[[], Uuid],
        group_overrides: Callable[[str], dict[str, str]] | None = None,
    ) -> None:
        self.settings = settings
        self.topics = topics
        self.new_id = new_id
        self._group_overrides = group_overrides
        self._group_settings: dict[str, tuple[BrokerSettings, dict[str, str], GroupSettings]] = {}
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.timers = Timers()
        self.timeouts = Timeouts(self.timers)

    def group_settings(self, group_id: str) -> GroupSettings:
        """The settings of a consumer or share group: its own over the broker's.

        Every heartbeat asks for them, so they are kept until one of the two is another.
        """
        broker = self.settings()
        overrides = NO_OVERRIDES if self._group_overrides is None else self._group_overrides(group_id)
        kept = self._group_settings.get(group_id)
        if kept is not None and kept[0] is broker and kept[1] == overrides:
            return kept[2]
        found = group_settings(overrides, broker)
        self._group_settings[group_id] = broker, dict(overrides), found
        return found

    # The classic protocol

    def join_group(self, request: JoinGroupRequest, caller: Caller, now: Now, ticket: object) -> Outcome:
        settings = self.settings()
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not request.group_id:
            return Outcome(reply=refused(InvalidGroupId.code, request.member_id))
        if not shortest <= request.session_timeout_ms <= longest:
            return Outcome(reply=refused(InvalidSessionTimeout.code, request.member_id))
        group = self.groups.get(request.group_id)
        if group is None or isinstance(group, ClassicGroup):
            return classic.join_group(self, request, caller, now, ticket)
        if isinstance(group, ConsumerGroup):
            return classic_members.join_group(group, request, caller, now, ticket)
        return Outcome(reply=refused(InconsistentGroupProtocol.code))

    def sync_group(self, request: SyncGroupRequest, caller: Caller, now: Now, ticket: object) -> Outcome:
        group = self._with_members(request.group_id)
        if isinstance(group, ClassicGroup):
            return classic.sync_group(group, request, now, ticket)
        if isinstance(group, ConsumerGroup):
            return classic_members.sync_group(group, request, now)
        raise UnknownMemberId

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now: Now) -> Outcome:
        group = self._with_members(request.group_id)
        if isinstance(group, ClassicGroup):
            return classic.heartbeat(group, request, now)
        if isinstance(group, ConsumerGroup):
            return classic_members.heartbeat(group, request, now)
        raise UnknownMemberId

    def leave_group(self, request: LeaveGroupRequest, caller: Caller, now: Now) -> Outcome:
        """Members leave. Versions 0-2, with a single member, come as a list of one as well."""
        if not request.group_id:
            raise InvalidGroupId
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return classic.leave_group(group, request, now)
        if isinstance(group, ConsumerGroup):
            return classic_members.leave_group(group, request, now)
        raise UnknownMemberId

    def _with_members(self, group_id: str) -> Group:
        if not group_id:
            raise InvalidGroupId
        group = self.groups.get(group_id)
        if group is None or group.is_empty:
            raise UnknownMemberId
        return group

    # The consumer protocol

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Now
    ) -> Outcome:
        self._check_consumer_protocol()
        return heartbeat.heartbeat(self, request, caller, now)

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """A consumer group as ConsumerGroupDescribe shows it."""
        self._check_consumer_protocol()
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return describe.described(group)

    def _check_consumer_protocol(self) -> None:
        if "consumer" not in self.settings().group_coordinator_rebalance_protocols:
            raise UnsupportedVersion

    # Positions

    def offset_commit(self, request: OffsetCommitRequest, caller: Caller, now: Now) -> Outcome:
        return offset_requests.commit(self, request, caller, now)

    def txn_offset_commit(self, request: TxnOffsetCommitRequest, caller: Caller, now: Now) -> Outcome:
        if not request.group_id:
            raise InvalidGroupId
        return offset_requests.commit_in_transaction(self, request, caller, now)

    def offset_fetch(
        self, asked: OffsetFetchRequestGroup, caller: Caller, require_stable: bool = False
    ) -> Outcome:
        """Answers an OffsetFetchResponseGroup."""
        return offset_requests.fetch(self, asked, caller, require_stable)

    def offset_delete(self, request: OffsetDeleteRequest) -> Outcome:
        if not request.group_id:
            raise InvalidGroupId
        return offset_requests.delete(self, request)

    # Groups of any kind

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """The groups in one of these states and of one of these types, whatever the case; none for any."""
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {type_.strip().lower() for type_ in types}
        return [
            group.listed()
            for group in self.groups.values()
            if (not wanted_states or group.state_name.lower() in wanted_states)
            and (not wanted_types or group.kind in wanted_types)
        ]

    def describe_group(self, group_id: str) -> DescribedGroup:
        """A classic group as DescribeGroups shows it."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a classic group.")
        return group.described()

    def delete_group(self, group_id: str) -> Outcome:
        """Forget a group without members, and its positions. The reply says nothing."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        group.check_delete()
        records = [
            commit_tombstone(group_id, topic, partition)
            for topic, partition in self.offsets.everything_of(group_id)
        ]
        return Outcome(records=[*records, *group.tombstones()], reply=True, atomic=False)

    def forget(self, group: Group) -> None:
        """A group's tombstone was written."""
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            self._group_settings.pop(group.group_id, None)

    # The shell's verbs

    def apply(self, entry: LogRecord, at: Applied) -> None:
        """Fold a record of the log into the state."""
        understood = read(entry)
        if understood is None:
            return
        fold = APPLY.get(understood.type)
        if fold is not None:
            fold(self, understood.key, understood.value, at)

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed)

    def loaded(self, now: Now) -> Outcome:
        """The whole log is applied: start the timers."""
        outcome = Outcome()
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                rebalance.loaded(group, now, outcome)
            elif isinstance(group, ConsumerGroup):
                membership.loaded(group, now)
            else:
                group.loaded(now, outcome)
        self._schedule_sweep(now)
        return outcome

    def deadline(self) -> int | None:
        return self.timers.deadline()

    def expire(self, now: Now) -> Outcome:
        """Do what is due. It stops at the first timer that has something to write.

        What comes after may rest on it, so it waits until that is applied: `deadline` is due again.
        """
        outcome = Outcome()
        while not outcome.records and (timer := self.timers.due(now.monotonic_ms)) is not None:
            timer.action(now, outcome)
        return outcome

    def topics_changed(self, deleted: dict[Uuid, str], changed: set[str], now: Now) -> Outcome:
        """Topics were deleted, or are not what they were. The positions in deleted topics go."""
        outcome = Outcome()
        if deleted:
            self._forget_topics(list(self.groups), deleted, now, outcome)
        for group in list(self.groups.values()):
            group.topics_changed(changed | set(deleted.values()), now, outcome)
        return outcome

    def _forget_topics(
        self, group_ids: list[str], deleted: dict[Uuid, str], now: Now, outcome: Outcome
    ) -> None:
        while group_ids:
            group_id = group_ids.pop()
            for topic_id, topic in deleted.items():
                for partition in self.offsets.partitions_of(group_id, topic):
                    position = self.offsets.get(group_id, topic, partition)
                    if position is None or position.topic_id in (ZERO_UUID, topic_id):
                        outcome.records.append(commit_tombstone(group_id, topic, partition))
            if group_ids and len(outcome.records) >= SLICE:
                self.timers.start(now.monotonic_ms, partial(self._forget_topics, group_ids, deleted))
                return

    # Retention

    def _schedule_sweep(self, now: Now) -> None:
        after_ms = self.settings().offsets_retention_check_interval_ms
        self.timers.start(now.monotonic_ms + after_ms, self._sweep)

    def _sweep(self, now: Now, outcome: Outcome) -> None:
        self._sweep_groups(list(self.groups), now, outcome)

    def _sweep_groups(self, group_ids: list[str], now: Now, outcome: Outcome) -> None:
        """Forget positions that nobody has used for offsets.retention.minutes, and groups without any."""
        retention_ms = self.settings().offsets_retention_minutes * 60_000
        while group_ids:
            group = self.groups.get(group_ids.pop())
            if group is not None:
                self._sweep_group(group, retention_ms, now, outcome)
            if group_ids and len(outcome.records) >= SLICE:
                self.timers.start(now.monotonic_ms, partial(self._sweep_groups, group_ids))
                return
        self._schedule_sweep(now)

    def _sweep_group(self, group: Group, retention_ms: int, now: Now, outcome: Outcome) -> None:
        group_id = group.group_id
        keeps = self.offsets.has_open_transactions(group_id)
        for topic, positions in self.offsets.of_group(group_id).items():
            if group.is_subscribed(topic):
                keeps = True
                continue
            for partition, position in positions.items():
                since = group.retained_from(position)
                if position.expire_timestamp != -1:
                    is_old = since is not None and now.wall_ms >= position.expire_timestamp
                else:
                    is_old = since is not None and now.wall_ms - since >= retention_ms
                if is_old and not self.offsets.is_pending(group_id, topic, partition):
                    outcome.records.append(commit_tombstone(group_id, topic, partition))
                else:
                    keeps = True
        if not keeps and group.is_empty and group.expires:
            outcome.records.extend(group.tombstones())
