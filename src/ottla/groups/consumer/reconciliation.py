"""How a member gets from what it has to what it is to have, a step with each heartbeat.

A partition must never have two owners. So a member first gives up what it is not to keep, and stays in its
epoch until it has said that it did (UNREVOKED_PARTITIONS). Then it enters the target's epoch and is given
what is free; for what others have not given up yet it waits (UNRELEASED_PARTITIONS). Members do this
independently of each other: nobody waits for one that has nothing to do with their partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.consumer.member import Member, State
from ottla.protocol.errors import FencedMemberEpoch


def reconcile(
    member: Member,
    target_epoch: int,
    target: Set[Partition],
    *,
    wants: Callable[[Uuid], bool],
    subscription_changed: bool,
    owned: Set[Partition] | None,
    is_free: Callable[[Partition], bool],
) -> Member:
    """The member after this heartbeat: another object only if something about it is different.

    `owned` is what the member says it has, if it does. `is_free` tells that no other member has a partition.
    `wants` knows the topics it subscribes to now: the target may be older than its wish.
    """
    match member.state:
        case State.STABLE if member.epoch == target_epoch:
            return _without_unsubscribed(member, wants, owned) if subscription_changed else member
        case State.UNREVOKED_PARTITIONS if _holds(owned, member.revoking):
            return _without_unsubscribed(member, wants, owned) if subscription_changed else member
        case State.UNKNOWN if owned is None or owned:
            raise FencedMemberEpoch(
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin."
            )
    moved = _next(member, target_epoch, target, wants, owned, is_free)
    return member if moved == member else moved


def _next(
    member: Member,
    target_epoch: int,
    target: Set[Partition],
    wants: Callable[[Uuid], bool],
    owned: Set[Partition] | None,
    is_free: Callable[[Partition], bool],
) -> Member:
    wanted = {partition for partition in target if wants(partition[0])}
    assigned = {partition: epoch for partition, epoch in member.assigned.items() if partition in wanted}
    revoking = {partition: epoch for partition, epoch in member.assigned.items() if partition not in wanted}
    if revoking and _holds(owned, revoking):
        return member.moved(member.epoch, State.UNREVOKED_PARTITIONS, assigned, revoking)
    missing = [partition for partition in wanted if partition not in assigned]
    free = [partition for partition in missing if is_free(partition)]
    for partition in free:
        assigned[partition] = target_epoch
    state = State.UNRELEASED_PARTITIONS if len(free) < len(missing) else State.STABLE
    return member.moved(target_epoch, state, assigned)


def _without_unsubscribed(
    member: Member, wants: Callable[[Uuid], bool], owned: Set[Partition] | None
) -> Member:
    """Give up what the member does not want any more, without waiting for the next target."""
    unwanted = {partition: epoch for partition, epoch in member.assigned.items() if not wants(partition[0])}
    if not unwanted:
        return member
    assigned = {partition: epoch for partition, epoch in member.assigned.items() if partition not in unwanted}
    revoking = {**member.revoking, **unwanted}
    if _holds(owned, revoking):
        return member.moved(member.epoch, State.UNREVOKED_PARTITIONS, assigned, revoking)
    return member.moved(member.epoch, member.state, assigned, member.revoking)


def _holds(owned: Set[Partition] | None, partitions: Iterable[Partition]) -> bool:
    """Whether the member still has any of these; if it does not say, it may."""
    return owned is None or any(partition in owned for partition in partitions)
