"""Replaying a coordinator's log into a machine, in slices that leave requests their turn."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from ottla.core.files import Buffer
from ottla.core.outcome import Applied, LogRecord
from ottla.protocol.batch import BatchHeader, iter_batches, read_records
from ottla.protocol.control import read_end_transaction
from ottla.storage.log import Log

# Bytes read at a time, as offsets.load.buffer.size has it; more only if a batch is larger.
READ_BYTES: Final = 5 * 1024 * 1024
# Records applied before other work of the loop gets its turn: a few milliseconds.
SLICE: Final = 250


class Replayed(Protocol):
    """A machine, as far as its log goes."""

    def apply(self, record: LogRecord, at: Applied) -> None: ...
    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None: ...


async def replay(log: Log, machine: Replayed, turn: asyncio.Lock) -> None:
    """Apply the whole log. What is appended meanwhile, such as the marker of a transaction, is in it too.

    `turn` is shared by all who replay at the same time, so that one slice runs between two looks at the
    sockets, however many partitions are being loaded.
    """
    offset = log.start_offset
    while offset < log.end_offset:
        offset = max(offset, log.start_offset)
        end_offset = log.end_offset
        data = log.read(offset, READ_BYTES, end_offset)
        if not data:
            offset = end_offset  # compaction has left nothing up to there
        else:
            offset = await _apply_batches(data, offset, machine, turn)


async def _apply_batches(data: Buffer, offset: int, machine: Replayed, turn: asyncio.Lock) -> int:
    """Answers where the batches end."""
    batches = iter_batches(data)
    while True:
        async with turn:
            room = SLICE
            for header, batch in batches:
                room -= max(1, apply_batch(header, batch, offset, machine))
                offset = header.last_offset + 1
                if room <= 0:
                    break
            else:
                return offset
            await asyncio.sleep(0)


def apply_batch(header: BatchHeader, batch: memoryview, first_offset: int, machine: Replayed) -> int:
    """Apply what a batch has from `first_offset` on; answers how many records it holds."""
    if header.is_control:
        marker = read_end_transaction(batch) if header.record_count else None
        if marker is not None:
            machine.end_transaction(marker.producer_id, marker.producer_epoch, marker.commit)
        return 1
    producer_id, producer_epoch = -1, -1
    if header.is_transactional:
        producer_id, producer_epoch = header.producer_id, header.producer_epoch
    apply = machine.apply
    for record in read_records(batch):
        # The log may begin inside of its first batch; and a record without a key is nobody's.
        if record.offset >= first_offset and record.key is not None:
            apply(
                LogRecord(record.key, record.value),
                Applied(record.offset, record.timestamp, producer_id, producer_epoch),
            )
    return header.record_count
