"""The cluster as the metadata log describes it, up to some offset.

`apply` is the only thing that changes an image, whether the record was just committed, read back from the
log after a restart, or taken from a snapshot. It trusts the log: a record that cannot follow what came
before means that the log or this code is broken, and stops the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from ottla.core.ids import Uuid
from ottla.metadata.cluster import BrokerRegistration, ControllerRegistration
from ottla.metadata.delta import Delta
from ottla.metadata.partition import PartitionState
from ottla.metadata.topic_names import collision_key
from ottla.metadata.versions import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    MV_MINIMUM,
)
from ottla.protocol.stored import metadata as stored

# Any class of `protocol.stored.metadata`.
MetadataRecord = Any

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

_BY_FENCING: Final = {1: True, -1: False}


class Topic:
    """A topic and its partitions. The image changes it in place; the partition states never change."""

    __slots__ = ("id", "name", "partitions")

    def __init__(
        self, name: str, topic_id: Uuid, partitions: dict[int, PartitionState] | None = None
    ) -> None:
        self.name = name
        self.id = topic_id
        self.partitions: dict[int, PartitionState] = {} if partitions is None else partitions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self.name, self.id, self.partitions) == (other.name, other.id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {self.id}, {self.partitions})"


class Image:
    def __init__(self) -> None:
        self.offset = -1  # the last record folded in
        self.epoch = 0  # the leader epoch it was written in
        self.version = 0  # grows with every change handed out by `take_delta`; what is cached may compare it
        self.features: dict[str, int] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, ControllerRegistration] = {}
        self.topics: dict[str, Topic] = {}
        self.topic_by_id: dict[Uuid, Topic] = {}
        # Names that a metric could not tell apart, so that creating one of them looks for the others.
        self.colliding: dict[str, set[str]] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        # By entity: sorted (type, name) pairs, a null name being the default of that type.
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.next_producer_id = 0
        self.acls: dict[Uuid, stored.AccessControlEntryRecord] = {}
        self.scram: dict[tuple[int, str], stored.UserScramCredentialRecord] = {}
        self.tokens: dict[str, stored.DelegationTokenRecord] = {}
        # Records of a metadata transaction that has begun and not ended (KIP-868).
        self._transaction: list[tuple[MetadataRecord, int]] | None = None
        self._delta = Delta()

    # --- asking --------------------------------------------------------------------------

    @property
    def topic_ids(self) -> dict[Uuid, Topic]:
        return self.topic_by_id

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, MV_MINIMUM)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def partition(self, topic_id: Uuid, partition: int) -> PartitionState | None:
        topic = self.topic_by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def partitions(self) -> Iterator[tuple[Topic, int, PartitionState]]:
        for topic in self.topics.values():
            for number, state in topic.partitions.items():
                yield topic, number, state

    def is_active(self, broker: int) -> bool:
        registration = self.brokers.get(broker)
        return registration is not None and registration.is_active

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """The overrides of a resource; not to be changed by the caller."""
        return self.configs.get((resource_type, name), _NOTHING)

    # --- changing ------------------------------------------------------------------------

    def apply(self, record: MetadataRecord, offset: int) -> None:
        """Fold in the record at an offset. Inside a metadata transaction it only counts at its end."""
        self.offset = offset
        kind = type(record)
        if self._transaction is not None and kind not in _TRANSACTION_ENDS:
            self._transaction.append((record, offset))
            return
        fold = _FOLDS.get(kind)
        if fold is not None:
            fold(self, record, offset)
        else:
            raise AssertionError(f"the metadata log has a record that this version does not know: {record}")

    def take_delta(self) -> Delta:
        """What changed since this was last asked."""
        delta = self._delta
        if delta:
            self._delta = Delta()
            self.version += 1
        return delta

    def copy(self) -> Image:
        """An image that goes its own way from here. What it holds is shared as far as it never changes."""
        twin = Image()
        twin.offset, twin.epoch, twin.version = self.offset, self.epoch, self.version
        twin.features = dict(self.features)
        twin.brokers = dict(self.brokers)
        twin.controllers = dict(self.controllers)
        twin.topics = {name: Topic(name, t.id, dict(t.partitions)) for name, t in self.topics.items()}
        twin.topic_by_id = {topic.id: topic for topic in twin.topics.values()}
        twin.colliding = {key: set(names) for key, names in self.colliding.items()}
        twin.configs = {key: dict(values) for key, values in self.configs.items()}
        twin.quotas = {entity: dict(values) for entity, values in self.quotas.items()}
        twin.next_producer_id = self.next_producer_id
        twin.acls = dict(self.acls)
        twin.scram = dict(self.scram)
        twin.tokens = dict(self.tokens)
        twin._transaction = None if self._transaction is None else list(self._transaction)
        return twin

    def take_over(self, other: Image, delta: Delta) -> None:
        """Become what another image is, which is not used any more. `delta` is what differs."""
        for name in (*_CONTENT, "offset", "epoch", "topic_by_id", "colliding", "_transaction"):
            setattr(self, name, getattr(other, name))
        self._delta = delta

    def __eq__(self, other: object) -> bool:
        """Whether both describe the same cluster, wherever they stand in the log."""
        if not isinstance(other, Image):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _CONTENT)

    __hash__ = None  # type: ignore[assignment]

    def _change(self, topic_id: Uuid) -> Topic:
        topic = self.topic_by_id.get(topic_id)
        assert topic is not None, f"the metadata log changes topic {topic_id}, which does not exist"
        return topic

    def _broker(self, broker: int, epoch: int) -> BrokerRegistration:
        registration = self.brokers.get(broker)
        assert registration is not None, f"the metadata log changes broker {broker}, which is not registered"
        assert registration.epoch == epoch, (
            f"the metadata log changes broker {broker} in epoch {epoch}, but it is registered "
            f"in epoch {registration.epoch}"
        )
        return registration


_NOTHING: Final[dict[str, str]] = {}
_CONTENT: Final = (
    "features",
    "brokers",
    "controllers",
    "topics",
    "configs",
    "quotas",
    "next_producer_id",
    "acls",
    "scram",
    "tokens",
)


# --- one function per record -----------------------------------------------------------------


def _register_broker(image: Image, record: stored.RegisterBrokerRecord, offset: int) -> None:
    image.brokers[record.broker_id] = BrokerRegistration.from_record(record, offset)
    image._delta.brokers.add(record.broker_id)


def _unregister_broker(image: Image, record: stored.UnregisterBrokerRecord, offset: int) -> None:
    image._broker(record.broker_id, record.broker_epoch)
    del image.brokers[record.broker_id]
    image._delta.brokers.add(record.broker_id)


def _change_broker(image: Image, record: stored.BrokerRegistrationChangeRecord, offset: int) -> None:
    old = image._broker(record.broker_id, record.broker_epoch)
    cordoned = record.cordoned_log_dirs
    image.brokers[record.broker_id] = replace(
        old,
        fenced=_BY_FENCING.get(record.fenced, old.fenced),
        in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=tuple(record.log_dirs) or old.directories,
        cordoned=old.cordoned if cordoned is None else tuple(cordoned),
    )
    image._delta.brokers.add(record.broker_id)


def _fence_broker(image: Image, record: stored.FenceBrokerRecord, offset: int) -> None:
    image.brokers[record.id] = replace(image._broker(record.id, record.epoch), fenced=True)
    image._delta.brokers.add(record.id)


def _unfence_broker(image: Image, record: stored.UnfenceBrokerRecord, offset: int) -> None:
    image.brokers[record.id] = replace(image._broker(record.id, record.epoch), fenced=False)
    image._delta.brokers.add(record.id)


def _register_controller(image: Image, record: stored.RegisterControllerRecord, offset: int) -> None:
    image.controllers[record.controller_id] = ControllerRegistration.from_record(record)
    image._delta.controllers.add(record.controller_id)


def _create_topic(image: Image, record: stored.TopicRecord, offset: int) -> None:
    assert record.name not in image.topics, f"the metadata log creates topic {record.name} twice"
    topic = Topic(record.name, record.topic_id)
    image.topics[record.name] = image.topic_by_id[record.topic_id] = topic
    if (key := collision_key(record.name)) is not None:
        image.colliding.setdefault(key, set()).add(record.name)
    image._delta.changed(record.name)


def _remove_topic(image: Image, record: stored.RemoveTopicRecord, offset: int) -> None:
    topic = image._change(record.topic_id)
    del image.topics[topic.name], image.topic_by_id[topic.id]
    if (key := collision_key(topic.name)) is not None:
        image.colliding[key].discard(topic.name)
        if not image.colliding[key]:
            del image.colliding[key]
    # Nothing else is written for a removed topic: its partitions and its configs go with it.
    image.configs.pop((TOPIC_RESOURCE, topic.name), None)
    image._delta.topics.pop(topic.name, None)
    image._delta.deleted_topics[topic.id] = topic.name


def _create_partition(image: Image, record: stored.PartitionRecord, offset: int) -> None:
    topic = image._change(record.topic_id)
    topic.partitions[record.partition_id] = PartitionState.from_record(record)
    image._delta.changed(topic.name, record.partition_id)


def _change_partition(image: Image, record: stored.PartitionChangeRecord, offset: int) -> None:
    topic = image._change(record.topic_id)
    state = topic.partitions.get(record.partition_id)
    assert state is not None, (
        f"the metadata log changes {topic.name}-{record.partition_id}, which does not exist"
    )
    topic.partitions[record.partition_id] = state.changed(record)
    image._delta.changed(topic.name, record.partition_id)


def _clear_elr(image: Image, record: stored.ClearElrRecord, offset: int) -> None:
    if record.topic_name:
        topic = image.topics.get(record.topic_name)
        assert topic is not None, (
            f"the metadata log clears the ELR of {record.topic_name}, which does not exist"
        )
        topics = [topic]
    else:
        topics = list(image.topics.values())
    for topic in topics:
        for number, state in topic.partitions.items():
            if state.elr or state.last_known_elr:
                topic.partitions[number] = state.changed(_NO_ELR)
                image._delta.changed(topic.name, number)


def _config(image: Image, record: stored.ConfigRecord, offset: int) -> None:
    key = (record.resource_type, record.resource_name)
    values = image.configs.setdefault(key, {})
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if not values:
        del image.configs[key]
    image._delta.configs.add(key)


def _feature(image: Image, record: stored.FeatureLevelRecord, offset: int) -> None:
    if record.name == KRAFT_VERSION:
        return  # Kafka once wrote it here by mistake (KAFKA-18979); its place is a control record.
    if record.feature_level or record.name == METADATA_VERSION:
        image.features[record.name] = record.feature_level
    else:
        image.features.pop(record.name, None)
    image._delta.features.add(record.name)


def _producer_ids(image: Image, record: stored.ProducerIdsRecord, offset: int) -> None:
    image.next_producer_id = record.next_producer_id
    image._delta.producer_ids = True


def _quota(image: Image, record: stored.ClientQuotaRecord, offset: int) -> None:
    entity = tuple(sorted(((e.entity_type, e.entity_name) for e in record.entity), key=lambda e: e[0]))
    values = image.quotas.setdefault(entity, {})
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    if not values:
        del image.quotas[entity]
    image._delta.quotas = True


def _acl(image: Image, record: stored.AccessControlEntryRecord, offset: int) -> None:
    image.acls[record.id] = record
    image._delta.acls.add(record.id)


def _remove_acl(image: Image, record: stored.RemoveAccessControlEntryRecord, offset: int) -> None:
    image.acls.pop(record.id, None)
    image._delta.acls.add(record.id)


def _scram(image: Image, record: stored.UserScramCredentialRecord, offset: int) -> None:
    image.scram[record.mechanism, record.name] = record
    image._delta.credentials = True


def _remove_scram(image: Image, record: stored.RemoveUserScramCredentialRecord, offset: int) -> None:
    image.scram.pop((record.mechanism, record.name), None)
    image._delta.credentials = True


def _token(image: Image, record: stored.DelegationTokenRecord, offset: int) -> None:
    image.tokens[record.token_id] = record
    image._delta.tokens = True


def _remove_token(image: Image, record: stored.RemoveDelegationTokenRecord, offset: int) -> None:
    image.tokens.pop(record.token_id, None)
    image._delta.tokens = True


def _begin(image: Image, record: stored.BeginTransactionRecord, offset: int) -> None:
    assert image._transaction is None, "the metadata log begins a transaction inside another"
    image._transaction = []


def _end(image: Image, record: stored.EndTransactionRecord, offset: int) -> None:
    assert image._transaction is not None, "the metadata log ends a transaction that never began"
    records, image._transaction = image._transaction, None
    for held, at in records:
        image.apply(held, at)
    image.offset = offset


def _abort(image: Image, record: stored.AbortTransactionRecord, offset: int) -> None:
    image._transaction = None


def _nothing(image: Image, record: MetadataRecord, offset: int) -> None:
    """A record that only moves the offset on."""


_NO_ELR: Final = stored.PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
_TRANSACTION_ENDS: Final = (stored.EndTransactionRecord, stored.AbortTransactionRecord)

_FOLDS: Final[dict[type, Callable[[Image, Any, int], None]]] = {
    stored.RegisterBrokerRecord: _register_broker,
    stored.UnregisterBrokerRecord: _unregister_broker,
    stored.BrokerRegistrationChangeRecord: _change_broker,
    stored.FenceBrokerRecord: _fence_broker,
    stored.UnfenceBrokerRecord: _unfence_broker,
    stored.RegisterControllerRecord: _register_controller,
    stored.TopicRecord: _create_topic,
    stored.RemoveTopicRecord: _remove_topic,
    stored.PartitionRecord: _create_partition,
    stored.PartitionChangeRecord: _change_partition,
    stored.ClearElrRecord: _clear_elr,
    stored.ConfigRecord: _config,
    stored.FeatureLevelRecord: _feature,
    stored.ProducerIdsRecord: _producer_ids,
    stored.ClientQuotaRecord: _quota,
    stored.AccessControlEntryRecord: _acl,
    stored.RemoveAccessControlEntryRecord: _remove_acl,
    stored.UserScramCredentialRecord: _scram,
    stored.RemoveUserScramCredentialRecord: _remove_scram,
    stored.DelegationTokenRecord: _token,
    stored.RemoveDelegationTokenRecord: _remove_token,
    stored.BeginTransactionRecord: _begin,
    stored.EndTransactionRecord: _end,
    stored.AbortTransactionRecord: _abort,
    stored.NoOpRecord: _nothing,
    stored.ZkMigrationRecord: _nothing,
}
