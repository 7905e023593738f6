"""The batches of a `.log` file or of a `.checkpoint`, one after the other, and whatever is not one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ottla.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, crc_ok, read_header, read_records
from ottla.protocol.errors import KafkaError

READ_BYTES: Final = 256 * 1024
MAGIC_AT: Final = 16
LARGEST_BATCH: Final = 1 << 30


class FoundBatch(NamedTuple):
    """A batch as its header describes it, and where in the file it is."""

    position: int
    header: BatchHeader

    @property
    def end_position(self) -> int:
        return self.position + self.header.size


class Walk:
    """A walk over a file by headers alone. What stops it is said in `problem`, and where in `end`."""

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.end = start
        self.problem: str | None = None
        # Zeros after the last batch: space that was set aside and not written yet.
        self.unwritten = 0

    def __iter__(self) -> Iterator[FoundBatch]:
        with self.path.open("rb") as file:
            fd = file.fileno()
            block, block_at = b"", self.end
            while self.end < self.size:
                at = self.end - block_at
                if at + HEADER_SIZE > len(block):
                    block, block_at, at = os.pread(fd, READ_BYTES, self.end), self.end, 0
                found = self._batch(block, at)
                if found is None:
                    self._explain(fd, block[at:])
                    return
                yield found
                self.end = found.end_position
                if self.end - block_at > len(block):
                    block, block_at = b"", self.end

    def _batch(self, block: bytes, at: int) -> FoundBatch | None:
        try:
            header = read_header(block, at)
        except KafkaError:
            return None
        if header.last_offset_delta < 0 or self.end + header.size > self.size:
            return None
        return FoundBatch(self.end, header)

    def _explain(self, fd: int, block: bytes) -> None:
        """Why there is no batch where the walk stands."""
        left = self.size - self.end
        if not block.strip(b"\0") and _all_zeros(fd, self.end, self.size):
            self.unwritten = left
            return
        if len(block) > MAGIC_AT and block[MAGIC_AT] in (0, 1) and any(block[:LOG_OVERHEAD]):
            self.problem = (
                f"at byte {self.end} stand messages of format {block[MAGIC_AT]}, from before Kafka 0.11, "
                "which Kafka 4 does not read either"
            )
            return
        length = int.from_bytes(block[8:12], "big", signed=True) if len(block) >= LOG_OVERHEAD else -1
        if left < HEADER_SIZE or (
            self.end + LOG_OVERHEAD + length > self.size and 0 < length < LARGEST_BATCH
        ):
            self.problem = (
                f"the last {left} bytes, from byte {self.end} on, are the beginning of a batch whose end is "
                "missing: a write that was cut short; the next start of the broker cuts it off"
            )
        else:
            self.problem = (
                f"at byte {self.end} there is no batch, nor anything that could be followed further"
            )


def _all_zeros(fd: int, start: int, end: int) -> bool:
    for position in range(start, end, READ_BYTES):
        if os.pread(fd, min(READ_BYTES, end - position), position).strip(b"\0"):
            return False
    return True


def read_batch(path: Path, found: FoundBatch) -> bytes:
    with path.open("rb") as file:
        return os.pread(file.fileno(), found.header.size, found.position)


def batch_problem(data: bytes) -> str | None:
    """What is wrong with the bytes of a batch; None when its checksum and every record are right."""
    try:
        if not crc_ok(data):
            return "the checksum (CRC-32C) does not fit the bytes: they are not what was written"
        read_records(data)
    except KafkaError as error:
        return f"the checksum is right but the records are not: {error}"
    return None
