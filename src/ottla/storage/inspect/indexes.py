"""The entries of `.index`, `.timeindex` and `.txnindex` files, as they are on disk."""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.storage import offset_index, time_index, transaction_index
from ottla.storage.transaction_index import AbortedEntry

BLOCK_BYTES: Final = 64 * 1024


class IndexEntries(NamedTuple):
    """The entries of an index, and the zeros after them that Kafka sets aside for more."""

    entries: list[tuple[int, int]]
    unused_bytes: int
    problem: str | None = None


def read_offset_index(path: Path, base_offset: int) -> IndexEntries:
    """Entries (last offset of a batch, position of the batch)."""
    raw, unused, problem = _read(path, offset_index.ENTRY)
    return IndexEntries([(base_offset + relative, position) for relative, position in raw], unused, problem)


def read_time_index(path: Path, base_offset: int) -> IndexEntries:
    """Entries (greatest timestamp so far, last offset of the batch that has it)."""
    raw, unused, problem = _read(path, time_index.ENTRY)
    return IndexEntries([(timestamp, base_offset + relative) for timestamp, relative in raw], unused, problem)


def read_transaction_index(path: Path) -> tuple[list[AbortedEntry], str | None]:
    """The aborted transactions, and what is wrong with the file."""
    data = path.read_bytes()
    whole = len(data) - len(data) % transaction_index.ENTRY.size
    problem = None
    if whole != len(data):
        problem = (
            f"{len(data)} bytes are not a multiple of {transaction_index.ENTRY.size}, the size of an entry"
        )
    entries = []
    for version, *fields in transaction_index.ENTRY.iter_unpack(data[:whole]):
        if version != transaction_index.VERSION:
            problem = problem or f"an entry has version {version}, which is unknown"
        entries.append(AbortedEntry(*fields))
    return entries, problem


def _without_padding(path: Path, size: int) -> bytes:
    """The content without the zeros at its end: an index of a running Kafka has ten megabytes of them."""
    zeros = bytes(BLOCK_BYTES)
    with path.open("rb") as file:
        while size > 0:
            start = max(0, size - BLOCK_BYTES)
            block = os.pread(file.fileno(), size - start, start)
            if block != zeros[: len(block)]:
                return os.pread(file.fileno(), start, 0) + block.rstrip(b"\0")
            size = start
    return b""


def _read(path: Path, entry: Struct) -> tuple[list[tuple[int, int]], int, str | None]:
    size = path.stat().st_size
    whole = size - size % entry.size
    problem = None
    if whole != size:
        problem = f"{size} bytes are not a multiple of {entry.size}, the size of an entry"
    data = _without_padding(path, whole)
    count = -(-len(data) // entry.size)
    # An index may begin with an entry of zeros, and have no other.
    if count == 0 and whole == entry.size:
        count = 1
    data = data.ljust(count * entry.size, b"\0")
    entries = [(a, b) for a, b in entry.iter_unpack(data)]
    return entries, whole - count * entry.size, problem
