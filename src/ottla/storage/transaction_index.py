"""`.txnindex`: the transactions that were aborted by a marker in a segment.

An entry is 34 bytes: version 0, the producer, the first offset of the transaction, the offset of the abort
marker, and the last stable offset as of the abort. Entries are in the order of their markers. The file
exists only in segments that have an abort.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.storage.handles import Handles
from ottla.storage.index_file import CorruptIndex, IndexFile

ENTRY: Final = Struct(">hqqqq")
VERSION: Final = 0


class AbortedEntry(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_entries", "base_offset", "file")

    def __init__(self, handles: Handles, path: str, base_offset: int) -> None:
        self.file = IndexFile(handles, path, ENTRY)
        self.base_offset = base_offset
        # None until the file was looked at.
        self._entries: list[AbortedEntry] | None = None

    @property
    def exists(self) -> bool:
        return bool(self._entries) or Path(self.file.handle.path).exists()

    def entries(self) -> list[AbortedEntry]:
        """The aborted transactions. Raises `CorruptIndex` when the file cannot be right."""
        if self._entries is None:
            entries = self._load() if self.exists else []
            self._entries = entries
            self.file.handle.close()
        return self._entries

    def _load(self) -> list[AbortedEntry]:
        fd = self.file.handle.get()
        size = os.fstat(fd).st_size
        if size % ENTRY.size:
            raise CorruptIndex(f"{self.file.handle.path} has {size} bytes, not a multiple of {ENTRY.size}")
        entries = []
        last = self.base_offset - 1
        for version, *fields in ENTRY.iter_unpack(os.pread(fd, size, 0)):
            entry = AbortedEntry(*fields)
            if version != VERSION or entry.last_offset <= last or entry.first_offset > entry.last_offset:
                raise CorruptIndex(f"{self.file.handle.path} has an impossible entry {entry}")
            last = entry.last_offset
            entries.append(entry)
        return entries

    def append(self, entry: AbortedEntry) -> None:
        entries = self.entries()
        if not entries:
            self.file.create()
        self.file.append(ENTRY.pack(VERSION, *entry))
        entries.append(entry)

    def truncate(self, end_offset: int) -> None:
        """Forget the aborts whose marker is at or after `end_offset`."""
        entries = self.entries()
        if entries and entries[-1].last_offset >= end_offset:
            kept = [entry for entry in entries if entry.last_offset < end_offset]
            self.file.truncate(len(kept))
            self._entries = kept

    def clear(self) -> None:
        if self.exists:
            self.file.create()
        self._entries = []
