"""How the records of consumer groups are folded into a shard, live and when the log is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.core.outcome import Applied
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.group import Group

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.shard import GroupMachine


def _group(machine: GroupMachine, group_id: str, value: Any) -> ConsumerGroup | None:
    """The group. One that is written to is made, in place of what was there: a consumer of no group, say."""
    group: Group | None = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if value is None:
        return None
    group = machine.groups[group_id] = ConsumerGroup(group_id, machine)
    return group


def _epoch(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        if value is None:
            machine.forget(group)
        else:
            group.apply_epoch(value)


def _partition_metadata(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.has_partition_metadata = value is not None


def _member(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_member(key.member_id, value)


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


def _regular_expression(machine: GroupMachine, key: Any, value: Any, at: Applied) -> None:
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.apply_regular_expression(key.regular_expression, value)


# By record type.
APPLY: Final[dict[int, Callable[[GroupMachine, Any, Any, Applied], None]]] = {
    3: _epoch,
    4: _partition_metadata,
    5: _member,
    6: _target_epoch,
    7: _target,
    8: _current,
    16: _regular_expression,
}
