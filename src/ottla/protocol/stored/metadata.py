"""Records of the metadata log, `__cluster_metadata-0`.

`api_key` is the record type; on disk a record starts with a frame version, that type and the record's
version, each an unsigned varint.
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import f64, field, i8, i16, i32, i64, message, struct, u16


@struct
class BrokerEndpoint:
    name: str = ""
    host: str = ""
    port: u16 = 0
    security_protocol: i16 = 0


@struct
class BrokerFeature:
    name: str = ""
    min_supported_version: i16 = 0
    max_supported_version: i16 = 0


@message(key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    """A broker registered, with a new epoch."""

    broker_id: i32 = 0
    is_migrating_zk_broker: bool = field("2+", default=False)
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: i64 = 0
    end_points: list[BrokerEndpoint] = field(default=[])
    features: list[BrokerFeature] = field(default=[])
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: bool = field("1+", default=False)
    log_dirs: list[Uuid] = field("3+", default=[], tag=0)
    cordoned_log_dirs: list[Uuid] | None = field("4+", default=None, tag=1)


@message(key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    """A broker was forgotten."""

    broker_id: i32 = 0
    broker_epoch: i64 = 0


@message(key=2, versions="0", flexible="0+")
class TopicRecord:
    """A topic was created."""

    name: str = ""
    topic_id: Uuid = ZERO_UUID


@message(key=3, versions="0-2", flexible="0+")
class PartitionRecord:
    """A partition was created, or is listed whole in a snapshot."""

    partition_id: i32 = -1
    topic_id: Uuid = ZERO_UUID
    replicas: list[i32] = field(default=[])
    isr: list[i32] = field(default=[])
    removing_replicas: list[i32] = field(default=[])
    adding_replicas: list[i32] = field(default=[])
    leader: i32 = -1
    leader_recovery_state: i8 = field(default=0, tag=0)
    leader_epoch: i32 = -1
    partition_epoch: i32 = -1
    directories: list[Uuid] = field("1+", default=[])
    eligible_leader_replicas: list[i32] | None = field("2+", default=None, tag=1)
    last_known_elr: list[i32] | None = field("2+", default=None, tag=2)


@message(key=4, versions="0", flexible="0+")
class ConfigRecord:
    """A config of a resource was set, or removed when the value is null."""

    resource_type: i8 = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""


@message(key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """Some parts of a partition changed; what is absent did not."""

    partition_id: i32 = -1
    topic_id: Uuid = ZERO_UUID
    isr: list[i32] | None = field(default=None, tag=0)
    leader: i32 = field(default=-2, tag=1)
    replicas: list[i32] | None = field(default=None, tag=2)
    removing_replicas: list[i32] | None = field(default=None, tag=3)
    adding_replicas: list[i32] | None = field(default=None, tag=4)
    leader_recovery_state: i8 = field(default=-1, tag=5)
    directories: list[Uuid] | None = field("1+", default=None, tag=8)
    eligible_leader_replicas: list[i32] | None = field("2+", default=None, tag=6)
    last_known_elr: list[i32] | None = field("2+", default=None, tag=7)


@message(key=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    """An access rule was added."""

    id: Uuid = ZERO_UUID
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: i8 = 0
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=7, versions="0", flexible="0+")
class FenceBrokerRecord:
    """A broker was fenced (before BrokerRegistrationChangeRecord did that)."""

    id: i32 = 0
    epoch: i64 = 0


@message(key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    """A broker was unfenced (before BrokerRegistrationChangeRecord did that)."""

    id: i32 = 0
    epoch: i64 = 0


@message(key=9, versions="0", flexible="0+")
class RemoveTopicRecord:
    """A topic was deleted."""

    topic_id: Uuid = ZERO_UUID


@message(key=10, versions="0", flexible="0+")
class DelegationTokenRecord:
    """A delegation token was created or renewed."""

    owner: str = ""
    requester: str = ""
    renewers: list[str] = field(default=[])
    issue_timestamp: i64 = 0
    max_timestamp: i64 = 0
    expiration_timestamp: i64 = 0
    token_id: str = ""


@message(key=11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    """A user's SCRAM credential was set."""

    name: str = ""
    mechanism: i8 = 0
    salt: bytes = field(default=b"", secret=True)
    stored_key: bytes = field(default=b"", secret=True)
    server_key: bytes = field(default=b"", secret=True)
    iterations: i32 = 0


@message(key=12, versions="0", flexible="0+")
class FeatureLevelRecord:
    """A feature was finalized at a level.

    The metadata log and its snapshots start with one for `metadata.version`, so its own version stays 0.
    """

    name: str = ""
    feature_level: i16 = 0


@struct
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@message(key=14, versions="0", flexible="0+")
class ClientQuotaRecord:
    """A quota was set or removed."""

    entity: list[EntityData] = field(default=[])
    key: str = ""
    value: f64 = 0.0
    remove: bool = False


@message(key=15, versions="0", flexible="0+")
class ProducerIdsRecord:
    """A broker was given a block of producer ids; the next block starts at `next_producer_id`."""

    broker_id: i32 = 0
    broker_epoch: i64 = -1
    next_producer_id: i64 = 0


@message(key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    """An access rule was removed."""

    id: Uuid = ZERO_UUID


@message(key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    """Some parts of a broker's registration changed; what is absent did not."""

    broker_id: i32 = 0
    broker_epoch: i64 = 0
    fenced: i8 = field(default=0, tag=0)
    in_controlled_shutdown: i8 = field("1+", default=0, tag=1)
    log_dirs: list[Uuid] = field("2+", default=[], tag=2)
    cordoned_log_dirs: list[Uuid] | None = field("3+", default=None, tag=3)


@message(key=20, versions="0", flexible="0+")
class NoOpRecord:
    """Nothing: written to move the high watermark while the cluster is idle."""


@message(key=21, versions="0", flexible="0+")
class ZkMigrationRecord:
    """How far a migration from ZooKeeper has come."""

    zk_migration_state: i8 = 0


@message(key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    """A user's SCRAM credential was removed."""

    name: str = ""
    mechanism: i8 = 0


@message(key=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """The records that follow count together, once the transaction ends (KIP-868)."""

    name: str | None = field(default=None, tag=0)


@message(key=24, versions="0", flexible="0+")
class EndTransactionRecord:
    """The records since the transaction began count."""


@message(key=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """The records since the transaction began are void."""

    reason: str | None = field(default=None, tag=0)


@message(key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    """A delegation token is gone."""

    token_id: str = ""


@struct
class ControllerEndpoint:
    name: str = ""
    host: str = ""
    port: u16 = 0
    security_protocol: i16 = 0


@struct
class ControllerFeature:
    name: str = ""
    min_supported_version: i16 = 0
    max_supported_version: i16 = 0


@message(key=27, versions="0", flexible="0+")
class RegisterControllerRecord:
    """A controller registered (KIP-919)."""

    controller_id: i32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = field(default=[])
    features: list[ControllerFeature] = field(default=[])


@message(key=28, versions="0", flexible="0+")
class ClearElrRecord:
    """The eligible leader replicas of a topic, or of all, are void (KIP-966)."""

    topic_name: str = ""
