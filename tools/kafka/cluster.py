"""Several Apache Kafka nodes in one cluster, with the face of `ottla.testing.cluster.TestCluster`.

Tests that kill nodes of a cluster are first run against this one: what it does is what they may expect.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ottla.testing.cluster import Route, TestCluster, TestNode
from tools.kafka.node import KafkaNode
from tools.kafka.run import run_tool


class KafkaMember(TestNode):
    """One node of the cluster, whose process is a `KafkaNode`."""

    def __init__(self, id: int, root: Path, properties: Mapping[str, str], port: int) -> None:
        super().__init__(id, root, properties, port)
        self.kafka = KafkaNode(root / "data", node_id=id, port=port, properties=properties)

    @property
    def is_running(self) -> bool:
        return self.kafka.process is not None and self.kafka.process.poll() is None and not self._paused

    @property
    def pid(self) -> int:
        return self.kafka.pid

    @property
    def log_text(self) -> str:
        return self.kafka.log()

    def start(self) -> None:
        if self.kafka.process is None:
            self.kafka.start()

    def stop(self) -> None:
        self.kafka.stop()

    def kill(self) -> None:
        self.kafka.kill()
        self._paused = False

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        self._paused = True

    def close(self) -> None:
        self.kafka.kill()
        self.kafka.remove()


class KafkaCluster(TestCluster):
    """`with KafkaCluster() as cluster:`; a start takes some ten seconds on two cores."""

    node_class = KafkaMember

    def __init__(
        self, nodes: int = 3, properties: Mapping[str, str] | None = None, *, route: Route | None = None
    ) -> None:
        known = {name: value for name, value in (properties or {}).items() if not name.startswith("ottla.")}
        super().__init__(nodes, known, route=route)

    def start(self) -> None:
        if not self.nodes:
            self._prepare()
            self._format()
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: node.start(), self.nodes))

    def stop(self) -> None:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: node.stop(), self.nodes))

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def _format(self) -> None:
        """The storage tool makes the checkpoint that the features are in; one cluster id for all."""
        cluster = self.cluster_id

        def format(node: TestNode) -> None:
            assert isinstance(node, KafkaMember)
            (node.kafka.data_dir / "meta.properties").unlink()
            config = str(node.kafka.write_properties())
            run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", config)

        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(format, self.nodes))
