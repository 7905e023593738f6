"""Apache Kafka nodes in a cluster, alone or beside Ottla's, with the face of `ottla.testing.cluster`.

Tests that kill nodes of a cluster are first run against Kafka's own: what it does is what they may expect.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ottla.testing.cluster import Route, TestCluster, TestNode
from tools.kafka.node import KafkaNode
from tools.kafka.run import run_tool


class KafkaMember(TestNode):
    """One node of the cluster, whose process is a `KafkaNode`."""

    def __init__(self, id: int, root: Path, properties: Mapping[str, str], port: int) -> None:
        super().__init__(id, root, properties, port)
        known = {name: value for name, value in properties.items() if not name.startswith("ottla.")}
        known.setdefault("advertised.listeners", known["listeners"])
        self.kafka = KafkaNode(root / "data", node_id=id, port=port, properties=known)

    def format(self, cluster_id: str) -> None:
        """By Kafka's tool, which also writes down the features that a new cluster has."""
        (self.kafka.data_dir / "meta.properties").unlink()
        config = str(self.kafka.write_properties())
        run_tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", config)

    @property
    def is_there(self) -> bool:
        return self.kafka.process is not None

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


class MixedCluster(TestCluster):
    """`with MixedCluster(3, kafka={3}) as cluster:` has one node of Apache Kafka among Ottla's."""

    def __init__(
        self,
        nodes: int = 3,
        properties: Mapping[str, str] | None = None,
        *,
        kafka: Collection[int],
        route: Route | None = None,
    ) -> None:
        super().__init__(nodes, properties, route=route)
        self._kafka = kafka

    def _new_node(self, id: int, home: Path, properties: dict[str, str], port: int) -> TestNode:
        kind = KafkaMember if id in self._kafka else TestNode
        return kind(id, home, properties, port)

    def _prepare(self) -> None:
        super()._prepare()
        members = [node for node in self.nodes if isinstance(node, KafkaMember)]
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda node: node.format(self.cluster_id), members))


class KafkaCluster(MixedCluster):
    """`with KafkaCluster() as cluster:`; a start takes some ten seconds on two cores."""

    def __init__(
        self, nodes: int = 3, properties: Mapping[str, str] | None = None, *, route: Route | None = None
    ) -> None:
        super().__init__(nodes, properties, kafka=range(1, nodes + 1), route=route)
