"""Starting, and doing nothing.

Cold is a new directory, and program files that are not in the page cache (as far as nobody else uses them);
warm is a directory that has been used, and a program that has just run. Apache Kafka's directory is formatted
by a program of its own before the first start, which is part of a cold start.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from bench.brokers import Server
from bench.wire import create_topic
from bench.workload import Family, Figure, Selection, Site, Workload
from tools.kafka.distribution import jars

IDLE_SECONDS = 5.0


def workloads() -> Iterator[Workload]:
    yield Workload(Family.BOOT, "boot", boot, Selection.SMOKE, alone=True)


def boot(site: Site) -> list[Figure]:
    with site.fresh() as server:
        forget_program(server)
        formatted = server.format()
        cold = server.start()
        server.stop()
        began = time.monotonic()
        warm = server.start()
        create_topic(server.subject.address, "first")
        first_record = time.monotonic() - began
        # What a start leaves to be done later is done, and the topic of `create_topic` is there.
        time.sleep(max(0.2, 2 * site.effort))
        cpu = server.subject.cpu_seconds()
        seconds = max(0.2, IDLE_SECONDS * site.effort)
        time.sleep(seconds)
        idle_cpu = (server.subject.cpu_seconds() - cpu) / seconds
        memory = server.subject.resident_megabytes()
    return [
        Figure("cold start to first answer, formatting included", "s", formatted + cold),
        Figure("cold start to first answer, formatting apart", "s", cold),
        Figure("warm start to first answer", "s", warm),
        Figure("warm start to first record in a new topic", "s", first_record),
        Figure("memory, idle", "MB", memory),
        Figure("CPU, idle", "ms/s", idle_cpu * 1e3),
    ]


def forget_program(server: Server) -> None:
    """Asks the kernel to drop the program's files from the page cache. Needs no rights, promises nothing."""
    if server.setup.is_ottla:
        source = Path(__file__).resolve().parents[1] / "src"
        folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")] + [source]
        files = [Path(sys.executable).resolve()]
    else:
        program = Path(shutil.which("java") or "java").resolve()
        folders, files = [jars(), program.parents[1]], []
    for folder in folders:
        files += [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
