"""The leader of the quorum: the epoch it opens, and how far its log is committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.raft.election_state import ElectionState
from ottla.raft.membership import ControlValue, Membership, VoterKey, leader_change


class NotTheOnlyVoter(Exception):
    """This node cannot lead by itself: the quorum has other voters, or does not have this one."""


class NewEpoch(NamedTuple):
    """What a node does to lead: first the state goes to disk, then the records open the epoch in the log."""

    election: ElectionState
    records: list[ControlValue]


def lead_alone(
    before: ElectionState | None, last_epoch: int, membership: Membership, node: VoterKey
) -> NewEpoch:
    """How the only voter becomes leader, which takes no vote but its own.

    Its epoch is above any it was in before, be it leader or follower in it: an epoch is led once.
    """
    if membership.voters is not None:
        keys = [VoterKey(voter.voter_id, voter.voter_directory_id) for voter in membership.voters]
        if keys != [node]:
            listed = ", ".join(f"{key.id} with directory {key.directory_id}" for key in keys)
            raise NotTheOnlyVoter(
                f"node {node.id} with directory {node.directory_id} cannot lead the metadata quorum alone: "
                f"its voters are {listed}"
            )
    epoch = max(0 if before is None else before.epoch, last_epoch) + 1
    records = [leader_change(node.id, (node.id,), (node.id,))]
    if not membership.is_in_log:
        # The first leader writes down what formatting only put into a snapshot, in the same batch, so that
        # there is never a log with a leader and without voters.
        records += membership.records()
    return NewEpoch(ElectionState(epoch=epoch, leader_id=node.id), records)


class Leader:
    """How far a leader knows each voter's log to be on disk, and the high watermark that follows."""

    def __init__(self, node_id: int, epoch: int, voters: tuple[int, ...], start_offset: int) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.start_offset = start_offset  # where its epoch begins
        self.high_watermark: int | None = None
        self._ends: dict[int, int] = dict.fromkeys(voters, -1)

    @property
    def ends(self) -> Mapping[int, int]:
        return self._ends

    def persisted(self, voter: int, end_offset: int) -> int | None:
        """A voter has everything below an offset on disk. Answers the high watermark, None while unknown.

        What more than half of the voters have is committed; but only once that includes a record of this
        epoch: one of an older epoch may still be overwritten by another leader (section 5.4.2 of the paper).
        """
        if voter in self._ends:
            self._ends[voter] = max(self._ends[voter], end_offset)
        ordered = sorted(self._ends.values(), reverse=True)
        agreed = ordered[len(ordered) // 2]
        if agreed > self.start_offset:
            self.high_watermark = max(agreed, self.high_watermark or 0)
        return self.high_watermark
