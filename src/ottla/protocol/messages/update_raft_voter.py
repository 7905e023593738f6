"""UpdateRaftVoter (key 82): a voter updates its endpoints and versions (KIP-853)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct, u16


@struct
class Listener:
    name: str = ""
    host: str = ""
    port: u16 = 0


@struct
class KRaftVersionFeature:
    min_supported_version: i16 = 0
    max_supported_version: i16 = 0


@message(key=82, versions="0", flexible="0+")
class UpdateRaftVoterRequest:
    cluster_id: str | None = ""
    current_leader_epoch: i32 = 0
    voter_id: i32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default=[])
    kraft_version_feature: KRaftVersionFeature = field(default=KRaftVersionFeature())


@struct
class CurrentLeader:
    leader_id: i32 = -1
    leader_epoch: i32 = -1
    host: str = ""
    port: i32 = 0


@message(key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    current_leader: CurrentLeader = field(default=CurrentLeader(), tag=0)
