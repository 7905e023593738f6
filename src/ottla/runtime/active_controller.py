"""The controller of the node that leads the quorum: decides, appends, and answers what is committed.

A request becomes a decision, the decision's records are appended, and the answer leaves once they are
committed: on the disks of more than half of the voters. Requests in flight share syncs. The controller reads
its own appended records at once, everybody else reads the committed image.

It lives as long as this node leads in one epoch. What it decided and could not commit by then may be lost, or
be committed by the next leader; whoever waits is told to ask there.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ottla.core.clock import Clock
from ottla.metadata import framing
from ottla.metadata.controller import Controller
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import Context
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import KafkaError, KafkaStorageError, NotController
from ottla.protocol.stored.metadata import NoOpRecord
from ottla.raft.machine import NotLeader
from ottla.runtime.committed import Appended, Committed
from ottla.runtime.raft_shell import RaftShell
from ottla.storage.files import is_of_the_disk
from ottla.storage.log_directory import LogDirectory

# A decision whose records need not stay together is cut into batches of so many.
BATCH_RECORDS: Final = 5_000
# How often to look whether a snapshot or a session is due, if nothing is known to be due earlier.
TICK_MS: Final = 2_000

logger = logging.getLogger("ottla.quorum")


class ActiveController:
    """`failed` is called when the log has what the controller cannot follow, and turns it into an error."""

    def __init__(
        self,
        controller: Controller,
        shell: RaftShell,
        committed: Committed,
        directory: LogDirectory,
        clock: Clock,
        *,
        idle_interval_ms: int,
        failed: Callable[[Exception], Exception],
    ) -> None:
        self.controller = controller
        self.epoch = shell.machine.epoch
        self._shell = shell
        self._committed = committed
        self._directory = directory
        self._clock = clock
        self._failed = failed
        # Bounded by the requests in flight, each of which waits for what it appended.
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._idle_interval_ms = idle_interval_ms
        self._idle_since_ms = clock.monotonic_ms()
        self._is_over = False

    async def submit(self, request: Any, version: int) -> Any:
        """The answer to a request, once all that it rests on is committed."""
        decision = self.decide(request, version)
        # Also without records: the answer may rest on what another request appended a moment ago.
        await self.committed()
        return decision.response

    def decide(self, request: Any, version: int) -> Any:
        """What a request comes to, with its records appended."""
        now_ms = self._clock.monotonic_ms()
        context = Context(version, now_ms, self._shell.log.end_offset, os.urandom)
        decision = self.controller.decide(request, context)
        self.append(decision.records, atomic=decision.atomic)
        return decision

    def append(self, records: list[MetadataRecord], *, atomic: bool = True) -> None:
        """Append records and let the controller know of them. They count for others once committed."""
        if not records:
            return
        size = len(records) if atomic else BATCH_RECORDS
        for start in range(0, len(records), size):
            self._append_batch(records[start : start + size])

    async def committed(self) -> None:
        """Wait until everything that is in the log now is committed, and in the image."""
        if self._is_over:
            raise NotController("this node is not the active controller any more")
        end_offset = self._shell.log.end_offset
        if end_offset > self._committed.next_offset:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((end_offset, waiter))
            await waiter

    def advanced(self) -> None:
        """The image has moved on."""
        next_offset = self._committed.next_offset
        while self._waiters and self._waiters[0][0] <= next_offset:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)

    def end(self, error: KafkaError) -> None:
        """This node does not lead any more, or its log has failed."""
        self._is_over = True
        while self._waiters:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_exception(error)

    def step(self) -> int:
        """Do what is due by the clock; how many milliseconds until the next."""
        now_ms = self._clock.monotonic_ms()
        while records := self.controller.expire(now_ms):
            self.append(records, atomic=False)
        wait_ms = TICK_MS
        if self._idle_interval_ms:
            idle_ms = now_ms - self._idle_since_ms
            if idle_ms >= self._idle_interval_ms:
                self.append([NoOpRecord()])
                idle_ms = 0
            wait_ms = min(wait_ms, self._idle_interval_ms - idle_ms)
        deadline = self.controller.deadline()
        return wait_ms if deadline is None else min(max(deadline - now_ms, 1), wait_ms)

    def _append_batch(self, records: list[MetadataRecord]) -> None:
        level = self.controller.image.metadata_version
        timestamp = self._clock.wall_ms()
        batch = write_batch(
            [Record(timestamp=timestamp, value=framing.encode(record, level)) for record in records]
        )
        offset = self._write(batch)
        self._committed.expect(Appended(records, offset, self.epoch, timestamp, len(batch)))
        try:
            for number, record in enumerate(records):
                self.controller.apply(record, offset + number)
        except Exception as error:
            # The log has what the image cannot follow. Nothing may be decided on top of that.
            self._failed(error)
            raise
        self._idle_since_ms = self._clock.monotonic_ms()

    def _write(self, batch: bytearray) -> int:
        """Append a batch; answers its offset. A log that cannot be written to ends the quorum.

        Only if no more files can be opened it goes on: what could not be appended is just refused, and what
        could is written with its sync.
        """
        try:
            return self._shell.append(batch)
        except NotLeader:
            raise NotController("this node is not the active controller any more") from None
        except OSError as error:
            refused = self._directory.fail(error)
            raise (self._failed(refused) if is_of_the_disk(error) else refused) from error
        except KafkaStorageError as error:
            raise self._failed(error) from error
