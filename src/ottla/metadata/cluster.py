"""Who has registered with the cluster: brokers and controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.core.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid
from ottla.metadata.versions import (
    MV_CORDONED_DIRECTORIES,
    MV_DIRECTORY_ASSIGNMENT,
    VersionRange,
)
from ottla.protocol.stored.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker's registration. It is known from here on, and may serve once it is no longer fenced."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()
    # None until the broker has said which of its directories take no new replicas.
    cordoned: tuple[Uuid, ...] | None = None
    is_migrating_zk_broker: bool = False
    # Where the registration stands in the log. Not part of what a snapshot carries.
    offset: int = field(default=-1, compare=False)

    @property
    def is_active(self) -> bool:
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def default_directory(self) -> Uuid:
        """Where a new replica goes: the one directory, or for the broker to choose among several."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    @property
    def takes_new_replicas(self) -> bool:
        """Not so once every directory is cordoned (KIP-1066)."""
        return not self.directories or set(self.cordoned or ()) != set(self.directories)

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def has_online(self, directory: Uuid) -> bool:
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        return not self.directories or directory in self.directories

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord, offset: int) -> BrokerRegistration:
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features={
                f.name: VersionRange(f.min_supported_version, f.max_supported_version)
                for f in record.features
            },
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            offset=offset,
        )

    def to_record(self, metadata_version: int) -> RegisterBrokerRecord:
        record = RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=self.is_migrating_zk_broker,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=r.min, max_supported_version=r.max)
                for name, r in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
        )
        if metadata_version >= MV_DIRECTORY_ASSIGNMENT:
            record.log_dirs = list(self.directories)
        if metadata_version >= MV_CORDONED_DIRECTORIES:
            record.cordoned_log_dirs = None if self.cordoned is None else list(self.cordoned)
        return record


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """What a controller can do and where it listens, so that features are raised only when all agree."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange]

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerRegistration:
        return cls(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features={
                f.name: VersionRange(f.min_supported_version, f.max_supported_version)
                for f in record.features
            },
        )

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[
                ControllerEndpoint(
                    name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for e in self.endpoints
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=r.min, max_supported_version=r.max)
                for name, r in self.features.items()
            ],
        )
