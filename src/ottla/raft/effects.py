"""What the machine wants done. The shell takes the effects after every call and carries them out in order."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from ottla.protocol.messages.vote import VoteRequest
from ottla.raft.election_state import ElectionState
from ottla.raft.log import SnapshotId
from ottla.raft.membership import Address

Request: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | UpdateRaftVoterRequest
    | ApiVersionsRequest
)


class Persist(NamedTuple):
    """Write the quorum-state file. It is on disk before any later effect is carried out and before the answer
    of the call that led to it leaves."""

    election: ElectionState


class Send(NamedTuple):
    """Send a request; then call `answered` or `failed` with this very object, exactly once.

    At most one request of a kind is under way to a node, so the shell needs no queue.
    """

    id: int  # different for every request of a machine
    to: Address
    node_id: int  # -1 for a bootstrap server, of which only the address is known
    request: Request
    timeout_ms: int  # `failed` after this long without an answer


class Sync(NamedTuple):
    """The log has grown to this offset: make it durable and call `synced` with how far it then is."""

    end_offset: int


class LoadSnapshot(NamedTuple):
    """The log was replaced by a snapshot of the leader: the state is to be read from there."""

    snapshot: SnapshotId


Effect: TypeAlias = Persist | Send | Sync | LoadSnapshot
