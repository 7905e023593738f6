"""A quorum with one voter: it asks nobody, and keeps every other rule."""

from __future__ import annotations

import pytest

from ottla.core.ids import Uuid
from ottla.protocol import codec
from ottla.protocol.control import ControlRecord, ControlRecordType
from ottla.protocol.stored.quorum import LeaderChangeMessage
from ottla.raft.effects import Persist
from ottla.raft.election_state import ElectionState
from ottla.raft.machine import Raft
from ottla.raft.membership import Address, Membership, VoterKey, standalone
from ottla.raft.settings import RaftSettings
from tests.simulation.raft.log import SimulatedLog

ME = VoterKey(1, Uuid(b"d" * 16))
ADDRESS = Address("CONTROLLER", "localhost", 9093)


def voters(*nodes: VoterKey, in_log: bool = True) -> Membership:
    """As a log says it, or only the snapshot that formatting makes."""
    source = standalone(nodes[0], ADDRESS)
    source.voters = [voter for node in nodes for voter in standalone(node, ADDRESS).voters or ()]
    made = Membership()
    for kind, value in source.records():
        made.apply(ControlRecord(0, 0, kind, value), in_log=in_log)
    return made


def started(
    membership: Membership, election: ElectionState | None = None, last_epoch: int = 0, me: VoterKey = ME
) -> tuple[Raft, SimulatedLog]:
    """A node that has just started, with one record in its log if that has an epoch."""
    log = SimulatedLog(lambda: None)
    if last_epoch:
        log.append(bytearray([1, 7]), last_epoch)
    settings = RaftSettings(voters=(), endpoints=(ADDRESS,))
    raft = Raft(settings, me, log, membership, election, "cluster", 0, lambda: 0.5, can_vote=True)
    return raft, log


def test_the_first_leader_writes_the_voters_down_beside_its_own_name() -> None:
    raft, log = started(voters(ME, in_log=False))

    assert (raft.is_leader, raft.epoch) == (True, 1)
    persisted = [each.election for each in raft.take_effects() if isinstance(each, Persist)]
    assert persisted[-1] == ElectionState(epoch=1, leader_id=1)
    [batch] = log.batches
    assert [kind for kind, _ in batch.control] == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    change = codec.decode(LeaderChangeMessage, 0, batch.control[0][1])
    assert (change.version, change.leader_id) == (0, 1)
    assert [voter.voter_id for voter in change.voters] == [1]
    assert [voter.voter_id for voter in change.granting_voters] == [1]


def test_later_leaders_write_only_their_name() -> None:
    raft, log = started(voters(ME), ElectionState(epoch=4, leader_id=1), last_epoch=3)
    assert raft.epoch == 5
    assert [kind for kind, _ in log.batches[-1].control] == [ControlRecordType.LEADER_CHANGE]


@pytest.mark.parametrize(
    ("election", "epoch"),
    [(ElectionState(epoch=2), 8), (ElectionState(epoch=9, voted_id=3), 10), (None, 8)],
)
def test_a_leader_is_above_the_epoch_of_its_log_and_of_its_vote(
    election: ElectionState | None, epoch: int
) -> None:
    raft, _ = started(voters(ME), election, last_epoch=7)
    assert (raft.is_leader, raft.epoch) == (True, epoch)


@pytest.mark.parametrize("me", [VoterKey(2, ME.directory_id), VoterKey(1, Uuid(b"e" * 16))])
def test_nobody_leads_a_quorum_that_is_not_theirs(me: VoterKey) -> None:
    raft, log = started(voters(ME), me=me)
    raft.expire(1_000_000)
    assert not raft.is_voter
    assert not raft.is_leader
    assert not log.batches


def test_nobody_leads_alone_where_others_vote() -> None:
    raft, _ = started(voters(ME, VoterKey(2, Uuid(b"e" * 16))))
    raft.expire(1_000_000)
    assert raft.is_voter
    assert not raft.is_leader


def test_the_only_voter_commits_what_it_has_on_disk() -> None:
    raft, log = started(voters(ME), last_epoch=3)
    # What older epochs wrote is not committed by itself: it needs a record of this epoch after it.
    raft.synced(1, 0)
    assert raft.high_watermark is None
    raft.synced(2, 0)
    assert raft.high_watermark == 2
    raft.append(bytearray([3, 7]))
    assert raft.high_watermark == 2
    raft.synced(log.end_offset, 0)
    raft.synced(4, 0)
    assert raft.high_watermark == 5
