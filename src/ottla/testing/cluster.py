"""A cluster for a test: several nodes, each a process of its own, that know each other.

    with TestCluster(nodes=3) as cluster:
        topic = cluster.topic(partitions=6)
        cluster.leader(topic, 0).kill()

Every node is broker and controller. Each is a `TestBroker`, so it can be stopped, killed, paused, started
again on its port and data, and told to fail requests. The directories are there until the cluster is closed,
so that a test can compare what the replicas have on disk.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.testing import cluster_state
from ottla.testing.broker import BrokerFailed, TestBroker, _setting
from ottla.testing.cluster_state import Quorum, State

# Short where Kafka is patient, and yet so long that a busy machine is not taken for a dead one.
QUICK: Final = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "600",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.request.timeout.ms": "1500",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}
INTERNAL_TOPICS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
FLOORS: Final = ("transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")
# Whoever takes one of our ports between choosing and using them is unlikely to do it this often.
PORT_TRIES: Final = 5
STOP_SECONDS: Final = 60.0
STABLE_SECONDS: Final = 60.0

Route = Callable[[int, str, int], int]
"""Node, listener and its port: the port at which the other nodes reach it."""


class TestNode(TestBroker):
    """One node of a cluster: what a `TestBroker` can do, and pausing."""

    __test__ = False

    def __init__(self, id: int, root: Path, properties: Mapping[str, str], port: int) -> None:
        super().__init__(properties, port=port)
        self.id: Final = id
        self._root = root
        self._bootstrap = f"127.0.0.1:{port}"
        self._paused = False

    @property
    def is_there(self) -> bool:
        """Whether it was started, and neither stopped nor killed since."""
        return self._process is not None

    @property
    def is_running(self) -> bool:
        """Whether it has a process that is not paused."""
        return self._process is not None and self._process.poll() is None and not self._paused

    @property
    def is_paused(self) -> bool:
        return self._paused

    def start(self) -> None:
        """Start it and wait until it serves. It has the address for clients, not the one for its peers."""
        super().start()
        self._bootstrap = self.bootstrap.split(",")[0]

    def stop(self) -> None:
        """Stop it cleanly: it hands over what it leads first. Raises `BrokerFailed` if it does not end."""
        process = self._process
        if process is None:
            return
        self._refresh_hits()
        self._tell(do="stop")
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            self._end_process()
            raise self._failure(f"node {self.id} did not stop within {STOP_SECONDS:g} s") from None
        self._end_process()

    def kill(self) -> None:
        """End it as SIGKILL ends it, paused or not."""
        if self._paused:
            self._faults.clear()  # it would not answer how often they happened
        super().kill()
        self._paused = False

    def pause(self) -> None:
        """Stop the process in the middle of whatever it does (SIGSTOP): its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """Let it go on as if nothing had been."""
        os.kill(self.pid, signal.SIGCONT)
        self._paused = False

    def close(self) -> None:
        """The process gone; its data is the cluster's to remove."""
        root, self._root = self._root, None
        self._paused = False
        super().close()
        self._root = root

    def __repr__(self) -> str:
        return f"<node {self.id} at {self.bootstrap}>"


class TestCluster:
    """Several nodes to write tests against. Use it as a context manager, or `start` and `close` it."""

    __test__ = False

    def __init__(
        self, nodes: int = 3, properties: Mapping[str, str] | None = None, *, route: Route | None = None
    ) -> None:
        """With a `route`, what the nodes say to each other goes by other ports: through somebody between."""
        self._size = nodes
        self._given = dict(properties or {})
        self._route = route
        self._names = itertools.count(1)
        self._root: Path | None = None
        self.cluster_id = ""
        self.nodes: list[TestNode] = []

    # --- start and stop ------------------------------------------------------------------

    def start(self) -> None:
        """Start all nodes at once and wait until they serve. Raises `BrokerFailed`."""
        for attempt in range(PORT_TRIES):
            if not self.nodes:
                self._prepare()
            try:
                self._each(lambda node: node.start(), [node for node in self.nodes if not node.is_there])
                return
            except BrokerFailed as error:
                if "is in use" not in str(error) or attempt == PORT_TRIES - 1:
                    raise
                self.close()

    def stop(self) -> None:
        """Stop all nodes cleanly, at the same time."""
        self._each(lambda node: node.stop(), [node for node in self.nodes if node.is_there])

    def kill(self) -> None:
        """SIGKILL to all of them, as near to at once as one process can."""
        for node in self.nodes:
            if node.is_there:
                os.kill(node.pid, signal.SIGKILL)
        for node in self.nodes:
            node.kill()

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill all nodes, then start them on the same ports and data."""
        self.kill() if kill else self.stop()
        self.start()

    def close(self) -> None:
        """The end: processes gone, data removed."""
        for node in self.nodes:
            node.close()
        self.nodes.clear()
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    def keep(self, where: Path) -> None:
        """Copy what all nodes have, data and logs, for somebody to look at after the end."""
        for node in self.nodes:
            if node._root is not None and node._root.exists():
                shutil.copytree(node._root, where / f"node-{node.id}", dirs_exist_ok=True)
                (where / f"node-{node.id}" / "broker.log").write_text(node.log_text)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what a test asks ----------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """All addresses; it stays the same whoever is stopped or killed."""
        return ",".join(node.bootstrap for node in self.nodes)

    @property
    def running(self) -> list[TestNode]:
        return [node for node in self.nodes if node.is_running]

    def node(self, id: int) -> TestNode:
        """The node with this id; the first has 1."""
        return self.nodes[id - 1]

    def state(self) -> State:
        """The brokers and partitions, as somebody knows them."""
        found: State = cluster_state.of_any([node.bootstrap for node in self.running], cluster_state.state)
        return found

    def quorum(self) -> Quorum:
        """The metadata quorum, as its leader describes it."""
        found: Quorum = cluster_state.of_any([node.bootstrap for node in self.running], cluster_state.quorum)
        return found

    def leader(self, topic: str, partition: int = 0, seconds: float = STABLE_SECONDS) -> TestNode:
        """The running node that leads the partition; waits until there is one."""
        found: list[int] = []

        def is_led() -> bool:
            found[:] = [self.state().partitions[f"{topic}-{partition}"].leader]
            return found[0] in {node.id for node in self.running}

        cluster_state.eventually(f"{topic}-{partition} has a leader", is_led, seconds)
        return self.node(found[0])

    @property
    def controller(self) -> TestNode:
        """The running node that is the active controller; waits until there is one."""
        found: list[int] = []

        def is_led() -> bool:
            found[:] = [self.quorum().leader]
            return found[0] in {node.id for node in self.running}

        cluster_state.eventually("there is an active controller", is_led, STABLE_SECONDS)
        return self.node(found[0])

    def wait_until_stable(self, seconds: float = STABLE_SECONDS) -> None:
        """Until every running node knows of the others, and every replica on them is in sync."""
        last = "nothing is known"

        def is_stable() -> bool:
            nonlocal last
            last = self._unrest()
            return not last

        try:
            cluster_state.eventually("the cluster is stable", is_stable, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {last}") from None

    def unique(self, stem: str) -> str:
        """A name that nobody else uses on this cluster."""
        return f"{stem}-{next(self._names)}"

    def topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        replication_factor: int | None = None,
        **config: object,
    ) -> str:
        """Create a topic, with three replicas where there are so many nodes, and wait until all know it."""
        from ottla.testing.asking import create_topic

        name = name or self.unique("topic")
        settings = {key.replace("_", "."): _setting(value) for key, value in config.items()}
        factor = replication_factor or min(3, self._size)
        bootstrap = self.running[0].bootstrap
        create_topic(bootstrap, name, partitions, settings, replication_factor=factor)
        wanted = {f"{name}-{number}" for number in range(partitions)}

        def is_known() -> bool:
            return all(_led(cluster_state.state(node.bootstrap), wanted) for node in self.running)

        cluster_state.eventually(f"all nodes know {name}", is_known, STABLE_SECONDS)
        return name

    # --- the parts -----------------------------------------------------------------------

    def _unrest(self) -> str:
        """What is not as it should be; empty if all is."""
        alive = {node.id for node in self.running}
        leader = self.quorum().leader
        if leader not in alive:
            return f"the active controller is {leader}, running are {sorted(alive)}"
        for node in self.running:
            known = cluster_state.state(node.bootstrap)
            if known.brokers != alive:
                return f"{node} knows of {sorted(known.brokers)}, running are {sorted(alive)}"
            for name, partition in known.partitions.items():
                here = alive & set(partition.replicas)
                # One that has all its replicas on nodes that are gone cannot be otherwise.
                if here and (partition.leader not in alive or set(partition.isr) != here):
                    return f"{node} says of {name}: {partition}"
        return ""

    def _prepare(self) -> None:
        self._root = root = Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
        ports = iter(_free_ports(3 * self._size))
        chosen = {id: (next(ports), next(ports), next(ports)) for id in range(1, self._size + 1)}
        route: Route = self._route or (lambda _node, _listener, port: port)
        voters = {id: f"{id}@127.0.0.1:{route(id, 'CONTROLLER', at[1])}" for id, at in chosen.items()}
        self.cluster_id = _new_id()
        for id, (port, controller, internal) in chosen.items():
            home = root / f"node-{id}"
            _format(home / "data", id, self.cluster_id)
            listeners = [f"PLAINTEXT://127.0.0.1:{port}"]
            routed: dict[str, str] = {}
            if self._route is not None:
                listeners.append(f"INTERNAL://127.0.0.1:{internal}")
                # A leader of the quorum tells the others where it is, whatever they have for it as a voter.
                advertised = [
                    listeners[0],
                    f"INTERNAL://127.0.0.1:{route(id, 'INTERNAL', internal)}",
                    f"CONTROLLER://{voters[id].partition('@')[2]}",
                ]
                routed = {
                    "advertised.listeners": ",".join(advertised),
                    "inter.broker.listener.name": "INTERNAL",
                }
            properties = {
                **cluster_properties(self._size),
                "process.roles": "broker,controller",
                "node.id": str(id),
                "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{controller}"]),
                "listener.security.protocol.map": (
                    "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
                ),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(voters.values()),
                **routed,
                **self._given,
            }
            self.nodes.append(self._new_node(id, home, properties, port))

    def _new_node(self, id: int, home: Path, properties: dict[str, str], port: int) -> TestNode:
        return TestNode(id, home, properties, port)

    def _each(self, act: Callable[[TestNode], None], nodes: Sequence[TestNode]) -> None:
        """All at once: nodes that start need each other, and nodes that stop hand over to each other."""
        if not nodes:
            return
        with ThreadPoolExecutor(len(nodes)) as pool:
            failed = [error for error in pool.map(lambda node: _attempt(act, node), nodes) if error]
        if failed:
            raise failed[0]


def cluster_properties(size: int) -> dict[str, str]:
    """What every node of a cluster of this size has, to be quick and to keep copies of everything."""
    copies = min(3, size)
    return {
        **QUICK,
        **dict.fromkeys(INTERNAL_TOPICS, str(copies)),
        **dict.fromkeys(FLOORS, str(max(1, copies - 1))),
        "default.replication.factor": str(copies),
    }


def _attempt(act: Callable[[TestNode], None], node: TestNode) -> BrokerFailed | None:
    try:
        act(node)
    except BrokerFailed as error:
        return error
    return None


def _led(state: State, wanted: set[str]) -> bool:
    return all(name in state.partitions and state.partitions[name].leader >= 0 for name in wanted)


def _free_ports(count: int) -> list[int]:
    """All are held until the last is found, so that they are different ones."""
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            held.append(socket.socket())
            held[-1].bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _new_id() -> str:
    from ottla.core.ids import Uuid

    while not (found := Uuid.from_random(os.urandom(16))).is_usable:
        pass
    return str(found)


def _format(directory: Path, node_id: int, cluster_id: str) -> None:
    """Say whose the directory is, as Kafka's storage tool does: all nodes have to name the same cluster."""
    from ottla.core.ids import Uuid
    from ottla.storage.meta_properties import META_PROPERTIES, MetaProperties, format_meta_properties

    directory.mkdir(parents=True)
    meta = MetaProperties(cluster_id, node_id, Uuid.parse(_new_id()))
    (directory / META_PROPERTIES).write_bytes(format_meta_properties(meta, round(time.time() * 1000)))
