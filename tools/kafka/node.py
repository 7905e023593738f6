"""One Apache Kafka node in KRaft combined mode: a process on loopback ports with a data directory."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.kafka.distribution import KafkaUnavailable, command
from tools.kafka.run import run_tool

START_SECONDS = 180.0
STOP_SECONDS = 120.0  # a node that is killed instead of stopped repairs its log, and says so


class KafkaNode:
    """`with KafkaNode() as kafka: kafka.bootstrap`.

    A fresh node formats a temporary directory, and removes it at the end. A node given `data_dir`
    starts on what is in there, as it is.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        node_id: int = 1,
        port: int | None = None,
        controller_port: int | None = None,
        properties: Mapping[str, str] | None = None,
        heap: str = "512m",
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ottla-kafka-"))
        self.fresh = data_dir is None
        self.data_dir = data_dir if data_dir is not None else self.home / "data"
        self.node_id = node_id
        self.port = port or free_port()
        self.controller_port = controller_port or free_port()
        self.extra = dict(properties or {})
        self.heap = heap
        self.log_file = self.home / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise KafkaUnavailable("this Apache Kafka node is not running")
        return self.process.pid

    def properties(self) -> dict[str, str]:
        plain = f"PLAINTEXT://127.0.0.1:{self.port}"
        controller = f"CONTROLLER://127.0.0.1:{self.controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{plain},{controller}",
            "advertised.listeners": f"{plain},{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.extra,
        }

    def write_properties(self) -> Path:
        path = self.home / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
        return path

    def format(self) -> None:
        config = str(self.write_properties())
        cluster = run_tool("kafka.tools.StorageTool", "random-uuid").strip().splitlines()[-1]
        run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", config, "--standalone")

    def start(self) -> None:
        """Returns once the node says that it has started."""
        self.launch()
        self.wait_until_started()

    def launch(self) -> None:
        """Begins to start; `log()` and the port tell how far it is."""
        if self.fresh and not (self.data_dir / "meta.properties").exists():
            self.format()
        config = str(self.write_properties())
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                command("kafka.Kafka", config, heap=self.heap, quiet=False),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_started(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while b"Kafka Server started" not in self.log_file.read_bytes():
            if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                text = self.log()
                self.kill()
                raise KafkaUnavailable(f"Apache Kafka did not start on {self.data_dir}:\n{text[-6000:]}")
            time.sleep(0.05)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def stop(self) -> None:
        """A controlled shutdown, which writes the clean shutdown file."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

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
        self.stop()
        self.remove()


def complaints(log: str) -> list[str]:
    """What Kafka says while it loads: a log that it had to repair was not written as it should be."""
    harmless = (
        "to exist, but it was missing. Creating",  # said of partitions that a topic grows by
        "EventPerformanceMonitor",  # a busy machine
    )
    lines = log.splitlines()
    found = [number for number, line in enumerate(lines) if " ERROR " in line or "orrupt" in line]
    # A line of the trace that follows an error says more than the request it is about.
    return [
        "\n".join(line[:400] for line in lines[number : number + 2])
        for number in found
        if not any(words in lines[number] for words in harmless)
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
