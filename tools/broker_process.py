"""Ottla as a process of its own: for tests that kill it, benchmarks that measure it, and Kafka's check."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 30.0
STOP_SECONDS = 30.0


class BrokerDidNotStart(RuntimeError):
    """The process ended, or answered nothing, within the time it had."""


class BrokerProcess:
    """`with BrokerProcess() as broker: broker.bootstrap`; the same port after every restart."""

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        port: int | None = None,
        settings: Sequence[str] = (),
        command: Sequence[str] = (sys.executable, "-m", "ottla", "serve"),
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ottla-broker-"))
        self.data_dir = data_dir if data_dir is not None else self.home / "data"
        self.port = port or free_port()
        self.settings = tuple(settings)
        self.command = tuple(command)
        self.log_file = self.home / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise BrokerDidNotStart("the broker is not running")
        return self.process.pid

    def arguments(self) -> list[str]:
        assignments = [word for setting in self.settings for word in ("--set", setting)]
        return [*self.command, "--port", str(self.port), "--data-dir", str(self.data_dir), *assignments]

    def start(self) -> float:
        """Returns the seconds from the start of the process to its first answer."""
        began = time.monotonic()
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.arguments(), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > began + START_SECONDS:
                self.kill()
                raise BrokerDidNotStart(f"{' '.join(self.arguments())}:\n{self.log()[-6000:]}")
            time.sleep(0.005)
        return time.monotonic() - began

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def stop(self) -> int:
        """SIGTERM, as a service manager sends it; returns the exit code."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self.remove()


def answers(port: int) -> bool:
    """Whether an ApiVersions request is answered: the first thing that every client sends."""
    frame = struct.pack(">hhih", 18, 0, 1, -1)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        return len(connection.recv(8, socket.MSG_WAITALL)) == 8
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
