"""Syncs of files that the kernel carries out by itself: many at once, and without a thread of ours.

Linux takes a list of files to sync in one call (`io_submit` of `IOCB_CMD_FDSYNC`, since 4.18), syncs them
side by side, so that they share the commits of the file system's journal, and counts those that are done in
an eventfd, which the loop can watch. With threads a sync costs several switches between them, and each that
is done has to take the interpreter from the loop.

What a sync promises and how it fails are those of `fdatasync`. Not every system can do it this way, and a
sandbox may forbid it: then there is none (`open_kernel_sync`), or it takes nothing (`KernelSync.begin`), and
threads do it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from ottla.storage.files import is_of_the_disk

# As many syncs are under way at once at most.
DEPTH: Final = 256

FDSYNC: Final = 3
TELL_EVENTFD: Final = 1


class Calls(NamedTuple):
    """Numbers of system calls that the C library has no functions for."""

    io_setup: int
    io_destroy: int
    io_submit: int
    io_getevents: int


CALLS: Final = {"x86_64": Calls(206, 207, 209, 208), "aarch64": Calls(0, 1, 2, 4)}


class Request(ctypes.Structure):
    """`struct iocb` of linux/aio_abi.h, little-endian."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_int32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("fd", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("eventfd", ctypes.c_uint32),
    )


class Event(ctypes.Structure):
    """`struct io_event` of linux/aio_abi.h."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("request", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("second_result", ctypes.c_int64),
    )


class Done(NamedTuple):
    fd: int
    error: OSError | None


class KernelSync:
    """Used on one thread. Raises OSError if the kernel refuses."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        # Not CDLL, which would let go of the interpreter and have to get it back: of these calls only the one
        # of `close` waits.
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        self._context = ctypes.c_ulong(0)
        # Readable while there is something to take.
        self.eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        if self._call(calls.io_setup, DEPTH, ctypes.byref(self._context)):
            refused = _last_error()
            os.close(self.eventfd)
            raise refused
        # The kernel copies requests while they are submitted, so the same ones serve every time.
        self._requests = (Request * DEPTH)()
        self._pointers = (ctypes.POINTER(Request) * DEPTH)()
        for number, request in enumerate(self._requests):
            request.opcode, request.flags, request.eventfd = FDSYNC, TELL_EVENTFD, self.eventfd
            self._pointers[number] = ctypes.pointer(request)
        self._events = (Event * DEPTH)()
        self._under_way = 0

    def begin(self, fds: Sequence[int]) -> int:
        """Begin to sync files, each of which is not under way. As many as this returns were taken, the first
        ones; they stay open until they are done."""
        count = min(len(fds), DEPTH - self._under_way)
        for fd, request in zip(fds[:count], self._requests, strict=False):
            request.fd = request.data = fd
        taken: int = self._call(self._calls.io_submit, self._context, count, self._pointers)
        if taken < 0:
            return 0  # the first was refused, for reasons that say nothing about what is on the disk
        self._under_way += taken
        return taken

    def take_done(self) -> list[Done]:
        """The files whose sync is over since the last call; those with an error may not be on the disk."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.eventfd)  # before the look: what is done after it makes it readable again
        count = self._call(self._calls.io_getevents, self._context, 0, DEPTH, self._events, None)
        if count < 0:
            error = _last_error()
            if error.errno == errno.EINTR:
                return []  # how the kernel says "none" when a signal comes meanwhile
            raise error
        self._under_way -= count
        done = []
        for number in range(count):
            event = self._events[number]
            result = event.result
            done.append(Done(event.data, OSError(-result, os.strerror(-result)) if result else None))
        return done

    def close(self) -> None:
        """Waits for what is under way, and some 30 ms even if nothing is. May be called in any thread."""
        os.close(self.eventfd)
        ctypes.CDLL(None).syscall(self._calls.io_destroy, self._context)


def open_kernel_sync() -> KernelSync | None:
    """None where the kernel does not sync by itself. Raises OSError if no more files can be opened."""
    calls = CALLS.get(platform.machine())
    if sys.platform != "linux" or sys.byteorder != "little" or calls is None or sys.maxsize < 1 << 32:
        return None
    try:
        kernel = KernelSync(calls)
    except OSError as error:
        if not is_of_the_disk(error):
            raise
        return None
    try:
        kernel.take_done()  # a sandbox that forbids this must not be found out when syncs are under way
    except OSError:
        kernel.close()
        return None
    return kernel


def _last_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
