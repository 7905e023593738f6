"""Runs the quorum's machine against real time, disk and peers.

Every call on the machine is followed by what it wants done, in its order: the election state goes to disk
before anything that rests on it leaves this node. Nothing waits in between, so the machine never sees two
things at once. Fetches of followers wait here until there is something to say.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.client.errors import ClientError, Refused, UnsupportedRequest
from ottla.core.clock import Clock
from ottla.protocol.apis import api
from ottla.protocol.errors import NONE, InconsistentClusterId, KafkaError, KafkaStorageError, NotController
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.raft.effects import Effect, LoadSnapshot, Persist, Send, Sync
from ottla.raft.election_state import to_json
from ottla.raft.machine import NotLeader, Raft
from ottla.raft.membership import Address, VoterKey
from ottla.raft.settings import RaftSettings
from ottla.runtime.channels import Channels
from ottla.runtime.committed import Committed
from ottla.runtime.flusher import Flusher
from ottla.runtime.metadata_log import QUORUM_STATE, MetadataLog
from ottla.runtime.raft_log import DiskLog
from ottla.storage.files import write_atomically

T = TypeVar("T")
R = TypeVar("R")

# Fetches that wait for something new. A cluster has one for each node that follows.
PARKED_MAX: Final = 2_000
# A request asks for at most this, but it is not for the other side to say how long we keep it.
WAIT_MAX_MS: Final = 10_000
# How long a leader that stops waits for the others to hear of it.
FAREWELL_S: Final = 1.0

logger = logging.getLogger("ottla.quorum")


class RaftShell:
    """`changed` is called after calls that changed who leads, the epoch, or the high watermark; `failed` when
    the machine or its disk cannot go on."""

    def __init__(
        self,
        settings: RaftSettings,
        node: VoterKey,
        cluster_id: str,
        store: MetadataLog,
        *,
        clock: Clock,
        flusher: Flusher,
        channels: Channels,
        committed: Committed,
        can_vote: bool,
        changed: Callable[[], None],
        failed: Callable[[Exception], object],
    ) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._static_voters = tuple(id for id, _ in settings.voters) or (node.id,)
        self._clock = clock
        self._flusher = flusher
        self._channels = channels
        self._committed = committed
        self._changed = changed
        self._failed = failed
        self._is_stopped = False
        # The controllers that are of another cluster, and whether there was ever one of ours.
        self._strangers: set[Address] = set()
        self._is_known = False
        self._seen: tuple[object, ...] = ()
        self._parked: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sync_to = 0
        self._is_syncing = False
        self.log = DiskLog(store, clock)
        self.machine = Raft(
            settings,
            node,
            self.log,
            store.membership,
            store.election,
            cluster_id,
            clock.monotonic_ms(),
            random.random,
            can_vote=can_vote,
        )

    def start(self) -> None:
        """Carry out what the machine wanted when it was made."""
        self._settle()

    def call(self, method: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Call the machine and carry out what follows. What it fails by is passed on, and ends it.

        No answer leaves that rests on what could not be carried out: a vote that is not on disk is not given.
        """
        self._check_running()
        try:
            result = method(*arguments, **named)
        except Exception as error:
            # It may be half-way between two states.
            self._fail(error)
            raise
        self._settle()
        self._check_running()
        return result

    def append(self, batch: bytearray) -> int:
        """Append as leader; answers the first offset. Raises `NotLeader`, and then nothing has changed.

        So it is with an error of the disk, which is for the caller to judge.
        """
        if self._is_stopped:
            raise NotLeader
        offset = self.machine.append(batch)
        self._settle()
        return offset

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Records of the log, once there are any, or once the request's wait is over."""
        loop = asyncio.get_running_loop()
        wait_ms = min(max(request.max_wait_ms, 0), WAIT_MAX_MS)
        if len(self._parked) >= PARKED_MAX or self._is_stopped:
            wait_ms = 0
        deadline = loop.time() + wait_ms / 1000
        while True:
            waited = loop.time() >= deadline or self._is_stopped
            response = self.call(self.machine.fetch, request, self._clock.monotonic_ms(), waited=waited)
            if response is not None:
                return response
            assert not waited, "a fetch that has waited is answered"
            await self.changes(deadline - loop.time())

    async def change_voters(self, method: Callable[[R, int], T | None], request: R) -> T:
        """The answer to a request for another voter set, once that is decided."""
        while True:
            response = self.call(method, request, self._clock.monotonic_ms())
            if response is not None:
                return response
            if self._is_stopped:
                raise NotController("this node is stopping")
            deadline = self.machine.deadline()
            wait_ms = WAIT_MAX_MS if deadline is None else deadline - self._clock.monotonic_ms()
            await self.changes(min(max(wait_ms, 1), WAIT_MAX_MS) / 1000)

    async def changes(self, within: float) -> None:
        """Wait until the machine may have something new to say, but not longer than this."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.add(change)
        try:
            await asyncio.wait((change,), timeout=within)
        finally:
            self._parked.discard(change)

    async def close(self, *, resign: bool = True) -> None:
        """Say goodbye if this node leads, then do nothing any more."""
        if resign and not self._is_stopped:
            self.call(self.machine.resign, self._clock.monotonic_ms())
            loop = asyncio.get_running_loop()
            deadline = loop.time() + FAREWELL_S
            while self.machine.is_resigning and (left := deadline - loop.time()) > 0:
                await self.changes(min(left, 0.05))
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.log.close()

    def stop(self) -> None:
        """From here on the machine is not called any more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        self._wake()

    # --- after every call ----------------------------------------------------------------------

    def _settle(self) -> None:
        if self._is_stopped:
            return
        machine = self.machine
        try:
            while effects := machine.take_effects():
                for effect in effects:
                    self._carry_out(effect)
            seen = (machine.role, machine.epoch, machine.leader_id, machine.high_watermark)
            if (*seen, self.log.end_offset) != self._seen:
                is_news = seen != self._seen[:4]
                self._seen = (*seen, self.log.end_offset)
                self._wake()
                if is_news:
                    if machine.high_watermark is not None:
                        self._committed.advance(machine.high_watermark)
                    self._changed()
        except Exception as error:
            logger.exception("the metadata quorum failed")
            self._fail(error)
            return
        self._set_timer()

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._start(self._send(effect))
        elif isinstance(effect, Sync):
            self._sync_to = effect.end_offset
            if not self._is_syncing:
                self._is_syncing = True
                self._start(self._sync())
        elif isinstance(effect, Persist):
            self._persist(effect)
        elif isinstance(effect, LoadSnapshot):
            content = self.log.take_received(effect.snapshot)
            logger.info("took over a snapshot of the leader offset=%d", effect.snapshot.end_offset)
            self._committed.replace(effect.snapshot, content)

    def _persist(self, effect: Persist) -> None:
        """On the loop: elections are rare, and this node must not run ahead of its disk."""
        membership = self._store.membership
        voters = membership.voter_ids or self._static_voters
        state = to_json(effect.election, membership.kraft_version, self._cluster_id, voters)
        write_atomically(self._store.files, f"{self._store.directory}/{QUORUM_STATE}", state)

    async def _send(self, send: Send) -> None:
        request: Any = send.request
        # Long polls and large answers do not hold up votes.
        is_fetch = isinstance(request, FetchRequest | FetchSnapshotRequest)
        try:
            response: Any = await self._channels.ask_controller(
                send.to,
                request,
                api(type(request).api_key).response,
                purpose="raft-fetch" if is_fetch else "raft",
                within=send.timeout_ms / 1000,
            )
        except ClientError as error:
            if not self._is_stopped:
                logger.debug("a controller did not answer at=%s error=%s", send.to, error)
                self.call(
                    self.machine.failed,
                    send,
                    self._clock.monotonic_ms(),
                    unsupported=isinstance(error, UnsupportedRequest),
                    is_gone=isinstance(error, Refused),
                )
            return
        if not self._is_stopped:
            self._recognize(send.to, response.error_code)
        if not self._is_stopped:
            self.call(self.machine.answered, send, response, self._clock.monotonic_ms())

    def _recognize(self, at: Address, code: int) -> None:
        """A controller of another cluster is one that was not set up as we were, or we were not.

        It is we if most of those that we know say so, and none has ever said anything else.
        """
        if code == NONE:
            self._strangers.discard(at)
            self._is_known = True
        elif code == InconsistentClusterId.code and at not in self._strangers:
            self._strangers.add(at)
            text = f"the controller at {at.host}:{at.port} is not of cluster {self._cluster_id}"
            logger.error("%s (INCONSISTENT_CLUSTER_ID)", text)
            others = set(self.machine.others)
            if not self._is_known and 2 * len(self._strangers & others) > len(others):
                self._fail(InconsistentClusterId(f"{text}, which this node's directories belong to"))

    async def _sync(self) -> None:
        """Sync until nothing is left. What is appended meanwhile shares the next sync."""
        log = self._store.log
        try:
            synced = -1
            while synced != self._sync_to:
                end_offset = min(self._sync_to, log.end_offset)
                await self._flusher.synced(log, end_offset)
                synced = self._sync_to if end_offset == log.end_offset else end_offset
                if not self._is_stopped:
                    self.call(self.machine.synced, end_offset, self._clock.monotonic_ms())
        except KafkaError as error:
            self._fail(error)
        finally:
            self._is_syncing = False

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.machine.deadline()
        if deadline is not None:
            wait_ms = max(deadline - self._clock.monotonic_ms(), 0)
            self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self._is_stopped:
            try:
                self.call(self.machine.expire, self._clock.monotonic_ms())
            except Exception:
                logger.exception("the metadata quorum failed")

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the metadata quorum failed", exc_info=error)
            self._fail(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def _wake(self) -> None:
        for change in self._parked:
            if not change.done():
                change.set_result(None)

    def _check_running(self) -> None:
        if self._is_stopped:
            raise KafkaStorageError("this node takes no part in the metadata quorum any more")

    def _fail(self, error: Exception) -> None:
        if not self._is_stopped:
            self.stop()
            self._failed(error)
