"""A small broker for handlers to run on: a real image, real replicas and real logs, but no sockets.

`Surroundings` stands in for the node. It has no logic of Kafka's in it: requests to the controller go to the
real one, and its records are folded into the image and into partitions as a node would fold them.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.config.topic import TopicSettings, topic_settings
from ottla.core.acl import WILDCARD, Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.core.principal import ANONYMOUS, Principal, parse_principal
from ottla.core.types import TopicPartition
from ottla.metadata.authorizer import Authorizer
from ottla.metadata.cluster import BrokerRegistration
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.controller import Controller
from ottla.metadata.image import TOPIC_RESOURCE, Image
from ottla.metadata.state import Context as ControllerContext
from ottla.metadata.state import ControllerSettings
from ottla.metadata.versions import DEFAULT_FEATURES
from ottla.protocol import codec
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.stored import metadata as stored
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.runtime.producer_ids import ProducerIds
from ottla.server.context import Context
from ottla.server.stepping import carry_on
from ottla.storage.files import OsFiles
from ottla.storage.log_directory import open_log_directories

NOW_MS = 1_700_000_000_000
NODE_ID = 1
LISTENER = "PLAINTEXT"


class FixedClock:
    def wall_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return 0


class UnsyncedFiles(OsFiles):
    """Nobody pulls the plug on these tests, so they need not wait for the disk."""

    def fsync(self, fd: Any) -> None: ...
    def fdatasync(self, fd: Any) -> None: ...
    def sync_directory(self, path: str) -> None: ...


@dataclass
class DialledConnection:
    listener_name: str = LISTENER
    dialled_host: str = "127.0.0.1"
    dialled_port: int = 9092
    client_host: str = "/127.0.0.1"
    address: str = "127.0.0.1"
    principal: Principal = ANONYMOUS
    session: None = None


class NoController:
    """A quorum that nobody leads at the moment; tests put something better in its place."""

    is_active = True

    async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
        raise AssertionError(f"nothing was to be asked of the controller, but it got {request}")


class RealController:
    """The controller itself, deciding on the image that the handlers read. Records count at once."""

    def __init__(self, node: Surroundings) -> None:
        settings = node.settings
        self._node = node
        self._controller = Controller(
            ControllerSettings(
                node_id=NODE_ID,
                cluster_id=node.cluster_id,
                default_partitions=settings.num_partitions,
                default_replication_factor=settings.default_replication_factor,
                delete_topic_enable=settings.delete_topic_enable,
            ),
            ConfigRules(node.static_properties, NODE_ID),
            node.image,
        )
        self._drawn = itertools.count(1)

    is_active = True

    async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
        # Asking takes a while, even if not long; whoever asks has to be able to wait.
        soon = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(soon.set_result, None)
        await soon
        context = ControllerContext(version, NOW_MS, self._node.image.offset + 1, self._random_bytes)
        decision = self._controller.decide(request, context)
        self._node.apply(*decision.records)
        return decision.response

    def _random_bytes(self, count: int) -> bytes:
        return next(self._drawn).to_bytes(count, "little")


class Surroundings:
    """What a handler finds at `ctx.node`."""

    def __init__(self, path: Path, properties: Mapping[str, str]) -> None:
        self.node_id = NODE_ID
        self.cluster_id = "AAAAAAAAQACAAAAAAAAAAQ"
        self.broker_epoch = 5
        self.clock = FixedClock()
        self.static_properties: dict[str, str] = {"node.id": str(NODE_ID), "log.dirs": str(path)} | dict(
            properties
        )
        self.settings: BrokerSettings = broker_settings(self.static_properties)
        self.image = Image()
        self.authorizer: Authorizer | None = None
        self.replicas = Replicas(NODE_ID)
        self.log_directories = open_log_directories(
            [str(path)], clock=self.clock, node_id=NODE_ID, files=UnsyncedFiles()
        )
        for directory in self.log_directories:
            directory.load(self.topic_settings)
        self.quorum: Any = NoController()
        self.producer_ids = ProducerIds(self.quorum, NODE_ID, lambda: self.broker_epoch)
        self.connection = DialledConnection()
        self._offsets = itertools.count()
        self._ids = itertools.count(1)

    def topic_settings(self, topic: str) -> TopicSettings:
        return topic_settings(self.image.config(TOPIC_RESOURCE, topic), self.settings)

    def authorize(self, *rules: tuple[Operation, ResourceType, str]) -> None:
        """From here on there is an authorizer, and these rules are all that it allows `User:alice`."""
        self.authorizer = Authorizer([parse_principal("User:root")])
        self.authorizer.load(
            stored.AccessControlEntryRecord(
                id=Uuid(bytes(15) + bytes([number])),
                resource_type=resource_type,
                resource_name=name,
                pattern_type=PatternType.LITERAL,
                principal="User:alice",
                host=WILDCARD,
                operation=operation,
                permission_type=Permission.ALLOW,
            )
            for number, (operation, resource_type, name) in enumerate(rules)
        )
        self.connection.principal = parse_principal("User:alice")

    def use_controller(self) -> None:
        """From here on requests to the controller are answered by the real one."""
        self.apply(
            *(stored.FeatureLevelRecord(name=n, feature_level=level) for n, level in DEFAULT_FEATURES.items())
        )
        self.quorum = RealController(self)
        self.producer_ids = ProducerIds(self.quorum, NODE_ID, lambda: self.broker_epoch)

    async def caught_up(self) -> None:
        for held in list(self.replicas):
            topic = self.image.topics.get(held.partition.topic)
            if topic is None or topic.id != held.topic_id:
                self.replicas.remove(held.partition)
                self.log_directories[0].delete_log(held.partition)
        for topic in self.image.topics.values():
            for index, state in topic.partitions.items():
                if NODE_ID in state.replicas and self.replicas.find(topic.name, index) is None:
                    self._open(topic.name, topic.id, index)
                partition = self.replicas.find(topic.name, index)
                if partition is not None and state.leader == NODE_ID:
                    partition.isr.reset(state.replicas, state.isr, 1)
                    partition.become_leader(state.leader_epoch, state.partition_epoch)

    def broker_endpoint(self, broker: BrokerRegistration, connection: DialledConnection) -> tuple[str, int]:
        if broker.id == NODE_ID:
            return connection.dialled_host, connection.dialled_port
        endpoint = broker.endpoint(connection.listener_name)
        assert endpoint is not None
        return endpoint.host, endpoint.port

    # --- what a test says about the cluster ------------------------------------------------

    def apply(self, *records: Any) -> None:
        for record in records:
            self.image.apply(record, next(self._offsets))
        self.image.take_delta()

    def register(
        self,
        broker: int = NODE_ID,
        *,
        fenced: bool = False,
        rack: str | None = None,
        listener: str = LISTENER,
        directories: list[Uuid] | None = None,
    ) -> None:
        if directories is None:
            directories = [each.id for each in self.log_directories] if broker == NODE_ID else []
        self.apply(
            stored.RegisterBrokerRecord(
                broker_id=broker,
                broker_epoch=broker + 4,
                incarnation_id=_uuid(1000 + broker),
                end_points=[
                    stored.BrokerEndpoint(name=listener, host=f"broker-{broker}", port=9090 + broker)
                ],
                rack=rack,
                fenced=fenced,
                log_dirs=directories,
            )
        )

    def create(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replicas: tuple[int, ...] = (NODE_ID,),
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
        leader_epoch: int = 0,
        configs: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Uuid:
        """A topic as the metadata log has it, with logs for the partitions that this broker holds."""
        topic_id = _uuid(next(self._ids))
        self.apply(stored.TopicRecord(name=topic, topic_id=topic_id))
        for name, value in (configs or {}).items():
            self.apply(
                stored.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=value)
            )
        for index in range(partitions):
            self.apply(
                stored.PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=list(replicas),
                    isr=list(replicas if isr is None else isr),
                    leader=replicas[0] if leader is None else leader,
                    leader_epoch=leader_epoch,
                    **fields,
                )
            )
        asyncio.run(self.caught_up())
        return topic_id

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.replicas.get(topic, index)

    def produce(self, topic: str, *timestamps: int, index: int = 0, **batch: Any) -> None:
        """One batch with a record per timestamp."""
        partition = self.partition(topic, index)
        records = [Record(offset, timestamp, b"k", b"v", []) for offset, timestamp in enumerate(timestamps)]
        partition.append(write_batch(records, **batch), NOW_MS)
        partition.write()

    def _open(self, topic: str, topic_id: Uuid, index: int) -> None:
        directory = self.log_directories[0]
        name = TopicPartition(topic, index)
        log = directory.create_log(name, topic_id, self.topic_settings(topic))
        self.replicas.add(name, topic_id, log, directory)

    # --- calling a handler -----------------------------------------------------------------

    def call(
        self,
        handler: Callable[[Any, Any], Coroutine[Any, Any, Any]],
        request: Any,
        version: int | None = None,
    ) -> Any:
        """Run a handler on a request that came in some version, and read its answer back in that version.

        Both cross the codec, so that a field which a version lacks is missing here as well.
        """
        version = type(request).versions.last if version is None else version
        received = codec.decode(type(request), version, codec.encode(request, version))
        context = Context(version, "test", self.connection, self)  # type: ignore[arg-type]
        response = asyncio.run(_stepped(handler(received, context)))
        return codec.decode(type(response), version, codec.encode(response, version))


async def _stepped(steps: Coroutine[Any, Any, Any]) -> Any:
    """Run a handler the way a connection does: by hand and outside of any task until it first waits."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[asyncio.Task[Any]] = loop.create_future()

    def start() -> None:
        try:
            waits_for = steps.send(None)
        except StopIteration as done:
            answer = done.value
            outcome.set_result(loop.create_task(_just(answer)))
        except Exception as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(loop.create_task(carry_on(steps, waits_for)))

    loop.call_soon(start)
    return await (await outcome)


async def _just(answer: Any) -> Any:
    return answer


def _uuid(number: int) -> Uuid:
    return Uuid(b"\x40" + bytes(7) + number.to_bytes(8, "big"))


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[..., Surroundings]]:
    made: list[Surroundings] = []

    def make(**properties: str) -> Surroundings:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        node = Surroundings(tmp_path / f"data-{len(made)}", given)
        made.append(node)
        return node

    yield make
    for node in made:
        for directory in node.log_directories:
            directory.close()


@pytest.fixture
def node(make_node: Callable[..., Surroundings]) -> Surroundings:
    """A cluster of one broker, alive."""
    made = make_node()
    made.register()
    return made


@pytest.fixture
def cluster(node: Surroundings) -> Surroundings:
    """A cluster of one broker with a controller that decides."""
    node.use_controller()
    return node
