"""The machine of one partition of `__share_group_state`: what was delivered to share groups (KIP-932).

For each share partition there is a snapshot, and updates since, all told in its own words: state batches,
which say of ranges of offsets how far they have come, and the offset before which all is done with. After so
many updates another snapshot is written. What lies in the log before the oldest snapshot that is needed is
of no use any more, and is asked to be deleted from time to time; so that no partition which nobody reads
holds that up, its snapshot is written anew when it has become old.

Two epochs fence writers: the state epoch, with which the group coordinator initialized the state, and the
leader epoch of the partition that is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.core.share import UNINITIALIZED, SharePartitionKey, StateBatch
from ottla.core.topics import Topics
from ottla.groups.records import read, record, tombstone
from ottla.groups.state_batches import combine
from ottla.protocol.errors import (
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from ottla.protocol.stored import share as stored

NO_EPOCH: Final = -1  # of a caller who does not want to be fenced
_NOT_STARTED: Final = -1  # the count of completed deliveries before anybody has read

_TYPES: Final[dict[int, tuple[Any, Any]]] = {
    0: (stored.ShareSnapshotKey, stored.ShareSnapshotValue),
    1: (stored.ShareUpdateKey, stored.ShareUpdateValue),
}


class Prune(NamedTuple):
    """An effect: nothing before this offset of the partition of `__share_group_state` is needed."""

    partition: int
    before_offset: int


class ReadState(NamedTuple):
    state_epoch: int
    start_offset: int
    batches: list[StateBatch]


class Summary(NamedTuple):
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED
    delivery_complete_count: int = _NOT_STARTED


class _Stored:
    """The state of one share partition."""

    __slots__ = (
        "batches",
        "create_timestamp",
        "delivery_complete_count",
        "highest_leader_epoch",
        "highest_state_epoch",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "write_timestamp",
    )

    def __init__(self, snapshot_offset: int) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.start_offset = UNINITIALIZED
        self.delivery_complete_count = _NOT_STARTED
        self.batches: list[StateBatch] = []
        self.create_timestamp = 0
        self.write_timestamp = 0
        # A new initialization begins with lower epochs, and fences no less.
        self.highest_leader_epoch = -1
        self.highest_state_epoch = -1
        self.snapshot_offset = snapshot_offset  # where in our log the snapshot stands
        self.updates = 0  # since then

    @property
    def is_cold(self) -> bool:
        """Whether the snapshot was only written to stand later in the log."""
        return self.create_timestamp != self.write_timestamp

    def snapshot(self) -> stored.ShareSnapshotValue:
        return stored.ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch + 1,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.create_timestamp,
            write_timestamp=self.write_timestamp,
            state_batches=_stored_batches(self.batches),
        )


class ShareStateMachine:
    """The states of one partition. Each command concerns one share partition."""

    def __init__(self, partition: int, *, settings: Callable[[], BrokerSettings], topics: Topics) -> None:
        self._partition = partition
        self._settings = settings
        self._topics = topics
        self._states: dict[SharePartitionKey, _Stored] = {}
        self._needed_from = 0  # everything before is of no use, as of the last record
        self._pruned_before = 0
        self._prune_at = 0
        self._refresh_at = 0

    # --- commands ------------------------------------------------------------------------

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now: Now) -> Outcome:
        """Begin anew at an offset, or where the group's settings say."""
        _check_key(key)
        state = self._states.get(key)
        if state is not None and state_epoch != NO_EPOCH and state.highest_state_epoch > state_epoch:
            raise FencedStateEpoch
        self._check_topic(key)
        value = stored.ShareSnapshotValue(
            snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=_NOT_STARTED if start_offset == UNINITIALIZED else 0,
            create_timestamp=now.wall_ms,
            write_timestamp=now.wall_ms,
        )
        return Outcome(records=[_record(stored.ShareSnapshotKey, key, value)], reply=key)

    def read(self, key: SharePartitionKey, leader_epoch: int, now: Now) -> Outcome:
        """Answers a `ReadState`. A reader who leads in a later epoch fences those of before."""
        _check_key(key)
        state = self._states.get(key)
        if state is None:
            raise InvalidRequest("Read operation on uninitialized share partition not allowed.")
        if state.highest_leader_epoch > leader_epoch:
            raise FencedLeaderEpoch
        self._check_topic(key)
        outcome = Outcome(reply=ReadState(state.state_epoch, state.start_offset, list(state.batches)))
        if leader_epoch not in (NO_EPOCH, state.highest_leader_epoch):
            outcome.records.append(
                self._change(
                    key, state, leader_epoch, state.start_offset, state.delivery_complete_count, (), now
                )
            )
        return outcome

    def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now: Now,
    ) -> Outcome:
        _check_key(key)
        state = self._states.get(key)
        if state is None:
            raise InvalidRequest("Write operation on uninitialized share partition not allowed.")
        if leader_epoch != NO_EPOCH and state.highest_leader_epoch > leader_epoch:
            raise FencedLeaderEpoch
        if state_epoch != NO_EPOCH and state.highest_state_epoch > state_epoch:
            raise FencedStateEpoch
        self._check_topic(key)
        written = self._change(
            key, state, state.leader_epoch, start_offset, delivery_complete_count, batches, now
        )
        return Outcome(records=[written], reply=key)

    def delete(self, key: SharePartitionKey, now: Now) -> Outcome:
        """Forget a share partition. One that is not known is forgotten already."""
        _check_key(key)
        self._check_topic(key)
        outcome = Outcome(reply=key)
        if key in self._states:
            outcome.records.append(_tombstone(key))
        return outcome

    def read_summary(self, key: SharePartitionKey) -> Outcome:
        """Answers a `Summary`, of a share partition that is not known as well."""
        _check_key(key)
        self._check_topic(key)
        state = self._states.get(key)
        if state is None:
            return Outcome(reply=Summary())
        return Outcome(
            reply=Summary(
                state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count
            )
        )

    def topics_deleted(self, topic_ids: Iterable[Uuid]) -> Outcome:
        gone = set(topic_ids)
        return Outcome(records=[_tombstone(key) for key in self._states if key.topic_id in gone])

    def _check_topic(self, key: SharePartitionKey) -> None:
        name = self._topics.name_of(key.topic_id)
        count = None if name is None else self._topics.partition_count(name)
        if count is None or key.partition >= count:
            raise UnknownTopicOrPartition

    def _change(
        self,
        key: SharePartitionKey,
        state: _Stored,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now: Now,
    ) -> LogRecord:
        """An update, or the snapshot that is due instead."""
        if state.updates < self._settings().share_coordinator_snapshot_update_records_per_snapshot:
            update = stored.ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                state_batches=_stored_batches(combine((), batches, start_offset)),
            )
            return _record(stored.ShareUpdateKey, key, update)
        if start_offset == UNINITIALIZED:
            start_offset = state.start_offset
        snapshot = state.snapshot()
        snapshot.leader_epoch = leader_epoch
        snapshot.start_offset = start_offset
        snapshot.delivery_complete_count = delivery_complete_count
        snapshot.create_timestamp = snapshot.write_timestamp = now.wall_ms
        snapshot.state_batches = _stored_batches(combine(state.batches, batches, start_offset))
        return _record(stored.ShareSnapshotKey, key, snapshot)

    # --- the log -------------------------------------------------------------------------

    def apply(self, entry: LogRecord, at: Applied) -> None:
        understood = read(entry, _TYPES)
        if understood is None:
            return
        key = SharePartitionKey(understood.key.group_id, understood.key.topic_id, understood.key.partition)
        value = understood.value
        if isinstance(value, stored.ShareSnapshotValue):
            self._apply_snapshot(key, value, at)
        elif isinstance(value, stored.ShareUpdateValue):
            self._apply_update(key, value, at)
        else:
            self._states.pop(key, None)
        self._needed_from = at.offset

    def _apply_snapshot(self, key: SharePartitionKey, value: stored.ShareSnapshotValue, at: Applied) -> None:
        state = self._state(key, at)
        state.snapshot_epoch = value.snapshot_epoch
        state.state_epoch = value.state_epoch
        state.highest_state_epoch = max(state.highest_state_epoch, value.state_epoch)
        state.leader_epoch = value.leader_epoch
        state.highest_leader_epoch = max(state.highest_leader_epoch, value.leader_epoch)
        state.start_offset = value.start_offset
        state.delivery_complete_count = value.delivery_complete_count
        state.create_timestamp = value.create_timestamp
        state.write_timestamp = value.write_timestamp
        state.batches = _batches(value.state_batches)
        state.snapshot_offset = at.offset
        state.updates = 0

    def _apply_update(self, key: SharePartitionKey, value: stored.ShareUpdateValue, at: Applied) -> None:
        state = self._state(key, at)
        if value.leader_epoch != NO_EPOCH:
            state.leader_epoch = value.leader_epoch
            state.highest_leader_epoch = max(state.highest_leader_epoch, value.leader_epoch)
        if value.start_offset != UNINITIALIZED:
            state.start_offset = value.start_offset
        state.delivery_complete_count = value.delivery_complete_count
        state.batches = combine(state.batches, _batches(value.state_batches), state.start_offset)
        state.updates += 1

    def _state(self, key: SharePartitionKey, at: Applied) -> _Stored:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _Stored(at.offset)
        return state

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nobody writes here in a transaction."""

    # --- time ----------------------------------------------------------------------------

    def loaded(self, now: Now) -> Outcome:
        settings = self._settings()
        self._prune_at = now.monotonic_ms + settings.share_coordinator_state_topic_prune_interval_ms
        self._refresh_at = now.monotonic_ms + settings.share_coordinator_cold_partition_snapshot_interval_ms
        return Outcome()

    def deadline(self) -> int | None:
        return min(self._prune_at, self._refresh_at)

    def expire(self, now: Now) -> Outcome:
        settings = self._settings()
        outcome = Outcome()
        if now.monotonic_ms >= self._refresh_at:
            interval_ms = settings.share_coordinator_cold_partition_snapshot_interval_ms
            self._refresh_at = now.monotonic_ms + interval_ms
            outcome.records += self._refreshed(now, interval_ms)
        if now.monotonic_ms >= self._prune_at:
            self._prune_at = now.monotonic_ms + settings.share_coordinator_state_topic_prune_interval_ms
            outcome.effects += self._prune()
        return outcome

    def _refreshed(self, now: Now, interval_ms: int) -> list[LogRecord]:
        """Old snapshots once more, unless nothing has been written since that was last done."""
        if all(state.is_cold for state in self._states.values()):
            return []
        records = []
        for key, state in self._states.items():
            if now.wall_ms - state.write_timestamp >= interval_ms:
                snapshot = state.snapshot()
                snapshot.write_timestamp = now.wall_ms
                records.append(_record(stored.ShareSnapshotKey, key, snapshot))
        return records

    def _prune(self) -> list[Prune]:
        """What is needed begins with the oldest snapshot; if there is none, with the last word on any."""
        needed_from = min((s.snapshot_offset for s in self._states.values()), default=self._needed_from)
        if needed_from <= self._pruned_before:
            return []
        self._pruned_before = needed_from
        return [Prune(self._partition, needed_from)]


def _check_key(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise InvalidRequest("The partition id cannot be a negative number.")


def _batches(batches: Iterable[stored.StateBatch]) -> list[StateBatch]:
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    ]


def _stored_batches(batches: Iterable[StateBatch]) -> list[stored.StateBatch]:
    return [
        stored.StateBatch(
            first_offset=each.first_offset,
            last_offset=each.last_offset,
            delivery_state=each.delivery_state,
            delivery_count=each.delivery_count,
        )
        for each in batches
    ]


def _record(cls: Any, key: SharePartitionKey, value: Any) -> LogRecord:
    return record(cls(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value)


def _tombstone(key: SharePartitionKey) -> LogRecord:
    """Always under the key of a snapshot."""
    return tombstone(
        stored.ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    )
