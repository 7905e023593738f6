from __future__ import annotations

import pytest

from ottla.protocol.errors import InvalidTxnState, OutOfOrderSequenceNumber
from ottla.storage.producer_state import VERIFICATIONS_MAX, Producers

DAY_MS = 86_400_000


def begin(producers: Producers, epoch: int, sequence: int, offset: int) -> None:
    producers.apply(7, epoch, sequence, sequence, offset, offset, 0, True)


def end(producers: Producers, epoch: int, offset: int) -> None:
    done = producers.apply_marker(7, epoch, 0, offset, 0, aborted=True)
    if done is not None:
        producers.complete(done)


def test_a_verification_is_good_until_something_of_the_producer_is_appended() -> None:
    producers = Producers()
    started = producers.start_verification(7, 0, 0, 0)
    assert producers.start_verification(7, 0, 3, 0) is started
    producers.check_verified(7, 0, 0, started)
    begin(producers, 0, 0, 0)
    with pytest.raises(InvalidTxnState):
        producers.check_verified(7, 0, 0, started)


def test_a_marker_makes_it_void_even_without_a_transaction() -> None:
    producers = Producers()
    started = producers.start_verification(7, 0, 0, 0)
    end(producers, 0, 0)
    with pytest.raises(InvalidTxnState):
        producers.check_verified(7, 0, 0, started)
    # The next one is another, even if the first should still be answered.
    again = producers.start_verification(7, 0, 0, 0)
    with pytest.raises(InvalidTxnState):
        producers.check_verified(7, 0, 0, started)
    producers.check_verified(7, 0, 0, again)


def test_nothing_is_good_without_a_verification() -> None:
    with pytest.raises(InvalidTxnState):
        Producers().check_verified(7, 0, 0, None)


def test_the_lowest_sequence_goes_first() -> None:
    producers = Producers()
    started = producers.start_verification(7, 0, 5, 0)
    producers.start_verification(7, 0, 2, 0)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.check_verified(7, 0, 5, started)
    producers.check_verified(7, 0, 2, started)


def test_a_new_epoch_begins_anew() -> None:
    producers = Producers()
    started = producers.start_verification(7, 0, 2, 0)
    producers.start_verification(7, 1, 5, 0)
    producers.check_verified(7, 1, 5, started)


def test_what_was_never_answered_is_forgotten_with_time() -> None:
    producers = Producers()
    started = producers.start_verification(7, 0, 0, 1000)
    producers.expire(1000 + DAY_MS - 1, DAY_MS)
    producers.check_verified(7, 0, 0, started)
    producers.expire(1000 + DAY_MS, DAY_MS)
    with pytest.raises(InvalidTxnState):
        producers.check_verified(7, 0, 0, started)


def test_made_up_producers_do_not_fill_the_memory() -> None:
    producers = Producers()
    first = producers.start_verification(0, 0, 0, 0)
    for producer_id in range(1, VERIFICATIONS_MAX):
        producers.start_verification(producer_id, 0, 0, 0)
    producers.check_verified(0, 0, 0, first)
    producers.start_verification(VERIFICATIONS_MAX, 0, 0, 0)
    with pytest.raises(InvalidTxnState):
        producers.check_verified(0, 0, 0, first)
