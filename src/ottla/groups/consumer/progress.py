"""What follows from what a member says: for its group's epoch, for the target, and for itself.

This is the middle of every heartbeat, and of a classic member's JoinGroup. Most of the time nothing follows,
and finding that out does not look at the other members.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial

from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.core.outcome import Now, Outcome
from ottla.core.topics import Topics
from ottla.groups.assignors.subscribers import Partition
from ottla.groups.consumer import membership, records, target
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member, State
from ottla.groups.consumer.pattern import compiled
from ottla.groups.consumer.reconciliation import reconcile
from ottla.groups.consumer.subscriptions import (
    Resolved,
    all_topic_names,
    metadata_hash,
    resolve,
    topic_names,
)


class Progress:
    """One member's step. `before` is the member as the group knows it, `member` as it is now.

    `replaced` is the id of the static member whose place it takes. The group stays as it is: what changes is
    in the outcome's records.
    """

    def __init__(
        self,
        group: ConsumerGroup,
        before: Member,
        member: Member,
        caller: Caller,
        now: Now,
        outcome: Outcome,
        *,
        replaced: str | None = None,
    ) -> None:
        self.group = group
        self.before = before
        self.member = member
        self.may_describe = caller.may_describe
        self.now = now
        self.outcome = outcome
        self.replaced = replaced
        self.epoch = group.epoch
        self.target_epoch = group.assignment_epoch
        self.target = group.target_of(replaced or member.member_id)
        self.resolved: Mapping[str, Resolved] = group.resolved

    @property
    def topics(self) -> Topics:
        return self.group.machine.topics

    @property
    def is_waiting(self) -> bool:
        """Whether the member is to have something else before long, without anything more happening to it."""
        return self.member.state is State.UNRELEASED_PARTITIONS or self.target_epoch < self.epoch

    @property
    def subscription_changed(self) -> bool:
        return (
            self.member.topic_names != self.before.topic_names
            or self.member.topic_regex != self.before.topic_regex
        )

    def members(self) -> dict[str, Member]:
        """The members, this one among them."""
        members = dict(self.group.members)
        if self.replaced is not None:
            members.pop(self.replaced, None)
        members[self.member.member_id] = self.member
        return members

    def run(self, owned: Set[Partition] | None) -> Member:
        """All that follows, and the member after it. `owned` is what it says it has, if it does."""
        self.update_subscription()
        self.update_target()
        self.reconcile(owned)
        self.group.is_stale = False
        return self.member

    def update_subscription(self) -> None:
        """Write down the member if it is not what it was, and raise the group's epoch if there is reason."""
        group, write = self.group, self.outcome.records.append
        if self.member is not self.before and self.member != self.before:
            write(records.member_metadata(group.group_id, self.member))
        changed = self.subscription_changed
        if not changed and not group.is_stale:
            return
        members = self.members()
        changed |= self._resolve(members)
        found = metadata_hash(all_topic_names(members.values(), self.resolved), self.topics)
        if changed or found != group.metadata_hash:
            self.epoch += 1
            write(records.group_epoch(group.group_id, self.epoch, found))
        if group.has_partition_metadata:
            write(records.no_partition_metadata(group.group_id))

    def _resolve(self, members: Mapping[str, Member]) -> bool:
        """Find what regular expressions stand for: new ones, and all if topics came or went."""
        group, write = self.group, self.outcome.records.append
        used = {member.topic_regex for member in members.values() if member.topic_regex}
        if not used and not group.resolved:
            return False
        resolved = {}
        changed = False
        for regex in sorted(used):
            known = group.resolved.get(regex)
            if known is not None and not group.is_stale:
                resolved[regex] = known
                continue
            found = resolve(compiled(regex), self.topics, self.may_describe)
            resolved[regex] = Resolved(found, self.now.wall_ms)
            if known is None or known.topics != found:
                changed = True
            elif self.may_describe is None:
                continue
            # Even if it is the same: when it was resolved says when the access rules are asked again.
            write(records.regular_expression(group.group_id, regex, found, self.now.wall_ms))
        for regex in group.resolved.keys() - used:
            write(records.no_regular_expression(group.group_id, regex))
        self.resolved = resolved
        return changed

    def update_target(self) -> None:
        """Assign anew if the group has changed since it was last done, and that was not just now."""
        group = self.group
        if self.epoch <= group.assignment_epoch:
            return
        interval_ms = group.machine.group_settings(group.group_id).consumer_assignment_interval_ms
        if not target.may_assign(group.assigned_at_ms, interval_ms, self.now.wall_ms):
            return
        had = group.targets
        if self.replaced is not None:
            had = {**had, self.member.member_id: group.target_of(self.replaced)}
        targets = target.next_targets(
            self.members(), had, self.resolved, self.topics, group.machine.settings()
        )
        for member_id, partitions in targets.items():
            if partitions != had.get(member_id):
                self.outcome.records.append(records.target(group.group_id, member_id, partitions))
        self.outcome.records.append(records.target_epoch(group.group_id, self.epoch, self.now.wall_ms))
        self.target_epoch = self.epoch
        self.target = targets[self.member.member_id]

    def reconcile(self, owned: Set[Partition] | None) -> None:
        """Take the member a step towards its target."""
        group, changed = self.group, self.subscription_changed
        if not changed and self.member.is_reconciled(self.target_epoch):
            return
        wanted = topic_names(self.member, self.resolved)
        moved = reconcile(
            self.member,
            self.target_epoch,
            self.target,
            wants=partial(_wants, wanted, self.topics),
            subscription_changed=changed,
            owned=owned,
            is_free=self._is_free,
        )
        if moved is not self.member:
            self.member = moved
            self.outcome.records.append(records.current(group.group_id, moved))
            membership.watch_revocation(group, moved, self.now)

    def _is_free(self, partition: Partition) -> bool:
        owner = self.group.owners.get(partition)
        return owner is None or owner == self.member.member_id or owner == self.replaced


def _wants(names: frozenset[str], topics: Topics, topic_id: Uuid) -> bool:
    return topics.name_of(topic_id) in names
