"""A cluster without brokers, log or clock: only the controller, and what it decided."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from ottla.core.ids import Uuid
from ottla.metadata import framing
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.controller import Controller
from ottla.metadata.image import Image
from ottla.metadata.partition import PartitionState
from ottla.metadata.state import Context, ControllerSettings
from ottla.metadata.versions import DEFAULT_FEATURES, ELIGIBLE_LEADER_REPLICAS_VERSION, SUPPORTED_FEATURES
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.stored.metadata import FeatureLevelRecord

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def directory_of(broker: int, number: int = 0) -> Uuid:
    """A directory id that says whose it is."""
    return Uuid(bytes([100 + number]) * 12 + broker.to_bytes(4, "big"))


class Cluster:
    """Does what a shell does with decisions, with every record taken through its bytes."""

    def __init__(self, *, elr: bool = True, level: int | None = None, **settings: Any) -> None:
        self.now_ms = 0
        self.offset = 0
        self.written: list[Any] = []
        settings = {"node_id": 100, "cluster_id": CLUSTER_ID, "quorum_nodes": (100,)} | settings
        self.controller = Controller(ControllerSettings(**settings), ConfigRules({}, settings["node_id"]))
        self.committed = Image()
        self._bytes = _pseudo_random()
        features = dict(DEFAULT_FEATURES)
        if not elr:
            features[ELIGIBLE_LEADER_REPLICAS_VERSION] = 0
        if level is not None:
            features = {"metadata.version": level}
        bootstrap = [FeatureLevelRecord(name=name, feature_level=at) for name, at in features.items()]
        self.apply(self.controller.activate(bootstrap, 0))

    @property
    def image(self) -> Image:
        return self.controller.image

    def apply(self, records: list[Any]) -> None:
        level = self.image.metadata_version
        for record in records:
            data = framing.encode(record, level)
            self.controller.apply(framing.decode(data), self.offset)
            self.committed.apply(framing.decode(data), self.offset)
            self.written.append(record)
            self.offset += 1

    def do(self, request: Any, version: int = 99) -> Any:
        """Decide, apply, answer. Without a version, the last one of the message is meant."""
        version = min(version, type(request).versions.last)
        context = Context(
            version, self.now_ms, self.offset, lambda size: bytes(next(self._bytes) for _ in range(size))
        )
        before = len(self.written)
        decision = self.controller.decide(request, context)
        self.apply(decision.records)
        self.last = self.written[before:]
        return decision.response

    def register(self, broker: int, **given: Any) -> BrokerRegistrationResponse:
        values: dict[str, Any] = {
            "broker_id": broker,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": Uuid(bytes([broker % 251 + 1]) * 8 + len(self.written).to_bytes(8, "big")),
            "listeners": [Listener(name="PLAINTEXT", host=f"b{broker}", port=9092)],
            "features": [
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            "log_dirs": [directory_of(broker)],
        }
        response: BrokerRegistrationResponse = self.do(BrokerRegistrationRequest(**(values | given)))
        return response

    def heartbeat(self, broker: int, **given: Any) -> Any:
        values: dict[str, Any] = {
            "broker_id": broker,
            "broker_epoch": self.image.brokers[broker].epoch,
            "current_metadata_offset": self.offset,
        }
        return self.do(BrokerHeartbeatRequest(**(values | given)))

    def start(self, *brokers: int, **given: Any) -> None:
        """Register brokers and let them serve."""
        for broker in brokers:
            assert self.register(broker, **given).error_code == 0
            assert not self.heartbeat(broker).is_fenced

    def crash(self, broker: int) -> None:
        """A broker is silent until its session is over."""
        self.now_ms += 9_001
        for other in self.image.brokers.values():
            if other.id != broker and not other.fenced:
                self.heartbeat(other.id)
        while records := self.controller.expire(self.now_ms):
            self.apply(records)

    def create(self, name: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """A topic with these replicas of its partitions."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=number, broker_ids=list(ids))
                for number, ids in enumerate(replicas)
            ],
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        response = self.do(CreateTopicsRequest(topics=[topic]))
        assert response.topics[0].error_code == 0, response.topics[0].error_message

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        return self.image.topics[topic].partitions[partition]


def _pseudo_random() -> Iterator[int]:
    """The same bytes in every run."""
    chance = Random(1)
    while True:
        yield chance.getrandbits(8)
