"""What the controller's commands read: the image, the settings, and who was heard from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ottla.core.ids import UNASSIGNED_DIRECTORY, Uuid
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image, MetadataRecord
from ottla.metadata.sessions import Sessions
from ottla.protocol.errors import StaleBrokerEpoch

# A user's request that would write more than this is refused with POLICY_VIOLATION.
MAX_RECORDS_PER_REQUEST = 10_000


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    node_id: int
    cluster_id: str
    default_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    delete_topic_enable: bool = True
    session_timeout_ms: int = 9_000
    # A broker whose connection breaks is heard again within this time, if it lives.
    missed_ms: int = 4_000
    quorum_nodes: tuple[int, ...] = ()
    balances_leaders: bool = True
    imbalance_check_interval_ms: int = 300_000
    unclean_election_interval_ms: int = 300_000


class Context(NamedTuple):
    """What surrounds one command: the version it came in, the time, the log's end, and some chance."""

    version: int
    now_ms: int
    next_offset: int
    random_bytes: Callable[[int], bytes]

    def new_id(self) -> Uuid:
        while True:
            made = Uuid.from_random(self.random_bytes(16))
            if made.is_usable:
                return made


@dataclass(frozen=True, slots=True)
class Decision:
    """What a command came to: records to write, and the answer to give once they are committed."""

    records: list[MetadataRecord]
    response: Any
    # Whether the records make sense only together. Others may be cut into several batches.
    atomic: bool = True


@dataclass(slots=True)
class ControllerState:
    settings: ControllerSettings
    configs: ConfigRules
    image: Image = field(default_factory=Image)
    sessions: Sessions = field(init=False)
    kraft_version: int = 1

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.settings.session_timeout_ms)

    def voters_are(self, nodes: tuple[int, ...]) -> None:
        """The quorum has these voters now."""
        if nodes != self.settings.quorum_nodes:
            self.settings = replace(self.settings, quorum_nodes=nodes)

    def topic_config(self, topic: str, name: str, static: str) -> str:
        """A topic's effective config: its own, this node's, the cluster's, or the static one."""
        image = self.image
        for resource in (
            (TOPIC_RESOURCE, topic),
            (BROKER_RESOURCE, str(self.settings.node_id)),
            (BROKER_RESOURCE, ""),
        ):
            values = image.configs.get(resource)
            if values is not None and name in values:
                return values[name]
        return static

    def min_isr(self, topic: str, replication_factor: int) -> int:
        """min.insync.replicas, which cannot ask for more replicas than there are."""
        wanted = self.topic_config(topic, "min.insync.replicas", str(self.settings.min_insync_replicas))
        return min(int(wanted), replication_factor)

    def is_unclean_election_enabled(self, topic: str) -> bool:
        static = str(self.settings.unclean_leader_election_enable)
        return self.topic_config(topic, "unclean.leader.election.enable", static).lower() == "true"

    def default_directory(self, broker: int) -> Uuid:
        registration = self.image.brokers.get(broker)
        return UNASSIGNED_DIRECTORY if registration is None else registration.default_directory

    def check_broker_epoch(self, broker: int, epoch: int) -> None:
        registration = self.image.brokers.get(broker)
        if registration is None:
            raise StaleBrokerEpoch(f"No broker registration found for broker id {broker}")
        if registration.epoch != epoch:
            raise StaleBrokerEpoch(
                f"Expected broker epoch {registration.epoch}, but got broker epoch {epoch}"
            )
