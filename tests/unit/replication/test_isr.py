from __future__ import annotations

from ottla.replication.isr import InSyncReplicas


def test_the_watermark_is_what_every_in_sync_replica_has() -> None:
    isr = InSyncReplicas(1)
    isr.reset([1, 2, 3], [1, 2], min_insync_replicas=1)
    isr.advance(1, 10)
    isr.advance(2, 7)
    isr.advance(3, 3)
    assert isr.high_watermark(0) == 7


def test_the_watermark_never_goes_back() -> None:
    isr = InSyncReplicas(1)
    isr.reset([1, 2], [1, 2], min_insync_replicas=1)
    isr.advance(1, 10)
    assert isr.high_watermark(8) == 8


def test_the_watermark_stands_still_below_the_minimum() -> None:
    isr = InSyncReplicas(1)
    isr.reset([1, 2, 3], [1], min_insync_replicas=2)
    isr.advance(1, 10)
    assert not isr.is_large_enough
    assert isr.high_watermark(4) == 4


def test_the_minimum_is_never_more_than_the_replicas_there_are() -> None:
    isr = InSyncReplicas(1)
    isr.reset([1], [1], min_insync_replicas=2)
    isr.advance(1, 10)
    assert isr.is_large_enough
    assert isr.is_leader_alone
    assert isr.high_watermark(0) == 10


def test_a_replica_that_left_is_forgotten() -> None:
    isr = InSyncReplicas(1)
    isr.reset([1, 2], [1, 2], min_insync_replicas=1)
    isr.advance(1, 5)
    isr.advance(2, 5)
    isr.reset([1, 3], [1, 3], min_insync_replicas=1)
    assert isr.high_watermark(0) == 0
