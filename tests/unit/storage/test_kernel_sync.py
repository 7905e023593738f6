"""Syncs without a thread: what the kernel takes, and what it says when they are done."""

from __future__ import annotations

import os
import platform
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.storage import kernel_sync
from ottla.storage.kernel_sync import CALLS, DEPTH, Calls, KernelSync, open_kernel_sync

LONG_S = 30
NO_SUCH_CALL = 1 << 20


def opened_kernel() -> KernelSync:
    """Skips where the system has no such calls or a sandbox refuses them, and nowhere else."""
    calls = CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if calls is None:
        pytest.skip(f"no syncs by the kernel on {sys.platform}, {platform.machine()}")
    try:
        KernelSync(calls).close()
    except OSError as refusal:
        pytest.skip(f"this kernel does not sync by itself: {refusal}")
    kernel = open_kernel_sync()
    assert kernel is not None
    return kernel


@pytest.fixture
def kernel() -> Iterator[KernelSync]:
    opened = opened_kernel()
    yield opened
    opened.close()


@pytest.fixture
def fds(tmp_path: Path) -> Iterator[list[int]]:
    opened = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(DEPTH + 1)]
    for fd in opened:
        os.write(fd, b"records")
    yield opened
    for fd in opened:
        os.close(fd)


def take(kernel: KernelSync, count: int) -> dict[int, OSError | None]:
    """What is done, once that many are."""
    done: dict[int, OSError | None] = {}
    while len(done) < count:
        assert select.select([kernel.eventfd], [], [], LONG_S)[0]
        done.update(kernel.take_done())
    return done


def open_files() -> set[str]:
    folder = Path("/proc/self/fd")
    return {each.name for each in folder.iterdir()} if folder.is_dir() else set()


def test_every_file_is_reported_once_it_is_synced(kernel: KernelSync, fds: list[int]) -> None:
    some = fds[:5]
    for _ in range(2):
        assert kernel.begin(some) == 5
        assert take(kernel, 5) == dict.fromkeys(some)
    assert kernel.take_done() == []
    assert not select.select([kernel.eventfd], [], [], 0)[0]


def test_no_more_are_under_way_than_there_is_room_for(kernel: KernelSync, fds: list[int]) -> None:
    assert kernel.begin(fds) == DEPTH
    assert kernel.begin(fds[DEPTH:]) == 0
    assert take(kernel, DEPTH) == dict.fromkeys(fds[:DEPTH])
    assert kernel.begin(fds[DEPTH:]) == 1
    assert take(kernel, 1) == {fds[DEPTH]: None}


def test_what_cannot_be_synced_and_all_after_it_is_not_taken(kernel: KernelSync, fds: list[int]) -> None:
    reading, writing = os.pipe()
    try:
        assert kernel.begin([fds[0], writing, fds[1]]) == 1
        assert kernel.begin([writing, fds[1]]) == 0
        assert take(kernel, 1) == {fds[0]: None}
    finally:
        os.close(reading)
        os.close(writing)


def test_closing_waits_for_what_is_under_way(fds: list[int]) -> None:
    kernel = opened_kernel()
    kernel.begin(fds)
    kernel.close()
    with pytest.raises(OSError):
        os.fstat(kernel.eventfd)


def test_a_signal_is_no_failure(kernel: KernelSync) -> None:
    signals: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: signals.append(number))
    until = time.monotonic() + 0.2
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
        while time.monotonic() < until:
            assert kernel.take_done() == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert signals


def test_there_is_none_where_the_kernel_knows_no_such_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Calls(*[NO_SUCH_CALL] * 4)
    monkeypatch.setattr(kernel_sync, "CALLS", dict.fromkeys(kernel_sync.CALLS, unknown))
    assert open_kernel_sync() is None
    monkeypatch.setattr(kernel_sync, "CALLS", {})
    assert open_kernel_sync() is None


def test_there_is_none_where_a_sandbox_forbids_some_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()
    for forbidden in ("io_setup", "io_getevents"):
        some = {
            machine: calls._replace(**{forbidden: NO_SUCH_CALL})
            for machine, calls in kernel_sync.CALLS.items()
        }
        with monkeypatch.context() as patch:
            patch.setattr(kernel_sync, "CALLS", some)
            assert open_kernel_sync() is None
    assert open_files() <= before
