"""Folding the records of share groups into the shard, types 10 to 15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.core.outcome import Applied
from ottla.groups.share.group import ShareGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.shard import GroupMachine


def _group(machine: GroupMachine, group_id: str, value: Any) -> ShareGroup | None:
    """The group. One that is written to is made; what takes back something of another is nobody's."""
    group = machine.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if value is None:
        return None
    made = machine.groups[group_id] = ShareGroup(group_id, machine)
    return made


def _member(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_member(key.member_id, value)


def _epoch(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        if value is None:
            machine.forget(group)
        else:
            group.apply_epoch(value)


def _target_epoch(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_target_epoch(value)


def _target(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_target(key.member_id, value)


def _current(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_current(key.member_id, value)


def _partitions(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_partitions(value, at.timestamp)


# By record type.
APPLY: Final[dict[int, Callable[[GroupMachine, Any, Any, Applied], None]]] = {
    10: _member,
    11: _epoch,
    12: _target_epoch,
    13: _target,
    14: _current,
    15: _partitions,
}
