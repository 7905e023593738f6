"""A disk for tests: records what storage does to it, then shows what a power loss could have left.

`RecordingFiles` works on real files and writes down every change. From that record, `crash_images` builds
directory trees as they may look after the power went: what was synced is there; of the rest, anything may be
there, or not, or in parts.

The model, from what file systems really do:

- Bytes are safe once their file was synced (fsync or fdatasync). Before that, every 512-byte sector stands
  on its own: it holds what it held at the last sync, or what any later write put there. A file may be
  longer than the bytes that reached it; the difference reads as zeros.
- A name (created, renamed, removed) is safe once its directory was synced. Before that, the changes of one
  directory survive up to some point and no further: file systems with a journal keep their order. Different
  directories do not wait for each other.
- A sync that fails, or that nobody calls, promises nothing.

`FaultyFiles` makes chosen operations fail, with faults given as data.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import NamedTuple

from ottla.core.files import Buffer, Files
from ottla.storage.files import OsFiles

SECTOR = 512


# --- what was done -------------------------------------------------------------------------


class Create(NamedTuple):
    path: str
    file: int  # a file keeps its number under every name


class Write(NamedTuple):
    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    file: int
    length: int


class Sync(NamedTuple):
    file: int


class Rename(NamedTuple):
    source: str
    target: str


class Unlink(NamedTuple):
    path: str


class MakeDirectory(NamedTuple):
    path: str


class RemoveDirectory(NamedTuple):
    path: str


class SyncDirectory(NamedTuple):
    path: str


class Note(NamedTuple):
    """Not an operation: what the test wants to remember at this point, such as a promise it was given."""

    what: object


FileOperation = Create | Write | Truncate | Sync
NameOperation = Rename | Unlink | MakeDirectory | RemoveDirectory | SyncDirectory
Operation = FileOperation | NameOperation | Note


class RecordingFiles:
    """Real files under `root`, with every change of them recorded in `operations`.

    Nothing is really synced: the record knows what was asked for, and the machine is not going to lose power.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.operations: list[Operation] = []
        self._lock = threading.RLock()
        self._by_inode: dict[int, int] = {}
        self._by_descriptor: dict[int, int] = {}
        self._next = 0
        self._record_what_is_there()

    def note(self, what: object) -> None:
        with self._lock:
            self.operations.append(Note(what))

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        with self._lock:
            is_new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
            fd = os.open(path, flags, mode)
            inode = os.fstat(fd).st_ino
            if is_new:
                self._number(inode, path)
            number = self._by_inode.get(inode)
            if number is not None:  # a directory, or a file outside of the root, has none
                self._by_descriptor[fd] = number
                if flags & os.O_TRUNC and not is_new:
                    self.operations.append(Truncate(number, 0))
            return fd

    def close(self, fd: int) -> None:
        with self._lock:
            self._by_descriptor.pop(fd, None)
            os.close(fd)

    def write(self, fd: int, data: Buffer) -> int:
        with self._lock:
            written = os.write(fd, data)
            # Asked afterwards, so that it is right for descriptors in append mode too.
            self._wrote(fd, os.lseek(fd, 0, os.SEEK_CUR) - written, data, written)
            return written

    def writev(self, fd: int, buffers: Sequence[Buffer]) -> int:
        with self._lock:
            written = os.writev(fd, buffers)
            self._wrote(fd, os.lseek(fd, 0, os.SEEK_CUR) - written, b"".join(buffers), written)
            return written

    def pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        with self._lock:
            written = os.pwrite(fd, data, offset)
            self._wrote(fd, offset, data, written)
            return written

    def ftruncate(self, fd: int, length: int) -> None:
        with self._lock:
            os.ftruncate(fd, length)
            self.operations.append(Truncate(self._by_descriptor[fd], length))

    def fsync(self, fd: int) -> None:
        with self._lock:
            self.operations.append(Sync(self._by_descriptor[fd]))

    def fdatasync(self, fd: int) -> None:
        self.fsync(fd)

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            self._forget(target)
            os.rename(source, target)  # noqa: PTH104
            self.operations.append(Rename(self._relative(source), self._relative(target)))

    def unlink(self, path: str) -> None:
        with self._lock:
            self._forget(path)
            os.unlink(path)  # noqa: PTH108
            self.operations.append(Unlink(self._relative(path)))

    def mkdir(self, path: str) -> None:
        with self._lock:
            os.mkdir(path)  # noqa: PTH102
            self.operations.append(MakeDirectory(self._relative(path)))

    def rmdir(self, path: str) -> None:
        with self._lock:
            os.rmdir(path)  # noqa: PTH106
            self.operations.append(RemoveDirectory(self._relative(path)))

    def sync_directory(self, path: str) -> None:
        with self._lock:
            self.operations.append(SyncDirectory(self._relative(path)))

    def _wrote(self, fd: int, offset: int, data: Buffer, written: int) -> None:
        self.operations.append(Write(self._by_descriptor[fd], offset, bytes(memoryview(data)[:written])))

    def _number(self, inode: int, path: str) -> int:
        number = self._by_inode[inode] = self._next
        self._next += 1
        self.operations.append(Create(self._relative(path), number))
        return number

    def _forget(self, path: str) -> None:
        """The inode of a name that goes away may be given to another file."""
        if os.path.lexists(path):
            self._by_inode.pop(os.lstat(path).st_ino, None)

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def _record_what_is_there(self) -> None:
        for folder, folders, names in os.walk(self.root):
            for name in sorted(folders):
                self.operations.append(MakeDirectory(self._relative(f"{folder}/{name}")))
            for name in sorted(names):
                path = Path(folder, name)
                number = self._number(path.lstat().st_ino, str(path))
                self.operations += [Write(number, 0, path.read_bytes()), Sync(number)]
        for folder, _, _ in os.walk(self.root):
            self.operations.append(SyncDirectory(self._relative(folder)))


class UnsyncedFiles(OsFiles):
    """Real files without the wait for a disk: for tests that open and close many logs."""

    def fsync(self, fd: object) -> None:
        pass

    def fdatasync(self, fd: object) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass


# --- what a power loss leaves ----------------------------------------------------------------

Image = dict[str, bytes | None]  # relative path -> content, None for a directory; parents come first


@dataclass(eq=False, slots=True)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write | Truncate] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Folder:
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    # One entry per operation: the names it changed, None for a name that went away.
    pending: list[dict[str, _File | _Folder | None]] = field(default_factory=list)

    def change(self, **names: _File | _Folder | None) -> None:
        _update(self.names, names)
        self.pending.append(names)


class Disk:
    """What is on the platter and what is still on its way there, after some operations."""

    def __init__(self) -> None:
        self.root = _Folder()
        self._files: dict[int, _File] = {}

    def apply(self, operation: Operation) -> None:
        match operation:
            case Create(path, number):
                folder, name = self._find(path)
                self._files[number] = _File()
                folder.change(**{name: self._files[number]})
            case Write(number) | Truncate(number):
                self._files[number].pending.append(operation)
            case Sync(number):
                file = self._files[number]
                for change in file.pending:
                    _apply(file.durable, change)
                file.pending.clear()
            case Rename(source, target):
                folder, name = self._find(source)
                other, new_name = self._find(target)
                moved = folder.names[name]
                if folder is other:
                    folder.change(**{name: None, new_name: moved})
                else:
                    other.change(**{new_name: moved})
                    folder.change(**{name: None})
            case Unlink(path) | RemoveDirectory(path):
                folder, name = self._find(path)
                folder.change(**{name: None})
            case MakeDirectory(path):
                folder, name = self._find(path)
                folder.change(**{name: _Folder()})
            case SyncDirectory(path):
                folder, name = self._find(path)
                if name != ".":
                    found = folder.names[name]
                    assert isinstance(found, _Folder), path
                    folder = found
                folder.durable = dict(folder.names)
                folder.pending.clear()

    def kept(self) -> Image:
        """Everything reached the disk: the process was killed, the machine was not."""
        return self._build(_keep_all, lambda folder: folder.names)

    def lost(self) -> Image:
        """Nothing reached the disk but what had to."""
        return self._build(lambda file: bytes(file.durable), lambda folder: folder.durable)

    def image(self, rng: Random) -> Image:
        """Some of it reached the disk."""
        return self._build(lambda file: _some(file, rng), lambda folder: _some_names(folder, rng))

    def images(self, rng: Random, count: int) -> Iterator[Image]:
        """`count` images: the two extremes, then chance."""
        for number in range(count):
            yield self.kept() if number == 0 else self.lost() if number == 1 else self.image(rng)

    def _find(self, path: str) -> tuple[_Folder, str]:
        folder = self.root
        *parents, name = path.split("/")
        for parent in parents:
            found = folder.names[parent]
            assert isinstance(found, _Folder), path
            folder = found
        return folder, name

    def _build(
        self,
        content: Callable[[_File], bytes],
        entries: Callable[[_Folder], dict[str, _File | _Folder]],
    ) -> Image:
        image: Image = {}
        waiting: list[tuple[str, _Folder]] = [("", self.root)]
        while waiting:
            prefix, folder = waiting.pop()
            for name, node in entries(folder).items():
                if isinstance(node, _File):
                    image[prefix + name] = content(node)
                else:
                    image[prefix + name] = None
                    waiting.append((f"{prefix}{name}/", node))
        return image


def crash_images(operations: Iterable[Operation], upto: int, rng: Random, count: int = 4) -> Iterator[Image]:
    """Directory trees that a power loss right after the first `upto` operations may leave."""
    disk = Disk()
    for number, operation in enumerate(operations):
        if number == upto:
            break
        disk.apply(operation)
    yield from disk.images(rng, count)


def write_image(image: Image, directory: str) -> None:
    """Make the tree real, in a directory that is there and empty."""
    for path, content in image.items():
        if content is None:
            os.mkdir(f"{directory}/{path}")  # noqa: PTH102
        else:
            fd = os.open(f"{directory}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            if content:
                os.write(fd, content)
            os.close(fd)


def read_image(directory: str) -> Image:
    """The tree that is in a directory now, to compare it with another."""
    image: Image = {}
    for folder, folders, names in os.walk(directory):
        prefix = "" if folder == directory else os.path.relpath(folder, directory) + "/"
        image.update({prefix + name: None for name in sorted(folders)})
        image.update({prefix + name: Path(folder, name).read_bytes() for name in sorted(names)})
    return image


def _update(names: dict[str, _File | _Folder], change: dict[str, _File | _Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _some_names(folder: _Folder, rng: Random) -> dict[str, _File | _Folder]:
    names = dict(folder.durable)
    for change in folder.pending[: rng.randint(0, len(folder.pending))]:
        _update(names, change)
    return names


def _apply(data: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Write):
        _put(data, change.offset, change.data)
    else:
        del data[change.length :]
        data.extend(bytes(change.length - len(data)))


def _put(data: bytearray, offset: int, piece: Buffer) -> None:
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(piece)] = piece


def _keep_all(file: _File) -> bytes:
    data = bytearray(file.durable)
    for change in file.pending:
        _apply(data, change)
    return bytes(data)


def _some(file: _File, rng: Random) -> bytes:
    """One possible content of a file whose last writes were not synced."""
    data = bytearray(file.durable)
    if not file.pending:
        return bytes(data)
    # A truncation is a change of names and sizes and survives in order; what came after a lost one is lost.
    survivors = file.pending
    cuts = [at for at, change in enumerate(survivors) if isinstance(change, Truncate)]
    if cuts and rng.random() < 0.5:
        survivors = survivors[: rng.choice(cuts)]
    start = 0
    for at, change in enumerate(survivors):
        if isinstance(change, Truncate):
            _some_writes(data, survivors[start:at], rng)
            _apply(data, change)
            start = at + 1
    _some_writes(data, survivors[start:], rng)
    return bytes(data)


def _some_writes(data: bytearray, changes: Sequence[Write | Truncate], rng: Random) -> None:
    writes = [change for change in changes if isinstance(change, Write)]
    if not writes:
        return
    fate = rng.random()
    if fate < 0.2:
        return
    if fate < 0.35:
        for write in writes:
            _apply(data, write)
        return
    full_length = max(len(data), *(write.offset + len(write.data) for write in writes))
    if fate < 0.6:
        # The kernel wrote back in order and was interrupted in the middle of one write.
        torn = rng.randrange(len(writes))
        for write in writes[:torn]:
            _apply(data, write)
        _some_sectors(data, writes[torn : torn + 1], rng)
    else:
        _some_sectors(data, writes, rng)
    if rng.random() < 0.3:
        data.extend(bytes(full_length - len(data)))


def _some_sectors(data: bytearray, writes: Sequence[Write], rng: Random) -> None:
    """Each sector as it was, as it should be, or as it was in between: sectors do not wait for each other."""
    touching: dict[int, list[Write]] = {}
    for write in writes:
        for sector in range(write.offset // SECTOR, (write.offset + len(write.data) - 1) // SECTOR + 1):
            touching.setdefault(sector, []).append(write)
    for sector in sorted(touching):
        versions = touching[sector]
        fate = rng.random()
        survivors = 0 if fate < 0.4 else len(versions) if fate < 0.8 else rng.randint(0, len(versions))
        for write in versions[:survivors]:
            first = max(write.offset, sector * SECTOR)
            end = min(write.offset + len(write.data), (sector + 1) * SECTOR)
            _put(data, first, memoryview(write.data)[first - write.offset : end - write.offset])


# --- operations that fail -------------------------------------------------------------------


@dataclass(slots=True)
class Fault:
    """Which operation fails, and how.

    `on` is `open`, `write` (of any kind), `fsync` (or fdatasync), `ftruncate`, `rename`, `unlink`, `mkdir`,
    `rmdir` or `sync_directory`. The first `after` matching operations pass, the next `times` fail.
    """

    on: str
    path: str = "*"
    after: int = 0
    times: int = 1
    error: int = errno.EIO
    short: int | None = None  # a write takes this many bytes and reports so, instead of failing

    def strikes(self, on: str, path: str) -> bool:
        if on != self.on or not self.times or not fnmatch(path, self.path):
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


class FaultyFiles:
    """Another `Files` on which chosen operations fail: `disk.fail(on="fsync", path="*.log", after=3)`."""

    def __init__(self, files: Files, *faults: Fault) -> None:
        self.files = files
        self.faults = list(faults)
        self._paths: dict[int, str] = {}

    def fail(
        self,
        on: str,
        path: str = "*",
        *,
        after: int = 0,
        times: int = 1,
        error: int = errno.EIO,
        short: int | None = None,
    ) -> Fault:
        fault = Fault(on, path, after, times, error, short)
        self.faults.append(fault)
        return fault

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        self._meet("open", path)
        fd = self.files.open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        self._paths.pop(fd, None)
        self.files.close(fd)

    def write(self, fd: int, data: Buffer) -> int:
        fault = self._meet("write", self._paths[fd])
        return self.files.write(fd, data if fault is None else memoryview(data)[: fault.short])

    def writev(self, fd: int, buffers: Sequence[Buffer]) -> int:
        fault = self._meet("write", self._paths[fd])
        if fault is None:
            return self.files.writev(fd, buffers)
        return self.files.write(fd, b"".join(buffers)[: fault.short])

    def pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        fault = self._meet("write", self._paths[fd])
        return self.files.pwrite(fd, data if fault is None else memoryview(data)[: fault.short], offset)

    def ftruncate(self, fd: int, length: int) -> None:
        self._meet("ftruncate", self._paths[fd])
        self.files.ftruncate(fd, length)

    def fsync(self, fd: int) -> None:
        self._meet("fsync", self._paths[fd])
        self.files.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self._meet("fsync", self._paths[fd])
        self.files.fdatasync(fd)

    def rename(self, source: str, target: str) -> None:
        self._meet("rename", target)
        self.files.rename(source, target)

    def unlink(self, path: str) -> None:
        self._meet("unlink", path)
        self.files.unlink(path)

    def mkdir(self, path: str) -> None:
        self._meet("mkdir", path)
        self.files.mkdir(path)

    def rmdir(self, path: str) -> None:
        self._meet("rmdir", path)
        self.files.rmdir(path)

    def sync_directory(self, path: str) -> None:
        self._meet("sync_directory", path)
        self.files.sync_directory(path)

    def _meet(self, on: str, path: str) -> Fault | None:
        """Raises what a striking fault says; answers the fault when it only shortens a write."""
        for fault in self.faults:
            if fault.strikes(on, path):
                if fault.short is not None:
                    return fault
                raise OSError(fault.error, os.strerror(fault.error), path)
        return None
