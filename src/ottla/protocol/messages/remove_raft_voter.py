"""RemoveRaftVoter (key 81): remove a voter from the quorum (KIP-853)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import i16, i32, message


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    cluster_id: str | None = ""
    voter_id: i32 = 0
    voter_directory_id: Uuid = ZERO_UUID


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
