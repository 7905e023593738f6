"""What a leader concludes from how far each log is on disk."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import Uuid
from ottla.raft.leader_state import OBSERVERS_MAX, LeaderState
from ottla.raft.membership import VoterKey
from ottla.raft.voter_set import VoterNode, VoterSet


def leading(count: int, start_offset: int) -> LeaderState:
    """As voter 1 of so many."""
    keys = [VoterKey(id, Uuid(bytes([id]) * 16)) for id in range(1, count + 1)]
    return LeaderState(keys[0], VoterSet(VoterNode(key, ()) for key in keys), start_offset, 2_000, 0)


def synced(leader: LeaderState, voter: int, end_offset: int) -> int | None:
    leader.voters[voter].end_offset = end_offset
    leader.update_high_watermark()
    return leader.high_watermark


def test_a_majority_commits() -> None:
    leader = leading(3, start_offset=0)
    assert synced(leader, 1, 9) is None
    assert synced(leader, 2, 4) == 4
    assert synced(leader, 3, 6) == 6


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50))))
def test_the_high_watermark_never_goes_back_and_a_majority_had_it(steps: list[tuple[int, int]]) -> None:
    leader = leading(5, start_offset=7)
    best = -1
    for voter, end in steps:
        mark = synced(leader, voter, end)
        if mark is not None:
            assert mark >= max(best, 8)
            if mark > best:
                assert sum(each.end_offset >= mark for each in leader.voters.values()) >= 3
            best = mark


def test_no_more_observers_are_remembered_than_a_cluster_has() -> None:
    leader = leading(3, start_offset=0)
    for id in range(OBSERVERS_MAX + 100):
        leader.replica(VoterKey(1_000 + id, Uuid(b"o" * 16))).fetched(0, 0, now_ms=id)
    assert len(leader.observers) == OBSERVERS_MAX
    assert min(key.id for key in leader.observers) == 1_100


def test_a_leader_that_was_alone_hears_of_its_first_company_before_it_doubts() -> None:
    leader, together = leading(1, start_offset=0), leading(2, start_offset=0)
    leader.follow_voters(VoterSet(VoterNode(each.key, ()) for each in together.voters.values()), 60_000)
    assert leader.check_quorum_at_ms == 63_000
