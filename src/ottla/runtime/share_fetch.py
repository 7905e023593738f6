"""Delivering records of share partitions to one member, waiting for some if asked to.

Reading the log and giving out what was read happens without suspending, so no two fetches get the same
records. A fetch with nothing to give waits for the log to grow, for records to come back and for room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.core.files import Buffer
from ottla.core.share import SharePartitionKey
from ottla.protocol.batch import BatchHeader, iter_batches
from ottla.protocol.control import read_end_transaction
from ottla.protocol.errors import KafkaError
from ottla.replication.share_delivery import Acquired
from ottla.runtime.share import Shared, Shares
from ottla.storage.log import Log

# How often one fetch looks at a partition again at once, where it found records that nobody may have.
_LOOKS: Final = 16


class Wanted(NamedTuple):
    """What a member asks for."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: int


class Fetched(NamedTuple):
    records: Buffer
    acquired: list[Acquired]


Results = dict[SharePartitionKey, Fetched | KafkaError]


class _Read(NamedTuple):
    """Batches of a log, with the place of each in the bytes."""

    records: Buffer
    fetch_offset: int
    batches: list[tuple[int, int]]
    places: list[tuple[int, int]]
    aborted: list[tuple[int, int]]


class _Waiter:
    __slots__ = ("future",)

    def __init__(self, future: asyncio.Future[None]) -> None:
        self.future = future

    def readable(self, size: int) -> None:
        if not self.future.done():
            self.future.set_result(None)


async def fetch(shares: Shares, wanted: Wanted, keys: Sequence[SharePartitionKey]) -> Results:
    """What the member gets of each partition, in their order; of those with nothing to say, nothing."""
    return await _Fetch(shares, wanted).run(keys)


class _Fetch:
    def __init__(self, shares: Shares, wanted: Wanted) -> None:
        self._shares = shares
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + wanted.max_wait_ms / 1000
        self._is_committed = shares.group_settings(wanted.group_id).share_isolation_level == "read_committed"
        self._results: Results = {}

    async def run(self, keys: Sequence[SharePartitionKey]) -> Results:
        if self._wanted.max_records <= 0 or self._wanted.max_bytes <= 0:
            return {}
        opened = []
        for key in keys:
            try:
                opened.append(self._shares.open(key))
            except KafkaError as error:
                self._results[key] = error
        loaded = await self._loaded(opened)
        while True:
            is_late = self._loop.time() >= self._deadline
            self._look(loaded, take_anything=is_late or bool(self._results))
            if self._results or is_late:
                return self._results
            await self._news(loaded)

    async def _loaded(self, opened: list[Shared]) -> list[Shared]:
        loading = [shared.loading for shared in opened if not shared.loading.done()]
        if loading:
            await asyncio.wait(loading, timeout=max(self._deadline - self._loop.time(), 0))
        loaded = []
        for shared in opened:
            if not shared.loading.done():
                continue
            error = shared.loading.exception()
            if error is None:
                loaded.append(shared)
            elif isinstance(error, KafkaError):
                self._results[shared.key] = error
            else:
                raise error
        return loaded

    async def _news(self, partitions: list[Shared]) -> None:
        """Return when something may have changed, or the time is up."""
        waiter = _Waiter(self._loop.create_future())
        timer = self._loop.call_at(self._deadline, waiter.readable, 0)
        for shared in partitions:
            shared.waiters[waiter] = None
            shared.partition.add_waiter(waiter)
        try:
            await waiter.future
        finally:
            timer.cancel()
            for shared in partitions:
                shared.waiters.pop(waiter, None)
                shared.partition.remove_waiter(waiter)

    # --- one look ----------------------------------------------------------------------------

    def _look(self, partitions: list[Shared], *, take_anything: bool) -> None:
        """Read every partition that may have something, and if it is enough give it out."""
        wanted = self._wanted
        able = [shared for shared in partitions if self._is_able(shared)]
        if not able:
            return
        limit = max(wanted.max_bytes // len(able), 1)
        reads: list[tuple[Shared, _Read]] = []
        size = 0
        for shared in able:
            try:
                read = self._read(shared, limit, min_one_batch=not size)
            except KafkaError as error:
                self._results[shared.key] = error
                continue
            if read is not None:
                reads.append((shared, read))
                size += len(read.records)
        if size < wanted.min_bytes and not take_anything and not self._results:
            return
        left = wanted.max_records
        for shared, read in reads:
            if left > 0:
                left -= self._give(shared, read, left, limit)

    def _is_able(self, shared: Shared) -> bool:
        if shared.is_dropped:
            try:
                shared.partition.check_leader()
            except KafkaError as error:
                self._results[shared.key] = error
            return False  # it was fenced; the member's next fetch loads it again
        return shared.machine.can_acquire()

    def _read(self, shared: Shared, limit: int, *, min_one_batch: bool) -> _Read | None:
        """What the log has for the next delivery, if it has anything."""
        machine, log = shared.machine, shared.partition.log
        shared.partition.check_leader()
        machine.log_start_moved(log.start_offset)
        end_offset = log.last_stable_offset if self._is_committed else log.high_watermark
        for _ in range(_LOOKS):
            offset = machine.next_fetch_offset()
            if offset >= end_offset:
                return None
            try:
                records = log.read(offset, limit, end_offset, min_one_batch=min_one_batch)
            except OSError as error:
                raise shared.partition.directory.fail(error) from error
            if len(records):
                return self._parsed(log, records, offset, machine.in_flight + self._wanted.max_records)
            if not min_one_batch:
                return None
            machine.skip(offset, end_offset)  # the log has nothing there
        return None

    def _parsed(self, log: Log, records: Buffer, offset: int, most: int) -> _Read:
        """The batches that hold the next `most` offsets; more could not be given out."""
        batches, places = [], []
        headers: list[tuple[BatchHeader, memoryview]] = []
        position = 0
        for header, batch in iter_batches(records):
            batches.append((header.base_offset, header.last_offset))
            places.append((position, position + len(batch)))
            headers.append((header, batch))
            position += len(batch)
            if header.last_offset - offset >= most:
                break
        aborted = _aborted(log, offset, headers) if self._is_committed else []
        return _Read(records, offset, batches, places, aborted)

    def _give(self, shared: Shared, read: _Read | None, left: int, limit: int) -> int:
        """Give out what was read; answers how many records that were."""
        wanted, machine = self._wanted, shared.machine
        for _ in range(_LOOKS):
            if read is None:
                break
            acquired = machine.acquire(
                wanted.member_id,
                read.batches,
                fetch_offset=read.fetch_offset,
                max_records=left,
                batch_size=wanted.batch_size,
                mode=wanted.mode,
                now_ms=self._shares.now_ms(),
                aborted=read.aborted,
            )
            if acquired:
                self._shares.set_timer(shared)
                self._results[shared.key] = Fetched(_cut(read, acquired), acquired)
                return sum(last - first + 1 for first, last, _ in acquired)
            if not machine.can_acquire() or machine.next_fetch_offset() <= read.fetch_offset:
                break
            # All of it was aborted, or given up: what comes after may be for somebody.
            try:
                read = self._read(shared, limit, min_one_batch=True)
            except KafkaError as error:
                self._results[shared.key] = error
                break
        return 0


def _cut(read: _Read, acquired: list[Acquired]) -> Buffer:
    """The batches that hold what was acquired."""
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    needed = [
        place
        for place, batch in zip(read.places, read.batches, strict=True)
        if batch[1] >= first and batch[0] <= last
    ]
    return memoryview(read.records)[needed[0][0] : needed[-1][1]] if needed else b""


def _aborted(log: Log, offset: int, batches: list[tuple[BatchHeader, memoryview]]) -> list[tuple[int, int]]:
    """First and last offset of the batches that belong to aborted transactions."""
    last = batches[-1][0].last_offset
    starts = sorted(
        (each.first_offset, each.producer_id) for each in log.aborted_transactions(offset, last + 1)
    )
    if not starts:
        return []
    aborting: set[int] = set()
    found = []
    coming = 0
    for header, batch in batches:
        while coming < len(starts) and starts[coming][0] <= header.last_offset:
            aborting.add(starts[coming][1])
            coming += 1
        if header.producer_id not in aborting:
            continue
        if header.is_control:
            marker = read_end_transaction(batch) if header.record_count else None
            if marker is not None and not marker.commit:
                aborting.discard(header.producer_id)
        elif header.is_transactional:
            found.append((header.base_offset, header.last_offset))
    return found
