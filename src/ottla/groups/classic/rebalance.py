"""How a classic group goes from one generation to the next.

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable -> PreparingRebalance ...

Preparing, it waits for its members to join; completing, for the leader to hand in the assignments. Both
waits have a timeout, and whoever has not come by then is out. `prepare` and `complete_join` are the edges;
the last one, to Stable, is `ClassicGroup.apply`, since it is the one that is written to the log.
"""

from __future__ import annotations

from functools import partial

from ottla.core.outcome import Now, Outcome
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.member import Member
from ottla.groups.timers import Action
from ottla.protocol.errors import RebalanceInProgress
from ottla.protocol.messages.sync_group import SyncGroupResponse


def prepare_or_complete(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    """Someone joined or left: start a rebalance, or go on with the one that runs if this was missing."""
    if group.state is State.PREPARING_REBALANCE:
        complete_if_joined(group, now, outcome)
    else:
        prepare(group, now, outcome)


def prepare(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    """Ask all members to join anew."""
    if group.state is State.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
            if member.syncing is not None:
                group.heard_from(member, now)
            group.answer_sync(member, SyncGroupResponse(error_code=RebalanceInProgress.code), outcome)
    stop_awaiting_syncs(group)
    group.is_initial = group.state is State.EMPTY
    group.state = State.PREPARING_REBALANCE
    group.state_since_ms = now.wall_ms
    if not group.is_initial:
        complete_or_await_joins(group, now, outcome)
        return
    # Others may be about to start as well: wait for them, or there is a rebalance for each.
    delay_ms = group.machine.settings().group_initial_rebalance_delay_ms
    remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    _start_join_timer(group, now, delay_ms, partial(_end_initial_delay, group, delay_ms, remaining_ms))


def complete_or_await_joins(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    if group.has_all_joined:
        complete_join(group, now, outcome)
    else:
        _start_join_timer(group, now, group.rebalance_timeout_ms, partial(complete_join, group))


def complete_if_joined(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    if group.state is State.PREPARING_REBALANCE and not group.is_initial and group.has_all_joined:
        complete_join(group, now, outcome)


def complete_join(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    """The next generation: without the members that did not join, except static ones.

    Those have until the end of their session to come back, in their old place.
    """
    group.machine.timers.cancel(group.join_timer)
    for member in [each for each in group.members.values() if each.joining is None]:
        if member.instance_id is None:
            group.remove(member, outcome)
    if group.members and not group.elect_leader():
        # Only static members are left and none of them is here. Their sessions will end, or they come.
        _start_join_timer(group, now, group.rebalance_timeout_ms, partial(complete_join, group))
        return
    group.generation += 1
    group.is_initial = group.new_member_added = False
    group.state_since_ms = now.wall_ms
    group.unsynced.clear()
    if not group.members:
        group.state = State.EMPTY
        group.protocol = None
        group.subscribed = group.find_subscribed()
        outcome.records.append(group.metadata_record({}))
        return
    group.state = State.COMPLETING_REBALANCE
    group.protocol = group.elect_protocol()
    group.subscribed = group.find_subscribed()
    for member in group.members.values():
        group.answer_join(member, group.joined(member), outcome)
        member.is_new = False
        group.heard_from(member, now)
        group.unsynced.add(member.member_id)
    group.sync_timer = group.machine.timers.start(
        now.monotonic_ms + group.rebalance_timeout_ms, partial(_expire_syncs, group)
    )


def stop_awaiting_syncs(group: ClassicGroup) -> None:
    group.unsynced.clear()
    group.machine.timers.cancel(group.sync_timer)


def remove_member(group: ClassicGroup, member: Member, now: Now, outcome: Outcome) -> None:
    """A member is gone: the others share what it had."""
    group.remove(member, outcome)
    if group.state is not State.PREPARING_REBALANCE:
        prepare(group, now, outcome)
    elif group.has_all_joined:
        complete_join(group, now, outcome)


def remove_pending(group: ClassicGroup, member_id: str, now: Now, outcome: Outcome) -> None:
    """An id that was handed out is not going to be used."""
    group.remove_pending(member_id)
    if group.state is State.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(group, now, outcome)


def start_session(group: ClassicGroup, member: Member, timeout_ms: int, now: Now) -> None:
    group.machine.timers.cancel(member.session)
    member.session = group.machine.timers.start(
        now.monotonic_ms + timeout_ms, partial(_end_session, group, member)
    )


def start_pending(group: ClassicGroup, member_id: str, timeout_ms: int, now: Now) -> None:
    group.pending[member_id] = group.machine.timers.start(
        now.monotonic_ms + timeout_ms,
        lambda then, outcome: remove_pending(group, member_id, then, outcome),
    )


def loaded(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    """The group was read from the log: its members have a session each to be heard from."""
    for member in group.members.values():
        start_session(group, member, member.session_timeout_ms, now)
    if len(group.members) > group.machine.settings().group_max_size:
        prepare(group, now, outcome)  # the limit was lowered; joining, the last ones are refused


def _end_session(group: ClassicGroup, member: Member, now: Now, outcome: Outcome) -> None:
    if member.must_not_expire:
        start_session(group, member, member.session_timeout_ms, now)
    else:
        remove_member(group, member, now, outcome)


def _end_initial_delay(
    group: ClassicGroup, delay_ms: int, remaining_ms: int, now: Now, outcome: Outcome
) -> None:
    if not group.new_member_added or remaining_ms == 0:
        complete_join(group, now, outcome)
        return
    group.new_member_added = False
    next_ms = min(group.machine.settings().group_initial_rebalance_delay_ms, remaining_ms)
    left_ms = max(remaining_ms - delay_ms, 0)
    _start_join_timer(group, now, next_ms, partial(_end_initial_delay, group, next_ms, left_ms))


def _expire_syncs(group: ClassicGroup, now: Now, outcome: Outcome) -> None:
    if not group.unsynced:
        return
    for member_id in list(group.unsynced):
        group.remove(group.members[member_id], outcome)
    prepare(group, now, outcome)


def _start_join_timer(group: ClassicGroup, now: Now, delay_ms: int, action: Action) -> None:
    group.machine.timers.cancel(group.join_timer)
    group.join_timer = group.machine.timers.start(now.monotonic_ms + delay_ms, action)
