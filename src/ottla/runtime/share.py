"""The share partitions that this broker leads: their machines run against the log, the clock and the
coordinator of their state (KIP-932).

A share partition is loaded when a member of its group first reads it, from what its coordinator has stored,
and dropped when the last session of the group ends here, when leadership goes, or when its writes are fenced.
Deciding and changing is the machine's (`replication/share_partition.py`); here is what takes time: reading
and writing its state, and the timer that takes records back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ottla.config.broker import BrokerSettings
from ottla.config.group import GroupSettings, group_settings
from ottla.core.clock import Clock
from ottla.core.ids import Uuid
from ottla.core.share import UNINITIALIZED, SharePartitionKey
from ottla.groups.share import admin
from ottla.groups.share.heartbeat import Initialize
from ottla.metadata.image import Image
from ottla.protocol.errors import (
    GroupIdNotFound,
    KafkaError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.replication.partition import Partition, Waiter
from ottla.replication.replicas import Replicas
from ottla.replication.share_delivery import Limits
from ottla.replication.share_partition import Acknowledged, SharePartition
from ottla.replication.share_ranges import Write
from ottla.replication.share_session import ShareSessions
from ottla.runtime.coordinator import Coordinator
from ottla.runtime.share_start import start_offset
from ottla.runtime.share_states import ShareStates, as_client_hears

if TYPE_CHECKING:
    from ottla.runtime.coordinators import Coordinators

logger = logging.getLogger("ottla.share")

GROUP_RESOURCE = 32
# Errors after which a share partition is not ours any more: whoever needs it loads it again.
_FENCING = (NotLeaderOrFollower, GroupIdNotFound, UnknownTopicOrPartition)


class Home(Protocol):
    """What the node has that is needed here."""

    @property
    def clock(self) -> Clock: ...
    @property
    def settings(self) -> BrokerSettings: ...
    @property
    def image(self) -> Image: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def groups(self) -> Coordinator[Any]: ...
    @property
    def share_state(self) -> Coordinator[Any]: ...
    @property
    def coordinators(self) -> Coordinators: ...


class Shared:
    """One share partition that is loaded, or being so."""

    __slots__ = (
        "is_dropped",
        "key",
        "leader_epoch",
        "loading",
        "machine",
        "partition",
        "state_epoch",
        "timer",
        "timer_ms",
        "waiters",
    )

    def __init__(self, key: SharePartitionKey, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state_epoch = 0
        self.machine: SharePartition
        self.loading: asyncio.Task[None]
        self.is_dropped = False
        self.waiters: dict[Waiter, None] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0

    @property
    def is_loaded(self) -> bool:
        return self.loading.done() and not self.is_dropped

    def wake(self) -> None:
        """Records came back, or there is room for more: let those look who wait."""
        for waiter in list(self.waiters):
            waiter.readable(0)


class Shares:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._clock = home.clock
        self.sessions = ShareSessions(lambda: home.settings.group_share_max_share_sessions)
        self.states = ShareStates(home.share_state, home.coordinators.elsewhere)
        self._shared: dict[SharePartitionKey, Shared] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: Counter[str] = Counter()  # by group, sessions that have ended a moment ago
        self._is_closed = False
        self._settings: dict[str, tuple[BrokerSettings, dict[str, str], GroupSettings]] = {}

    # --- settings --------------------------------------------------------------------------

    def group_settings(self, group_id: str) -> GroupSettings:
        """The settings of a group as they are now. They are asked for with every delivery."""
        broker = self._home.settings
        overrides = self._home.image.config(GROUP_RESOURCE, group_id)
        known = self._settings.get(group_id)
        if known is None or known[0] is not broker or known[1] != overrides:
            known = broker, dict(overrides), group_settings(overrides, broker)
            self._settings[group_id] = known
        return known[2]

    def _limits(self, group_id: str) -> Limits:
        settings = self.group_settings(group_id)
        return Limits(
            settings.share_delivery_count_limit,
            settings.share_partition_max_record_locks,
            settings.share_record_lock_duration_ms,
            settings.share_renew_acknowledge_enable,
        )

    # --- loading ---------------------------------------------------------------------------

    def open(self, key: SharePartitionKey) -> Shared:
        """A share partition. It may still be loading, and that may fail."""
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = Shared(key, self._led(key))
            known.loading = self._spawn(self._load(known))
        return known

    def find(self, key: SharePartitionKey) -> Shared:
        known = self._shared.get(key)
        if known is None or not known.is_loaded:
            raise UnknownTopicOrPartition
        return known

    def _led(self, key: SharePartitionKey) -> Partition:
        topic = self._home.image.topic_by_id.get(key.topic_id)
        if topic is None:
            raise UnknownTopicId
        if key.partition not in topic.partitions:
            raise UnknownTopicOrPartition
        partition = self._home.replicas.find(topic.name, key.partition)
        if partition is None:
            raise NotLeaderOrFollower
        partition.check_leader()
        return partition

    async def _load(self, shared: Shared) -> None:
        key = shared.key
        try:
            state = await self.states.read(key, shared.leader_epoch)
            shared.state_epoch = state.state_epoch
            begin = state.start_offset
            if begin == UNINITIALIZED:
                begin = await self._begin(shared)
            shared.machine = SharePartition(begin, state.batches, lambda: self._limits(key.group_id))
        except KafkaError as error:
            self.drop(shared)
            raise as_client_hears(error) from error
        except Exception:
            logger.exception("a share partition cannot be loaded key=%s", key)
            self.drop(shared)
            raise

    async def _begin(self, shared: Shared) -> int:
        """Decide where the group begins, and store it.

        Kafka stores it with the first acknowledgement. If the broker stops before that, a group that begins
        at the end begins anew, and what was produced meanwhile is lost on it.
        """
        settings = self.group_settings(shared.key.group_id)
        try:
            offset = start_offset(
                shared.partition.log, settings.share_auto_offset_reset, self._clock.wall_ms()
            )
        except OSError as error:
            raise shared.partition.directory.fail(error) from error
        await self._write(shared, Write(offset))
        return offset

    def drop(self, shared: Shared) -> None:
        """Forget a share partition. Who waits for it looks again, and finds out why."""
        shared.is_dropped = True
        if self._shared.get(shared.key) is shared:
            del self._shared[shared.key]
        if shared.timer is not None:
            shared.timer.cancel()
        shared.wake()

    def drop_group(self, group_id: str) -> None:
        for shared in [each for each in self._shared.values() if each.key.group_id == group_id]:
            self.drop(shared)
        self._settings.pop(group_id, None)

    def follow(self, partition: Partition) -> None:
        """A partition has changed its role here, or may have."""
        for shared in [each for each in self._shared.values() if each.partition is partition]:
            if not partition.is_leader or partition.leader_epoch != shared.leader_epoch:
                self.drop(shared)

    # --- acknowledging -----------------------------------------------------------------------

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, batches: Iterable[Acknowledged]
    ) -> asyncio.Task[None] | None:
        """A task for what has to be stored, if anything. It is stored whether or not somebody waits."""
        shared = self.find(key)
        write = shared.machine.acknowledge(member_id, batches, self._clock.monotonic_ms())
        if write is None:
            return None
        return self._spawn(self._store(shared, write))

    def end_session(self, group_id: str, member_id: str, owner: object | None = None) -> None:
        """A member is done here, or its connection is gone. Others may have what it had."""
        session = self.sessions.end(group_id, member_id, owner)
        if session is None or self._is_closed:
            return
        stores = []
        for topic_id, index in session.partitions:
            shared = self._shared.get(SharePartitionKey(group_id, topic_id, index))
            if shared is not None and shared.is_loaded:
                write = shared.machine.release(member_id)
                if write is not None:
                    stores.append(self._spawn(self._store(shared, write)))
        self._ending[group_id] += 1
        self._spawn(self._ended(group_id, stores))

    async def _ended(self, group_id: str, stores: list[asyncio.Task[None]]) -> None:
        """When the last session has ended, and all that it gave back is stored, nothing need be kept."""
        if stores:
            await asyncio.wait(stores)
        self._ending[group_id] -= 1
        if not self._ending[group_id]:
            del self._ending[group_id]
            if not self.sessions.has_members(group_id):
                self.drop_group(group_id)

    async def _store(self, shared: Shared, write: Write) -> None:
        """Have a decision stored and stand, or taken back. Raises what the consumer is told."""
        try:
            await self._write(shared, write)
        except KafkaError as error:
            shared.machine.failed(write)
            self.set_timer(shared)
            told = as_client_hears(error)
            if isinstance(told, _FENCING):
                self.drop(shared)
            raise told from error
        was_full = not shared.machine.can_acquire()
        shared.machine.written(write)
        # Otherwise whoever waits waits for the log to grow, and there may be many.
        if was_full or shared.machine.has_available:
            shared.wake()

    async def _write(self, shared: Shared, write: Write) -> None:
        await self.states.write(
            shared.key, write, state_epoch=shared.state_epoch, leader_epoch=shared.leader_epoch
        )

    # --- time --------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def set_timer(self, shared: Shared) -> None:
        """See to it that records are taken back in time."""
        deadline_ms = shared.machine.deadline()
        if deadline_ms is None or shared.is_dropped:
            return
        if shared.timer is not None:
            if shared.timer_ms <= deadline_ms:
                return
            shared.timer.cancel()
        wait_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
        shared.timer_ms = deadline_ms
        shared.timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._expire, shared)

    def _expire(self, shared: Shared) -> None:
        shared.timer = None
        write = shared.machine.expire(self._clock.monotonic_ms())
        if write is not None:
            self._spawn(self._store(shared, write))
            shared.wake()
        self.set_timer(shared)

    # --- groups ------------------------------------------------------------------------------

    async def initialize(self, wanted: Initialize) -> None:
        """Have the states of a group's partitions set up, and tell the group which of them are."""
        errors = await self.states.initialize(wanted)
        failed = {topic_id: {index for known, index in errors if known == topic_id} for topic_id, _ in errors}
        done = {
            topic_id: indices - failed.get(topic_id, set()) for topic_id, indices in wanted.indices.items()
        }
        done = {topic_id: indices for topic_id, indices in done.items() if indices}
        for error in errors.values():
            logger.warning("cannot initialize share partitions group=%s error=%s", wanted.group_id, error)
        group_id = wanted.group_id
        if done:
            await self._home.groups.call(
                group_id, lambda machine, now, ticket: admin.initialized(machine, group_id, done, now)
            )
        if failed:
            await self._home.groups.call(
                group_id, lambda machine, now, ticket: admin.not_initialized(machine, group_id, failed)
            )

    def initialize_soon(self, wanted: Initialize) -> asyncio.Task[None]:
        """The same, whether or not somebody waits. If it fails, a later heartbeat tries again."""
        return self._spawn(self.initialize(wanted))

    async def delete_states(self, group_id: str, topics: Mapping[Uuid, frozenset[int]]) -> None:
        """Before a share group is deleted: forget the states of its partitions, or raise why not."""
        self.drop_group(group_id)
        for error in (await self.states.delete(group_id, topics)).values():
            raise error

    # --- tasks -------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()  # whoever waits for it hears it too
        if error is not None and not isinstance(error, KafkaError):
            logger.error("share group work failed", exc_info=error)

    async def close(self) -> None:
        self._is_closed = True
        for shared in list(self._shared.values()):
            self.drop(shared)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
