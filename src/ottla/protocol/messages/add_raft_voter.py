"""AddRaftVoter (key 80): add a voter to the quorum (KIP-853).

v1 may answer before the change is committed (KIP-1186).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct, u16


@struct
class Listener:
    name: str = ""
    host: str = ""
    port: u16 = 0


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    cluster_id: str | None = ""
    timeout_ms: i32 = 0
    voter_id: i32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default=[])
    ack_when_committed: bool = field("1+", default=True)


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
