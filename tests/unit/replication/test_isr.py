from __future__ import annotations

import pytest

from ottla.protocol.errors import FencedLeaderEpoch, IneligibleReplica, InvalidUpdateVersion, NotController
from ottla.replication.isr import NOT_REGISTERED, InSyncReplicas, Outcome, Proposal, Standing

LAG_MS = 30_000
EPOCHS = (3, 7)


def active(broker: int) -> Standing:
    return Standing(100 + broker, True)


def leading(
    replicas: tuple[int, ...] = (1, 2, 3),
    members: tuple[int, ...] = (1, 2),
    min_insync_replicas: int = 1,
    epoch_start: int = 0,
) -> InSyncReplicas:
    isr = InSyncReplicas(1)
    isr.reset(replicas, members, min_insync_replicas)
    isr.lead(epoch_start, 0)
    return isr


def fetch(isr: InSyncReplicas, replica: int, end_offset: int, leader_end: int = 10, now_ms: int = 1) -> None:
    isr.fetched(replica, end_offset, 0, 100 + replica, leader_end, now_ms)


def look(
    isr: InSyncReplicas,
    watermark: int = 0,
    leader_end: int = 10,
    now_ms: int = 1,
    fetching: int | None = None,
) -> Proposal | None:
    """As on a fetch of the last replica, unless another one is named."""
    if fetching is None:
        fetching = isr.replicas[-1]
    return isr.look(watermark, leader_end, EPOCHS, now_ms, LAG_MS, active, fetching)


def test_the_watermark_is_what_every_in_sync_replica_has() -> None:
    isr = leading()
    fetch(isr, 2, 7)
    fetch(isr, 3, 3)
    assert isr.high_watermark(0, 10) == 7


def test_a_follower_that_was_not_heard_from_has_nothing() -> None:
    isr = leading(members=(1, 2, 3))
    fetch(isr, 2, 7)
    assert isr.high_watermark(4, 10) == 4


def test_the_watermark_never_goes_back() -> None:
    isr = leading()
    fetch(isr, 2, 7)
    assert isr.high_watermark(8, 10) == 8


def test_the_watermark_stands_still_below_the_minimum() -> None:
    isr = leading(members=(1,), min_insync_replicas=2)
    assert not isr.is_large_enough
    assert not isr.is_leader_alone
    assert isr.high_watermark(4, 10) == 4


def test_the_minimum_is_never_more_than_the_replicas_there_are() -> None:
    isr = leading((1,), (1,), min_insync_replicas=2)
    assert isr.is_large_enough
    assert isr.is_leader_alone
    assert isr.high_watermark(0, 10) == 10


def test_a_replica_that_left_is_forgotten() -> None:
    isr = leading((1, 2), (1, 2))
    fetch(isr, 2, 5)
    isr.reset([1, 3], [1, 3], min_insync_replicas=1)
    assert isr.high_watermark(0, 5) == 0


def test_a_new_leader_epoch_forgets_what_followers_had() -> None:
    isr = leading()
    fetch(isr, 2, 9)
    isr.lead(10, 5)
    assert isr.high_watermark(3, 10) == 3


def test_a_follower_that_reaches_the_watermark_and_the_epoch_is_proposed() -> None:
    isr = leading(epoch_start=6)
    fetch(isr, 2, 10)
    fetch(isr, 3, 5)
    assert look(isr, watermark=5) is None  # it has the watermark, but not the start of the epoch
    fetch(isr, 3, 6)
    proposal = look(isr, watermark=5)
    assert proposal == Proposal(((1, 101), (2, 102), (3, 103)), *EPOCHS)
    assert isr.members == {1, 2}
    assert isr.high_watermark(5, 10) == 6  # counted from the moment it is proposed


def test_only_one_proposal_is_open_at_a_time() -> None:
    isr = leading((1, 2, 3, 4), (1,))
    fetch(isr, 2, 10)
    assert look(isr, fetching=2) is not None
    fetch(isr, 3, 10)
    assert look(isr, fetching=3) is None


def test_nobody_is_taken_in_for_what_it_said_long_ago() -> None:
    isr = leading()
    fetch(isr, 3, 10)
    assert isr.look(0, 10, EPOCHS, 1, LAG_MS, active) is None
    assert look(isr, fetching=2) is None
    assert look(isr, fetching=3) is not None


def test_a_fenced_broker_and_another_incarnation_are_not_proposed() -> None:
    isr = leading()
    fetch(isr, 2, 10)
    fetch(isr, 3, 10)
    assert isr.look(10, 10, EPOCHS, 1, LAG_MS, lambda broker: NOT_REGISTERED, 3) is None
    assert isr.look(10, 10, EPOCHS, 1, LAG_MS, lambda broker: Standing(100 + broker, False), 3) is None
    assert isr.look(10, 10, EPOCHS, 1, LAG_MS, lambda broker: Standing(200, True), 3) is None
    assert look(isr, 10) is not None


def test_a_fetch_of_an_earlier_incarnation_is_stale() -> None:
    isr = leading()
    assert isr.is_stale(2, 101, active)
    assert not isr.is_stale(2, 102, active)
    assert not isr.is_stale(2, -1, active)
    isr.fetched(2, 5, 0, 140, 10, 1)  # registered anew, which the metadata log has not told yet
    assert isr.is_stale(2, 102, active)


def test_who_falls_behind_is_proposed_to_leave_and_counts_until_then() -> None:
    isr = leading(members=(1, 2, 3))
    fetch(isr, 2, 10)
    fetch(isr, 3, 8, now_ms=1)
    assert look(isr, now_ms=LAG_MS) is None
    fetch(isr, 2, 10, now_ms=LAG_MS)
    proposal = look(isr, now_ms=LAG_MS + 1)
    assert proposal is not None
    assert [broker for broker, _ in proposal.members] == [1, 2]
    assert isr.high_watermark(0, 10) == 8
    assert isr.accepted(proposal, [1, 2])
    assert isr.high_watermark(0, 10) == 10


def test_who_has_everything_never_falls_behind() -> None:
    isr = leading(members=(1, 2))
    fetch(isr, 2, 10, now_ms=1)
    assert look(isr, now_ms=10 * LAG_MS) is None


def test_a_follower_is_caught_up_with_what_there_was_when_it_last_fetched() -> None:
    isr = leading(members=(1, 2))
    fetch(isr, 2, 5, leader_end=10, now_ms=1000)
    fetch(isr, 2, 10, leader_end=20, now_ms=LAG_MS)
    assert look(isr, leader_end=30, now_ms=1000 + LAG_MS) is None
    assert look(isr, leader_end=30, now_ms=1001 + LAG_MS) is not None


def test_a_follower_that_has_almost_caught_up_is_waited_for() -> None:
    isr = leading((1, 2), (1,), epoch_start=0)
    assert isr.is_leader_alone
    fetch(isr, 2, 10, leader_end=10, now_ms=1000)
    fetch(isr, 2, 15, leader_end=20, now_ms=1500)
    assert look(isr, watermark=20, leader_end=20, now_ms=1500) is None
    assert not isr.is_leader_alone
    assert isr.high_watermark(20, 30) == 20
    fetch(isr, 2, 20, leader_end=30, now_ms=1600)
    assert look(isr, watermark=20, leader_end=30, now_ms=1600) is not None


def test_who_is_waited_for_and_does_not_come_is_given_up() -> None:
    isr = leading((1, 2), (1,))
    fetch(isr, 2, 10, leader_end=10, now_ms=1000)
    assert look(isr, watermark=15, leader_end=15, now_ms=1500) is None
    assert not isr.is_leader_alone
    look(isr, watermark=15, leader_end=15, now_ms=1001 + LAG_MS)
    assert isr.is_leader_alone


def test_the_metadata_log_ends_a_proposal_unless_it_was_made_on_that() -> None:
    isr = leading()
    fetch(isr, 2, 10)
    fetch(isr, 3, 10)
    proposal = look(isr)
    assert proposal is not None
    isr.reset((1, 2, 3), (1, 2), 1, partition_epoch=EPOCHS[1])
    assert isr.proposal is proposal
    isr.configure(2)
    assert isr.proposal is proposal
    isr.reset((1, 2, 3), (1,), 1, partition_epoch=EPOCHS[1] + 1)
    assert isr.proposal is None
    assert not isr.accepted(proposal, [1, 2, 3])
    assert isr.members == {1}


@pytest.mark.parametrize("error", [FencedLeaderEpoch, InvalidUpdateVersion])
def test_an_outdated_proposal_waits_for_the_metadata_log(error: type) -> None:
    isr = leading()
    fetch(isr, 3, 10)
    proposal = look(isr)
    assert proposal is not None
    assert isr.refused(proposal, error.code, 1) is Outcome.WAITING  # type: ignore[attr-defined]
    assert isr.proposal is proposal


def test_an_ineligible_replica_is_proposed_again_after_a_while() -> None:
    isr = leading()
    fetch(isr, 2, 10)
    fetch(isr, 3, 10)
    proposal = look(isr)
    assert proposal is not None
    assert isr.refused(proposal, NotController.code, 1) is Outcome.AGAIN
    assert isr.refused(proposal, IneligibleReplica.code, 1) is Outcome.DROPPED
    assert isr.proposal is None
    assert look(isr, now_ms=2) is None
    assert look(isr, now_ms=1000) is not None


def test_a_refusal_is_not_believed_while_an_earlier_attempt_may_be_under_way() -> None:
    isr = leading()
    fetch(isr, 2, 10)
    fetch(isr, 3, 10)
    proposal = look(isr)
    assert proposal is not None
    isr.unheard(proposal, 1000)
    assert isr.refused(proposal, IneligibleReplica.code, 2000) is Outcome.AGAIN
    assert isr.proposal is proposal
    assert isr.refused(proposal, IneligibleReplica.code, 7000) is Outcome.DROPPED
