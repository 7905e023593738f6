"""Members come to an end: they leave, are not heard from, or take too long."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ottla.core.outcome import Now, Outcome
from ottla.groups.consumer import migration, records
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import AWAY, NOTHING, Member, State
from ottla.groups.consumer.subscriptions import all_topic_names, metadata_hash
from ottla.groups.consumer.timeouts import is_running

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine


def fence(group: ConsumerGroup, members: Collection[Member], now: Now, outcome: Outcome) -> None:
    """Take members out of their group. What they had is free, and the others are assigned anew."""
    group_id, timeouts = group.group_id, group.machine.timeouts
    gone = {member.member_id for member in members}
    if migration.can_downgrade(group, gone):
        migration.downgrade(group, gone, now, outcome)
        return
    for member_id in gone:
        outcome.records += records.forget_member(group_id, member_id)
        timeouts.forget(group_id, member_id)
    left = [member for member in group.members.values() if member.member_id not in gone]
    used = {member.topic_regex for member in left}
    outcome.records += [
        records.no_regular_expression(group_id, regex) for regex in group.resolved if regex not in used
    ]
    found = metadata_hash(all_topic_names(left, group.resolved), group.machine.topics)
    outcome.records.append(records.group_epoch(group_id, group.epoch + 1, found))


def go_away(group: ConsumerGroup, member: Member, outcome: Outcome) -> None:
    """A static member stops, and will be back before its session ends: its partitions wait for it."""
    away = replace(member, epoch=AWAY, assigned=dict.fromkeys(member.assigned, 0), revoking=NOTHING)
    outcome.records.append(records.current(group.group_id, away))


def heard_from(group: ConsumerGroup, member: Member, now: Now) -> None:
    """Put off the end of a member's session."""
    machine, group_id = group.machine, group.group_id
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = machine.group_settings(group_id).consumer_session_timeout_ms
    if not machine.timeouts.put_off(group_id, member.member_id, timeout_ms, now):
        timers = machine.timeouts.of(group_id, member.member_id)
        action = partial(_expire, machine, group_id, member.member_id)
        timers.session = machine.timeouts.restart(timers.session, timeout_ms, now, action)


def watch_revocation(group: ConsumerGroup, member: Member, now: Now) -> None:
    """A member that has to give up partitions may take as long as it said. Others wait for them."""
    if member.is_classic:
        return  # those have to join in time
    machine, group_id = group.machine, group.group_id
    timers = machine.timeouts.of(group_id, member.member_id)
    if member.state is not State.UNREVOKED_PARTITIONS:
        machine.timeouts.stop(timers.revocation)
        return
    action = partial(_expire_revocation, machine, group_id, member.member_id, member.epoch)
    timers.revocation = machine.timeouts.restart(timers.revocation, member.rebalance_timeout_ms, now, action)


def await_join(group: ConsumerGroup, member: Member, now: Now) -> None:
    """A classic member was told to join again."""
    machine = group.machine
    timers = machine.timeouts.of(group.group_id, member.member_id)
    if not is_running(timers.join):
        action = partial(_expire, machine, group.group_id, member.member_id)
        timers.join = machine.timeouts.restart(timers.join, member.rebalance_timeout_ms, now, action)


def await_sync(group: ConsumerGroup, member: Member, now: Now) -> None:
    """A classic member has joined, and has to ask for its assignment."""
    machine = group.machine
    timers = machine.timeouts.of(group.group_id, member.member_id)
    machine.timeouts.stop(timers.join)
    action = partial(_expire, machine, group.group_id, member.member_id)
    timers.sync = machine.timeouts.restart(timers.sync, member.rebalance_timeout_ms, now, action)


def loaded(group: ConsumerGroup, now: Now) -> None:
    """The log has been read: everybody has a session to be heard from."""
    for member in group.members.values():
        heard_from(group, member, now)
        if member.state is State.UNREVOKED_PARTITIONS:
            watch_revocation(group, member, now)


def _expire(machine: GroupMachine, group_id: str, member_id: str, now: Now, outcome: Outcome) -> None:
    group = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        fence(group, [group.members[member_id]], now, outcome)


def _expire_revocation(
    machine: GroupMachine, group_id: str, member_id: str, epoch: int, now: Now, outcome: Outcome
) -> None:
    group = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        member = group.members[member_id]
        if member.epoch == epoch and member.state is State.UNREVOKED_PARTITIONS:
            fence(group, [member], now, outcome)
