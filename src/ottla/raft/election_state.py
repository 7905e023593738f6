"""The `quorum-state` file: the epoch this node is in, whom it follows in it and whom it voted for.

It has to be on disk before this node acts on it. A node that forgot its vote could vote twice in one epoch,
and then there would be two leaders.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from ottla.core.ids import ZERO_UUID, Uuid

NOBODY: Final = -1


class ElectionState(NamedTuple):
    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


def to_json(state: ElectionState, kraft_version: int, cluster_id: str, voters: tuple[int, ...]) -> bytes:
    """The file's content, in the version that goes with kraft.version."""
    content: dict[str, Any]
    if kraft_version >= 1:
        content = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": str(state.voted_directory_id),
            "data_version": 1,
        }
    else:
        content = {
            "clusterId": cluster_id,
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def from_json(data: bytes) -> ElectionState:
    """Raises `ValueError` when the file is damaged: guessing an epoch could break a promise made in it."""
    content = json.loads(data)
    if not isinstance(content, dict) or content.get("data_version") not in (0, 1):
        raise ValueError(f"quorum-state is of an unknown kind: {data[:200]!r}")
    try:
        return ElectionState(
            epoch=int(content["leaderEpoch"]),
            leader_id=int(content["leaderId"]),
            voted_id=int(content["votedId"]),
            voted_directory_id=Uuid.parse(content.get("votedDirectoryId", str(ZERO_UUID))),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"quorum-state lacks {error}") from None
