from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ottla.protocol.errors import InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced
from ottla.storage.log import AbortedTransaction, Log, Origin
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    batch,
    content,
    end_transaction,
    open_log,
    read_all,
    transactional,
)


def begin(log: Log, producer: int, *values: bytes, sequence: int = 0, epoch: int = 0) -> int:
    records = transactional(*values or (b"v",), producer=producer, sequence=sequence, epoch=epoch)
    return log.append(records, 0, NOW).base_offset


def replicate(log: Log) -> None:
    log.advance_high_watermark(log.end_offset)


def test_committed_records_are_read_up_to_the_first_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a")
    begin(log, 1)
    append(log, b"b")
    begin(log, 2)
    assert log.last_stable_offset == 0
    replicate(log)
    assert (log.high_watermark, log.last_stable_offset) == (4, 1)
    assert end_transaction(log, 1, commit=True) == 4
    assert log.last_stable_offset == 1
    replicate(log)
    assert log.last_stable_offset == 3
    end_transaction(log, 2, commit=False)
    log.advance_high_watermark(5)
    assert log.last_stable_offset == 3
    replicate(log)
    assert log.last_stable_offset == 6


def test_the_start_of_the_log_is_never_behind_the_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    begin(log, 1)
    append(log, b"a")
    replicate(log)
    log.delete_records(1)
    assert log.last_stable_offset == 1


def test_an_abort_is_noted_in_the_index_of_its_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    begin(log, 1)
    begin(log, 2)
    end_transaction(log, 1, commit=False)
    end_transaction(log, 2, commit=False)
    found = (tmp_path / "log" / f"{0:020d}.txnindex").read_bytes()
    assert list(struct.iter_unpack(">hqqqq", found)) == [(0, 1, 0, 2, 1), (0, 2, 1, 3, 4)]


def test_a_commit_makes_no_index(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    begin(log, 1)
    end_transaction(log, 1, commit=True)
    end_transaction(log, 9, commit=False)
    assert not (tmp_path / "log" / f"{0:020d}.txnindex").exists()
    assert log.aborted_transactions(0, 10) == []


@pytest.mark.parametrize("reopened", ["no", "clean", "unclean"])
def test_aborted_transactions_are_found_in_all_segments_they_reach_into(
    tmp_path: Path, reopened: str
) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    begin(log, 1, bytes(3000))  # 0
    begin(log, 2, bytes(3000))  # 1
    end_transaction(log, 1, commit=False)  # 2
    begin(log, 1, bytes(3000), sequence=1)  # 3
    append(log, bytes(3000))  # 4
    begin(log, 1, bytes(3000), sequence=2)  # 5
    end_transaction(log, 2, commit=False)  # 6
    end_transaction(log, 1, commit=False)  # 7
    begin(log, 3)  # 8
    end_transaction(log, 3, commit=True)  # 9
    assert len(log.segments) > 1
    if reopened != "no":
        log.close(NOW)
        log = open_log(tmp_path / "log", clean=reopened == "clean", **SMALL_SEGMENTS)
    first, second, third = (AbortedTransaction(*entry) for entry in ((1, 0), (2, 1), (1, 3)))
    assert log.aborted_transactions(0, 10) == [first, second, third]
    assert log.aborted_transactions(0, 1) == [first]
    # Reading on until it is sure that nothing else was open finds what lies just beyond.
    assert log.aborted_transactions(2, 3) == [first, second]
    assert log.aborted_transactions(3, 6) == [second, third]
    assert log.aborted_transactions(7, 10) == [third]
    assert log.aborted_transactions(8, 10) == []


def test_markers_are_fenced_before_they_are_written(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    begin(log, 1, epoch=5)
    end_offset = log.end_offset
    with pytest.raises(InvalidProducerEpoch):
        end_transaction(log, 1, epoch=4, commit=True)
    with pytest.raises(InvalidProducerEpoch):
        end_transaction(log, 1, epoch=5, commit=True, version=2)
    assert log.end_offset == end_offset
    end_transaction(log, 1, epoch=6, commit=True, version=2, coordinator_epoch=3)
    with pytest.raises(TransactionCoordinatorFenced):
        end_transaction(log, 1, epoch=6, commit=True, coordinator_epoch=2)


def test_a_producer_may_not_leave_its_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    begin(log, 1)
    with pytest.raises(InvalidTxnState):
        append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=1)
    end_transaction(log, 1, commit=True)
    assert append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=1) == 2


def test_a_coordinators_batch_may_be_part_of_a_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for expected in range(2):
        records = batch(b"offset", producer_id=1, producer_epoch=0, attributes=0x10)
        assert log.append(records, 0, NOW, origin=Origin.COORDINATOR).base_offset == expected
    replicate(log)
    assert log.last_stable_offset == 0
    end_transaction(log, 1, commit=True)
    replicate(log)
    assert log.last_stable_offset == 3


@pytest.mark.parametrize("clean", [True, False])
def test_open_transactions_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a")
    begin(log, 1)
    begin(log, 2)
    end_transaction(log, 2, commit=False)
    if clean:
        log.close(NOW)
    else:
        log.write()
        log.close_files()
    log = open_log(tmp_path / "log", clean=clean)
    replicate(log)
    assert log.last_stable_offset == 1
    assert log.producers.has_open_transaction(1, 0)
    assert begin(log, 1, sequence=1) == 4
    end_transaction(log, 1, commit=False)
    replicate(log)
    assert log.last_stable_offset == 6
    assert set(log.aborted_transactions(0, 6)) == {(1, 1), (2, 2)}


def test_truncation_reopens_a_transaction_whose_end_it_drops(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    begin(log, 1)
    end_transaction(log, 1, commit=False)
    append(log, b"a")
    replicate(log)
    log.truncate_to(1)
    assert log.aborted_transactions(0, 3) == []
    assert log.producers.has_open_transaction(1, 0)
    replicate(log)
    assert log.last_stable_offset == 0
    end_transaction(log, 1, commit=True)
    replicate(log)
    assert (log.last_stable_offset, log.aborted_transactions(0, 2)) == (2, [])


def test_a_follower_has_the_same_transactions_as_its_leader(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    begin(leader, 1)
    begin(leader, 2)
    end_transaction(leader, 1, commit=False)
    follower.append_as_follower(bytes(leader.read(0, 10_000, 3)))
    for log in (leader, follower):
        replicate(log)
    assert follower.last_stable_offset == leader.last_stable_offset == 1
    assert follower.aborted_transactions(0, 3) == leader.aborted_transactions(0, 3) == [(1, 0)]
    leader.close(NOW)
    follower.close(NOW)
    assert content(tmp_path / "leader") == content(tmp_path / "follower")


def test_a_retained_batch_of_a_forgotten_producer_is_still_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    assert log.expire_producers(NOW + 86_400_000 - 1) == 0
    assert log.expire_producers(NOW + 86_400_000) == 1
    assert read_all(log) == {0: b"a"}
    assert append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=77) == 1
