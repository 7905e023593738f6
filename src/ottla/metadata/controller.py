"""The controller: turns requests into records of the metadata log.

It reads its own image, which runs ahead of the one that brokers serve from: a record counts here as soon
as it is appended, and there once it is committed. So two commands in flight never contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from ottla.metadata.balancing import Rounds
from ottla.metadata.commands.allocate_producer_ids import allocate_producer_ids
from ottla.metadata.commands.alter_configs import alter_configs
from ottla.metadata.commands.alter_partition import alter_partition
from ottla.metadata.commands.alter_partition_reassignments import alter_partition_reassignments
from ottla.metadata.commands.assign_replicas_to_dirs import assign_replicas_to_dirs
from ottla.metadata.commands.broker_heartbeat import broker_heartbeat, fence
from ottla.metadata.commands.broker_registration import broker_registration
from ottla.metadata.commands.controller_registration import controller_registration
from ottla.metadata.commands.create_partitions import create_partitions
from ottla.metadata.commands.create_topics import create_topics
from ottla.metadata.commands.delete_topics import delete_topics
from ottla.metadata.commands.elect_leaders import elect_leaders
from ottla.metadata.commands.incremental_alter_configs import incremental_alter_configs
from ottla.metadata.commands.list_partition_reassignments import list_partition_reassignments
from ottla.metadata.commands.unregister_broker import unregister_broker
from ottla.metadata.commands.update_features import make_safe_for_elr, update_features
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.image import Image, MetadataRecord
from ottla.metadata.state import Context, ControllerSettings, ControllerState, Decision
from ottla.metadata.versions import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, MV_TRANSACTIONS
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.protocol.messages.alter_configs import AlterConfigsRequest
from ottla.protocol.messages.alter_partition import AlterPartitionRequest
from ottla.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.messages.controller_registration import ControllerRegistrationRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest
from ottla.protocol.messages.create_topics import CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from ottla.protocol.messages.update_features import UpdateFeaturesRequest
from ottla.protocol.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

Command = Callable[[ControllerState, Any, Context], Decision]

COMMANDS: Final[dict[type, Command]] = {
    AllocateProducerIdsRequest: allocate_producer_ids,
    AlterConfigsRequest: alter_configs,
    AlterPartitionRequest: alter_partition,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    BrokerHeartbeatRequest: broker_heartbeat,
    BrokerRegistrationRequest: broker_registration,
    ControllerRegistrationRequest: controller_registration,
    CreatePartitionsRequest: create_partitions,
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    ElectLeadersRequest: elect_leaders,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    ListPartitionReassignmentsRequest: list_partition_reassignments,
    UnregisterBrokerRequest: unregister_broker,
    UpdateFeaturesRequest: update_features,
}
# Imported when they are first asked for: most clusters have neither rules nor users. They are named as their
# messages are.
COMMANDS_OF_SECURITY: Final = ("alter_user_scram_credentials", "create_acls", "delete_acls")


def _command(kind: type) -> Command:
    known = COMMANDS.get(kind)
    if known is None:
        name = kind.__module__.rpartition(".")[2]
        assert name in COMMANDS_OF_SECURITY, f"the controller has no command for {kind.__name__}"
        known = COMMANDS[kind] = getattr(import_module(f"ottla.metadata.commands.{name}"), name)
    return known


class Controller:
    def __init__(
        self, settings: ControllerSettings, configs: ConfigRules, image: Image | None = None
    ) -> None:
        self.state = ControllerState(settings, configs, image or Image())
        self._rounds: Rounds | None = None

    @property
    def image(self) -> Image:
        return self.state.image

    def decide(self, request: Any, context: Context) -> Decision:
        """What a request comes to. The image stays as it is until the records are applied."""
        return _command(type(request))(self.state, request, context)

    def apply(self, record: MetadataRecord, offset: int) -> None:
        self.state.image.apply(record, offset)

    def activate(
        self, bootstrap: list[MetadataRecord], now_ms: int, gone: int | None = None
    ) -> list[MetadataRecord]:
        """What to write on becoming the active controller, before anything else is decided.

        `bootstrap` is what a new cluster starts with; it is used when the log holds nothing yet. Brokers get
        a fresh session, except one that is known to be `gone`: a node that is controller and broker in one
        need not wait for the session of its own dead predecessor to run out.
        """
        image = self.state.image
        self._rounds = Rounds(self.state, now_ms)
        self.state.sessions.start((b for b in image.brokers.values() if b.id != gone), now_ms)
        records: list[MetadataRecord] = []
        if image.in_transaction:
            records.append(AbortTransactionRecord(reason="Controller failover"))
        if image.features:
            return records
        levels = {r.name: r.feature_level for r in bootstrap if isinstance(r, FeatureLevelRecord)}
        start = list(bootstrap)
        if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
            start += make_safe_for_elr(self.state)
        if levels.get(METADATA_VERSION, 0) < MV_TRANSACTIONS:
            return records + start
        return [*records, BeginTransactionRecord(name="Bootstrap records"), *start, EndTransactionRecord()]

    def missed(self, broker_id: int, now_ms: int, epoch: int | None = None) -> None:
        """A broker is probably dead: its connection broke, or it was on the node that led before us.

        It is fenced unless it is heard very soon. To fence one that lives costs no more than a moment.
        """
        broker = self.image.brokers.get(broker_id)
        if broker is not None and epoch in (None, broker.epoch):
            self.state.sessions.missed(broker_id, broker.epoch, self.state.settings.missed_ms, now_ms)

    def deadline(self) -> int | None:
        """When to call `expire` next."""
        session = self.state.sessions.deadline(self._unfenced())
        rounds = None if self._rounds is None else self._rounds.deadline()
        return min((each for each in (session, rounds) if each is not None), default=None)

    def expire(self, now_ms: int) -> list[MetadataRecord]:
        """The records that fence one broker that has been silent for too long, or of what is due otherwise.

        One at a time, so that the next is judged by what fencing this one led to.
        """
        broker = self.state.sessions.expired(self._unfenced(), now_ms)
        if broker is not None:
            self.state.sessions.end(broker)
            return fence(self.state, self.image.brokers[broker])
        return [] if self._rounds is None else self._rounds.expire(self.state, now_ms)

    def _unfenced(self) -> list[int]:
        return [broker.id for broker in self.image.brokers.values() if not broker.fenced]
