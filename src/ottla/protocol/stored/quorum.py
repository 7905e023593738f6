"""What the quorum keeps for itself: its election state, and the control records of its log and snapshots."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct, u16


@struct
class QuorumStateVoter:
    voter_id: i32 = 0


@message(versions="0-1", flexible="0+")
class QuorumStateData:
    """The content of the `quorum-state` file: this replica's epoch, leader and vote. It is stored as JSON."""

    cluster_id: str = field("0", default="")
    leader_id: i32 = -1
    leader_epoch: i32 = -1
    voted_id: i32 = -1
    voted_directory_id: Uuid = field("1+", default=ZERO_UUID)
    applied_offset: i64 = field("0", default=0)
    current_voters: list[QuorumStateVoter] | None = field("0", default=[])


@struct
class LeaderChangeVoter:
    voter_id: i32 = 0
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID)


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage:
    """The first record of a leader's epoch (control type 2)."""

    version: i16 = 0
    leader_id: i32 = 0
    voters: list[LeaderChangeVoter] = field(default=[])
    granting_voters: list[LeaderChangeVoter] = field(default=[])


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord:
    """The first record of a snapshot (control type 3)."""

    version: i16 = 0
    last_contained_log_timestamp: i64 = 0


@message(versions="0", flexible="0+")
class SnapshotFooterRecord:
    """The last record of a snapshot; without it the snapshot is incomplete (control type 4)."""

    version: i16 = 0


@message(versions="0", flexible="0+")
class KRaftVersionRecord:
    """The finalized version of the quorum's own protocol (control type 5)."""

    version: i16 = 0
    kraft_version: i16 = 0


@struct
class Endpoint:
    name: str = ""
    host: str = ""
    port: u16 = 0


@struct
class KRaftVersionFeature:
    min_supported_version: i16 = 0
    max_supported_version: i16 = 0


@struct
class Voter:
    voter_id: i32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = field(default=[])
    kraft_version_feature: KRaftVersionFeature = field(default=KRaftVersionFeature())


@message(versions="0", flexible="0+")
class VotersRecord:
    """The set of voters from here on (control type 6)."""

    version: i16 = 0
    voters: list[Voter] = field(default=[])
