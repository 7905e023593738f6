"""`leader-epoch-checkpoint`: at which offset each leader of a partition began to write.

    0                   the format's version
    2                   how many lines follow
    0 0                 leader epoch, its first offset
    3 4711

Followers compare it with their leader's to find where two logs part. Both columns grow from line to line.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Final

from ottla.core.files import Files
from ottla.storage.files import is_of_the_disk, write_atomically, write_file

FILE_NAME: Final = "leader-epoch-checkpoint"
UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1
VERSION: Final = 0


class CorruptEpochs(ValueError):
    """The checkpoint file does not read as one."""


def parse_epochs(data: bytes) -> list[tuple[int, int]]:
    """The lines (epoch, start offset) of a checkpoint file; an empty file has none."""
    try:
        numbers = [[int(word) for word in line.split()] for line in data.decode("ascii").splitlines()]
    except ValueError as error:
        raise CorruptEpochs(f"not a number: {error}") from None
    if not numbers:
        return []
    if numbers[0] != [VERSION] or numbers[1:2] != [[len(numbers) - 2]]:
        raise CorruptEpochs(f"the first lines are {numbers[:2]}, which do not fit {len(numbers)} lines")
    entries = numbers[2:]
    if any(len(entry) != 2 or min(entry) < 0 for entry in entries):
        raise CorruptEpochs("a line is not 'epoch offset'")
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(entries)):
        raise CorruptEpochs("lines are out of order")
    return [(epoch, offset) for epoch, offset in entries]


def format_epochs(entries: list[tuple[int, int]]) -> bytes:
    lines = [f"{VERSION}\n{len(entries)}\n"] + [f"{epoch} {offset}\n" for epoch, offset in entries]
    return "".join(lines).encode()


class Epochs:
    """The leader epochs of one log, in memory and in their file."""

    __slots__ = ("_epochs", "_files", "_offsets", "_saved", "durable", "latest", "path", "stale", "unsynced")

    def __init__(
        self, files: Files, path: str, entries: list[tuple[int, int]], saved: bytes | None = None
    ) -> None:
        self._files = files
        self.path = path
        # What the file says, None when there is none.
        self._saved = saved
        self._epochs = [epoch for epoch, _ in entries]
        self._offsets = [offset for _, offset in entries]
        self.latest = self._epochs[-1] if entries else UNDEFINED_EPOCH
        # A log of which nothing was synced is scanned from its start after a crash, which gives the epochs
        # too. Until then the file need not be durable, and creating a thousand partitions need not sync a
        # thousand files; the first flush of the log syncs the file and sets `durable`.
        self.durable = False
        self.unsynced = False
        # Whether the file lags behind. Opening a log puts that right: it forgets what was truncated, and what
        # is after the recovery point it finds in the batches. So there is no hurry, and leading thousands of
        # partitions anew need not sync thousands of files.
        self.stale = False

    @classmethod
    def load(cls, files: Files, directory: str) -> Epochs:
        """Raises `CorruptEpochs`."""
        path = f"{directory}/{FILE_NAME}"
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            return cls(files, path, [])
        return cls(files, path, parse_epochs(data), data)

    @classmethod
    def empty(cls, files: Files, directory: str) -> Epochs:
        return cls(files, f"{directory}/{FILE_NAME}", [])

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._offsets, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` writes from `start_offset` on. A leader that wrote nothing is forgotten.

        The file of a log that has been synced follows with the next flush.
        """
        if self.assign_in_memory(epoch, start_offset):
            self.stale = True
            if not self.durable:
                try:
                    self.save()
                except OSError as error:
                    # While no more files can be opened it has to follow, too.
                    if is_of_the_disk(error):
                        raise

    def assign_in_memory(self, epoch: int, start_offset: int) -> bool:
        """As `assign`, for a recovery that saves once at its end; whether anything changed."""
        assert epoch >= 0 and start_offset >= 0, f"epoch {epoch} at {start_offset}"
        if self._epochs and epoch == self.latest and start_offset >= self._offsets[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._offsets[-1] >= start_offset):
            self._epochs.pop()
            self._offsets.pop()
        self._epochs.append(epoch)
        self._offsets.append(start_offset)
        self.latest = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The greatest known epoch up to `epoch` and where it ends, or (-1, -1) for an epoch after all known.

        An epoch before all known gets itself and the start of the first known one: its records are gone.
        """
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self._epochs, epoch)
        floor = self._epochs[following - 1] if following else epoch
        return floor, self._offsets[following]

    def epoch_for(self, offset: int) -> int:
        """The epoch that wrote `offset`, -1 when unknown."""
        at = bisect_right(self._offsets, offset)
        return self._epochs[at - 1] if at else UNDEFINED_EPOCH

    def truncate_to(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after `end_offset`."""
        if self._offsets and self._offsets[-1] >= end_offset:
            while self._offsets and self._offsets[-1] >= end_offset:
                self._epochs.pop()
                self._offsets.pop()
            self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
            self.stale = True

    def start_from(self, start_offset: int) -> None:
        """Forget the epochs that end before `start_offset`; the one that wrote it now begins there."""
        before = bisect_right(self._offsets, start_offset)
        if before and (before > 1 or self._offsets[0] != start_offset):
            del self._epochs[: before - 1], self._offsets[: before - 1]
            self._offsets[0] = start_offset
            self.stale = True

    def clear(self) -> None:
        if self._epochs:
            self._epochs.clear()
            self._offsets.clear()
            self.latest = UNDEFINED_EPOCH
            self.stale = True

    def take_unsaved(self, end_offset: int) -> bytes | None:
        """What the file of a log that ends there should say, for a flush to write; None if it does.

        A leader that has written nothing yet would be forgotten when the log is opened, so it has time.
        """
        entries = [(epoch, offset) for epoch, offset in self.entries if offset < end_offset]
        self.stale = len(entries) < len(self._epochs)
        data = format_epochs(entries)
        if data == self._saved:
            return None
        self._saved = data
        return data

    def save(self) -> None:
        data = format_epochs(self.entries)
        if data == self._saved:
            # Opening a log forgets a leader that wrote nothing, and that leader is often the next one, too.
            pass
        elif self.durable:
            write_atomically(self._files, self.path, data)
        else:
            write_file(self._files, self.path + ".tmp", data, sync=False)
            self._files.rename(self.path + ".tmp", self.path)
            self.unsynced = True
        self._saved = data
        self.stale = False
