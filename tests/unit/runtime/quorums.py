"""Several quorums in one process, over real files and a network that is only function calls.

Every message goes through its bytes, so what one version of a message cannot carry does not arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ottla.client.errors import NoAnswer, Unreachable
from ottla.config.broker import broker_settings
from ottla.config.development import development_defaults
from ottla.config.listeners import Listeners
from ottla.core.ids import Uuid
from ottla.core.principal import Principal
from ottla.metadata.image import Image
from ottla.protocol.apis import api
from ottla.protocol.codec import decode, encode
from ottla.protocol.errors import KafkaError, NotController
from ottla.protocol.headers import read_request_header, response_head
from ottla.protocol.messages.broker_registration import Listener
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.raft.membership import Address
from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import Flusher
from ottla.runtime.lifecycle import Lifecycle
from ottla.runtime.quorum import Quorum
from ottla.runtime.quorum_start import first_cluster_id
from ottla.storage.log_directory import open_log_directories
from ottla.testing.disk import UnsyncedFiles

FIRST_PORT = 19_000
RAFT = {"Vote": "vote", "BeginQuorumEpoch": "begin_quorum_epoch", "EndQuorumEpoch": "end_quorum_epoch"}
RAFT |= {"Fetch": "fetch", "FetchSnapshot": "fetch_snapshot"}
QUICK = {
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.fetch.timeout.ms": "250",
    "controller.quorum.election.backoff.max.ms": "50",
    "broker.session.timeout.ms": "2000",
}
PATIENCE_S = 20.0


class Network:
    """Who is there, by port, and who cannot hear whom."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.cut: set[int] = set()  # node ids that nobody reaches and that reach nobody
        self.forwarded: list[tuple[Principal, str]] = []

    async def ask(self, sender: int, at: Address, request: Any, version: int | None, within: float) -> Any:
        node = self.nodes.get(at.port)
        kind = type(request)
        version = kind.stable.last if version is None else version
        arrived = decode(kind, version, encode(request, version))
        await asyncio.sleep(0)
        if node is None or {sender, node.id} & self.cut:
            raise Unreachable(f"nobody is at {at}")
        try:
            async with asyncio.timeout(within):
                response = await node.answer(arrived, version)
        except TimeoutError:
            raise NoAnswer("no answer") from None
        except KafkaError as error:  # what a listener makes of it
            response = api(kind.api_key).response(error_code=error.code)
        if node.is_gone or {sender, node.id} & self.cut:
            raise Unreachable("the connection broke")
        return decode(api(kind.api_key).response, version, encode(response, version))


class Channels:
    """What a node has in the place of connections."""

    def __init__(self, network: Network, id: int) -> None:
        self._network, self._id = network, id

    async def ask_controller(
        self,
        at: Address,
        request: Any,
        response: type,
        *,
        purpose: str = "",
        within: float,
        version: int | None = None,
    ) -> Any:
        return await self._network.ask(self._id, at, request, version, within)


class Node:
    """A node with log directories and a quorum, and nothing else."""

    def __init__(self, network: Network, root: Path, id: int, properties: dict[str, str]) -> None:
        self.id = self.node_id = id
        self.port = FIRST_PORT + id
        self.network = network
        self.is_gone = False
        self.static_properties = development_defaults(properties) | properties
        self.settings = broker_settings(self.static_properties)
        self.listeners = Listeners.parse(self.settings)
        self.clock = SystemClock()
        self.log_directories = open_log_directories(
            self.settings.data_dirs,
            clock=self.clock,
            node_id=id,
            cluster_id=first_cluster_id(self.settings, self.static_properties),
            files=UnsyncedFiles(),
        )
        self.cluster_id = self.log_directories[0].cluster_id
        self.flushers = {each: Flusher(each) for each in self.log_directories}
        self.image = Image()
        self.channels: Any = Channels(network, id)
        self.deaths: list[str] = []
        self.metadata = Path(self.settings.metadata_dir, "__cluster_metadata-0")
        self.quorum: Quorum
        self.lifecycle: Lifecycle | None = None

    def die(self, reason: str) -> None:
        self.deaths.append(reason)

    async def start(self) -> None:
        self.quorum = await Quorum.open(self)
        if "controller" in self.settings.process_roles:
            self.network.nodes[self.port] = self

    async def answer(self, request: Any, version: int) -> Any:
        """What the listener for controllers does."""
        name = api(type(request).api_key).name
        if name in RAFT:
            return await getattr(self.quorum, RAFT[name])(request)
        if isinstance(request, EnvelopeRequest):
            return await self._open(request)
        if name == "DescribeQuorum":
            return await self.quorum.describe(request, version)
        if not self.quorum.is_active:
            return api(type(request).api_key).response(error_code=NotController.code)
        return await self.quorum.submit_here(request, version)

    async def _open(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        from ottla.protocol.stored.principal import DefaultPrincipalData

        if not self.quorum.is_active:
            return EnvelopeResponse(error_code=NotController.code)
        data = envelope.request_data
        header, body = read_request_header(data, 0, len(data))
        key, version = header.request_api_key, header.request_api_version
        principal = decode(DefaultPrincipalData, 0, envelope.request_principal or b"", 2)
        address = ".".join(map(str, envelope.client_host_address))
        self.network.forwarded.append((Principal(principal.type, principal.name), address))
        response = await self.quorum.submit_here(decode(api(key).request, version, data, body), version)
        answer = response_head(key, version, header.correlation_id) + encode(response, version)
        return EnvelopeResponse(response_data=answer)

    async def join(self) -> Lifecycle:
        """Register this node's broker and let it serve."""
        self.lifecycle = life = Lifecycle(
            self.quorum,
            node_id=self.id,
            cluster_id=self.cluster_id,
            rack=None,
            heartbeat_interval_ms=100,
            metadata_offset=lambda: self.quorum.image.offset,
            superseded=self.die,
        )
        listeners = [Listener(name="PLAINTEXT", host="localhost", port=9092)]
        await life.register(listeners, [each.id for each in self.log_directories], -1)
        await life.become_active()
        return life

    async def kill(self) -> None:
        """Let go of everything as a dead process does, without a last word."""
        self.is_gone = True
        self.network.nodes.pop(self.port, None)
        if self.lifecycle is not None and self.lifecycle._heartbeats is not None:
            self.lifecycle._heartbeats.cancel()
        self.quorum.abandon()
        if self.quorum._registering is not None:
            await self.quorum._registering.close()
        await asyncio.gather(*self.quorum._shell._tasks, return_exceptions=True)
        for flusher in self.flushers.values():
            await flusher.close()
        self.quorum._log.close_files()
        for directory in self.log_directories:
            directory._lock.release()

    async def stop(self) -> None:
        """An orderly end."""
        if self.lifecycle is not None:
            await self.lifecycle.leave()
        await self.quorum.close()
        self.is_gone = True
        self.network.nodes.pop(self.port, None)
        for flusher in self.flushers.values():
            await flusher.close()
        for directory in self.log_directories:
            directory._lock.release()


class Cluster:
    def __init__(self, root: Path, controllers: int = 3, **properties: str) -> None:
        self.root = root
        self.network = Network()
        self.nodes: dict[int, Node] = {}
        self._given = {key.replace("_", "."): value for key, value in properties.items()}
        self._ids = range(1, controllers + 1)

    def properties(self, id: int) -> dict[str, str]:
        voters = ",".join(f"{each}@localhost:{FIRST_PORT + each}" for each in self._ids)
        properties = QUICK | {
            "node.id": str(id),
            "log.dirs": str(self.root / f"node-{id}"),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://localhost:0,CONTROLLER://localhost:{FIRST_PORT + id}",
        }
        if id not in self._ids:
            properties |= {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:0"}
        return properties | self._given

    async def start(self, *ids: int) -> None:
        for id in ids or self._ids:
            node = self.nodes[id] = Node(self.network, self.root, id, self.properties(id))
            await node.start()

    async def leader(self, *, but: Node | None = None) -> Node:
        """The active controller, once there is one that others agree on."""

        def found() -> Node | None:
            for node in self.living:
                if node is not but and node.quorum.is_active and node.id not in self.network.cut:
                    return node
            return None

        await eventually(lambda: found() is not None, "there is an active controller")
        node = found()
        assert node is not None
        return node

    @property
    def living(self) -> list[Node]:
        return [node for node in self.nodes.values() if not node.is_gone]

    async def followers(self) -> list[Node]:
        leader = await self.leader()
        return [node for node in self.living if node is not leader]

    async def agree(self) -> None:
        """Wait until all have seen the same, and check that it is the same."""
        leader = await self.leader()
        await leader.quorum.caught_up()
        end = leader.quorum.high_watermark
        for node in self.living:
            await eventually(lambda node=node: node.quorum.high_watermark >= end, f"node {node.id} follows")  # type: ignore[misc]
        topics = [node.quorum.image.topics for node in self.living]
        assert all(each == topics[0] for each in topics)

    async def close(self) -> None:
        for node in self.living:
            await node.kill()


@asynccontextmanager
async def cluster(root: Path, controllers: int = 3, **properties: str) -> AsyncIterator[Cluster]:
    made = Cluster(root, controllers, **properties)
    try:
        yield made
    finally:
        await made.close()
    assert [node.deaths for node in made.nodes.values()] == [[]] * len(made.nodes)


async def eventually(is_so: Callable[[], bool], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while not is_so():
        assert asyncio.get_running_loop().time() < deadline, f"not in time: {what}"
        await asyncio.sleep(0.005)


def topics(*names: str, replicas: int = 1) -> CreateTopicsRequest:
    made = [CreatableTopic(name=name, num_partitions=2, replication_factor=replicas) for name in names]
    return CreateTopicsRequest(topics=made)


async def create(node: Node, *names: str, replicas: int = 1) -> None:
    response = await node.quorum.submit(topics(*names, replicas=replicas), 7)
    assert [topic.error_code for topic in response.topics] == [0] * len(names)


def incarnation(node: Node) -> Uuid:
    return node.quorum.image.brokers[node.id].incarnation_id
