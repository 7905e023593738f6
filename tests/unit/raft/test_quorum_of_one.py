from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol import codec
from ottla.protocol.control import ControlRecord, ControlRecordType
from ottla.protocol.stored.quorum import LeaderChangeMessage
from ottla.raft.election_state import ElectionState, from_json, to_json
from ottla.raft.leader import Leader, NotTheOnlyVoter, lead_alone
from ottla.raft.membership import Address, Membership, VoterKey, standalone

ME = VoterKey(1, Uuid(b"d" * 16))
ADDRESS = Address("CONTROLLER", "localhost", 9093)


def after_records_of(source: Membership, *, in_log: bool) -> Membership:
    made = Membership()
    for kind, value in source.records():
        made.apply(ControlRecord(0, 0, kind, value), in_log=in_log)
    return made


# --- the quorum-state file -------------------------------------------------------------------


def test_the_file_is_written_as_kafka_writes_it() -> None:
    state = ElectionState(epoch=1, leader_id=1)
    assert to_json(state, 1, "cluster", (1,)) == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert json.loads(to_json(state, 0, "cluster", (1,))) == {
        "clusterId": "cluster",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


@given(
    st.builds(
        ElectionState,
        st.integers(0, 2**31 - 1),
        st.integers(-1, 100),
        st.integers(-1, 100),
        st.binary(min_size=16, max_size=16).map(Uuid),
    )
)
def test_the_file_reads_back(state: ElectionState) -> None:
    assert from_json(to_json(state, 1, "cluster", (1,))) == state
    assert from_json(to_json(state, 0, "cluster", (1,))) == state._replace(voted_directory_id=ZERO_UUID)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"{}", b'{"data_version":7}', b'{"leaderId":1,"data_version":1}', b"\xff"]
)
def test_a_damaged_file_is_not_guessed_at(data: bytes) -> None:
    with pytest.raises(ValueError):
        from_json(data)


# --- becoming leader -------------------------------------------------------------------------


def test_the_first_leader_writes_the_voters_down_beside_its_own_name() -> None:
    formatted = after_records_of(standalone(ME, ADDRESS), in_log=False)

    epoch = lead_alone(None, 0, formatted, ME)

    assert epoch.election == ElectionState(epoch=1, leader_id=1)
    assert [kind for kind, _ in epoch.records] == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    change = codec.decode(LeaderChangeMessage, 0, epoch.records[0][1])
    assert (change.version, change.leader_id) == (0, 1)
    assert [voter.voter_id for voter in change.voters] == [1]
    assert [voter.voter_id for voter in change.granting_voters] == [1]


def test_later_leaders_write_only_their_name() -> None:
    running = after_records_of(standalone(ME, ADDRESS), in_log=True)
    epoch = lead_alone(ElectionState(epoch=4, leader_id=1), 3, running, ME)
    assert epoch.election.epoch == 5
    assert len(epoch.records) == 1


def test_a_leader_is_above_the_epoch_of_its_log_and_of_its_vote() -> None:
    running = after_records_of(standalone(ME, ADDRESS), in_log=True)
    assert lead_alone(ElectionState(epoch=2), 7, running, ME).election.epoch == 8
    assert lead_alone(ElectionState(epoch=9, voted_id=3), 7, running, ME).election.epoch == 10
    assert lead_alone(None, 7, running, ME).election.epoch == 8


@pytest.mark.parametrize("me", [VoterKey(2, ME.directory_id), VoterKey(1, Uuid(b"e" * 16))])
def test_nobody_leads_a_quorum_that_is_not_theirs(me: VoterKey) -> None:
    with pytest.raises(NotTheOnlyVoter, match="cannot lead the metadata quorum alone"):
        lead_alone(None, 0, standalone(ME, ADDRESS), me)


def test_nobody_leads_alone_where_others_vote() -> None:
    two = standalone(ME, ADDRESS)
    other = standalone(VoterKey(2, Uuid(b"e" * 16)), ADDRESS)
    assert two.voters is not None
    assert other.voters is not None
    two.voters += other.voters
    with pytest.raises(NotTheOnlyVoter):
        lead_alone(None, 0, two, ME)


def test_a_quorum_from_before_dynamic_voters_needs_no_voters_in_its_log() -> None:
    epoch = lead_alone(None, 0, Membership(), ME)
    assert [kind for kind, _ in epoch.records] == [ControlRecordType.LEADER_CHANGE]


# --- committing ------------------------------------------------------------------------------


def test_a_single_voter_commits_what_it_has_on_disk() -> None:
    leader = Leader(1, 3, (1,), start_offset=10)
    # What older epochs wrote is not committed by itself: it needs a record of this epoch after it.
    assert leader.persisted(1, 10) is None
    assert leader.persisted(1, 11) == 11
    assert leader.persisted(1, 15) == 15
    assert leader.persisted(1, 12) == 15


def test_a_majority_commits() -> None:
    leader = Leader(1, 1, (1, 2, 3), start_offset=0)
    assert leader.persisted(1, 9) is None
    assert leader.persisted(2, 4) == 4
    assert leader.persisted(3, 6) == 6
    assert leader.persisted(9, 100) == 6


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50))))
def test_the_high_watermark_never_goes_back_and_a_majority_has_it(steps: list[tuple[int, int]]) -> None:
    leader = Leader(1, 1, (1, 2, 3, 4, 5), start_offset=7)
    best = -1
    for voter, end in steps:
        mark = leader.persisted(voter, end)
        if mark is not None:
            assert mark >= best
            assert mark > 7
            assert sum(each >= mark for each in leader.ends.values()) >= 3
            best = mark
