from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.outcome import Now
from ottla.core.types import TopicPartition
from ottla.protocol import errors
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.transactions.effects import WriteMarkers
from ottla.transactions.states import State
from ottla.transactions.transaction import LAST_CLIENT_EPOCH, LAST_EPOCH, NO_TIMEOUT, VERSION_1, VERSION_2

if TYPE_CHECKING:
    from .conftest import Coordinator

ID = "orders"
EVENTS_0, EVENTS_1, OTHER = (
    TopicPartition("events", 0),
    TopicPartition("events", 1),
    TopicPartition("other", 0),
)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def initialized(producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)


# --- InitProducerId ----------------------------------------------------------------------


def test_a_new_id_gets_a_producer_id_and_epoch_0(coordinator: Coordinator) -> None:
    assert coordinator.init() == initialized(1000, 0)
    assert coordinator.states == ["Empty"]
    assert coordinator.transaction.previous_producer_id == 1000


def test_a_second_producer_gets_the_next_epoch(coordinator: Coordinator) -> None:
    coordinator.init()
    assert coordinator.init() == initialized(1000, 1)
    with pytest.raises(errors.ProducerFenced):
        coordinator.add(1000, 0, EVENTS_0)


def test_a_producer_goes_on_from_the_epoch_it_names(coordinator: Coordinator) -> None:
    coordinator.init()
    assert coordinator.init(1000, 0) == initialized(1000, 1)


def test_a_producer_that_missed_the_answer_gets_the_same_again(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init(1000, 0)
    assert coordinator.init(1000, 0) == initialized(1000, 1)
    assert coordinator.init(1000, 1) == initialized(1000, 2)


def test_a_producer_is_fenced_by_one_that_came_after_it(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init(1000, 0)
    coordinator.init()
    for epoch in (0, 1):
        with pytest.raises(errors.ProducerFenced):
            coordinator.init(1000, epoch)


@pytest.mark.parametrize("epoch", [0, LAST_CLIENT_EPOCH])
def test_another_producer_id_is_fenced(coordinator: Coordinator, epoch: int) -> None:
    coordinator.init()
    with pytest.raises(errors.ProducerFenced):
        coordinator.init(999, epoch)


def test_a_forgotten_id_begins_anew_whatever_its_producer_remembers(coordinator: Coordinator) -> None:
    assert coordinator.init(77, 5) == initialized(1000, 0)


def test_used_up_epochs_lead_to_a_new_producer_id(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.put(replace(coordinator.transaction, producer_epoch=LAST_CLIENT_EPOCH))
    assert coordinator.init() == initialized(1001, 0)
    assert coordinator.transaction.previous_producer_id == 1000


def test_a_producer_that_missed_its_new_id_is_told_again(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.put(replace(coordinator.transaction, producer_epoch=LAST_CLIENT_EPOCH))
    assert coordinator.init(1000, LAST_CLIENT_EPOCH) == initialized(1001, 0)
    assert coordinator.init(1000, LAST_CLIENT_EPOCH) == initialized(1001, 0)
    with pytest.raises(errors.ProducerFenced):
        coordinator.init(1000, LAST_CLIENT_EPOCH - 1)


def test_a_producer_fenced_at_its_last_epoch_gets_a_new_id(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.put(replace(coordinator.transaction, producer_epoch=LAST_CLIENT_EPOCH))
    coordinator.add(1000, LAST_CLIENT_EPOCH, EVENTS_0)
    coordinator.pass_time(60_001)
    coordinator.write_markers()
    assert coordinator.transaction.producer_epoch == LAST_EPOCH
    assert coordinator.init(1000, LAST_CLIENT_EPOCH) == initialized(1001, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, errors.InvalidRequest),
        ({"transaction_timeout_ms": 0}, errors.InvalidTransactionTimeout),
        ({"transaction_timeout_ms": -1}, errors.InvalidTransactionTimeout),
        ({"transaction_timeout_ms": 900_001}, errors.InvalidTransactionTimeout),
        ({"enable_2pc": True}, errors.TransactionalIdAuthorizationFailed),
        ({"keep_prepared_txn": True}, errors.UnsupportedVersion),
    ],
)
def test_what_init_producer_id_refuses(
    coordinator: Coordinator, fields: dict[str, Any], error: type[errors.KafkaError]
) -> None:
    with pytest.raises(error):
        coordinator.init(**fields)
    assert not coordinator.log


def test_a_transaction_of_two_phases_has_no_timeout(coordinator: Coordinator) -> None:
    coordinator.settings = BrokerSettings(transaction_two_phase_commit_enable=True)
    coordinator.init(enable_2pc=True, transaction_timeout_ms=0)
    coordinator.add(1000, 0, EVENTS_0)
    assert coordinator.transaction.timeout_ms == NO_TIMEOUT
    coordinator.pass_time(30 * DAY_MS)
    assert coordinator.transaction.state is State.ONGOING


def test_a_new_producer_aborts_the_open_transaction_first(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    refused = coordinator.init()
    assert refused.error_code == errors.ConcurrentTransactions.code
    assert (refused.producer_id, refused.producer_epoch) == (-1, -1)
    with pytest.raises(errors.ConcurrentTransactions):
        coordinator.init()
    (markers,) = coordinator.write_markers()
    assert not markers.committed
    assert markers.producer_epoch == 1
    assert coordinator.init() == initialized(1000, 2)
    assert coordinator.states == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort", "Empty"]


def test_a_new_timeout_holds_from_the_next_transaction_on(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init(transaction_timeout_ms=5_000)
    coordinator.add(1000, 1, EVENTS_0)
    coordinator.pass_time(5_001)
    assert coordinator.transaction.state is State.PREPARE_ABORT


# --- AddPartitionsToTxn ------------------------------------------------------------------


def test_partitions_add_up(coordinator: Coordinator) -> None:
    coordinator.init()
    assert coordinator.add(1000, 0, EVENTS_0) == {EVENTS_0: 0}
    start_ms = coordinator.transaction.start_ms
    coordinator.pass_time(10)
    assert coordinator.add(1000, 0, EVENTS_0, OTHER) == {EVENTS_0: 0, OTHER: 0}
    assert coordinator.transaction.partitions == {EVENTS_0, OTHER}
    assert coordinator.transaction.start_ms == start_ms
    assert coordinator.states == ["Empty", "Ongoing", "Ongoing"]


def test_what_is_added_already_writes_nothing(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0, EVENTS_1)
    assert coordinator.add(1000, 0, EVENTS_1) == {EVENTS_1: 0}
    assert len(coordinator.log) == 2


@pytest.mark.parametrize(
    ("producer_id", "epoch", "error"),
    [
        (999, 0, errors.InvalidProducerIdMapping),
        (1000, 1, errors.ProducerFenced),
        (1000, -1, errors.ProducerFenced),
    ],
)
def test_only_the_present_producer_adds_partitions(
    coordinator: Coordinator, producer_id: int, epoch: int, error: type[errors.KafkaError]
) -> None:
    coordinator.init()
    with pytest.raises(error):
        coordinator.add(producer_id, epoch, EVENTS_0)
    with pytest.raises(error):
        coordinator.machine.verify_partitions(ID, producer_id, epoch, [EVENTS_0])
    assert len(coordinator.log) == 1


def test_an_unknown_id_has_no_transaction(coordinator: Coordinator) -> None:
    with pytest.raises(errors.InvalidProducerIdMapping):
        coordinator.add(1000, 0, EVENTS_0)
    with pytest.raises(errors.InvalidProducerIdMapping):
        coordinator.end(1000, 0, commit=True)
    with pytest.raises(errors.InvalidProducerIdMapping):
        coordinator.machine.verify_partitions(ID, 1000, 0, [EVENTS_0])


def test_nothing_is_added_while_the_markers_are_on_their_way(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.end(1000, 0, commit=True)
    with pytest.raises(errors.ConcurrentTransactions):
        coordinator.add(1000, 1, EVENTS_0)
    with pytest.raises(errors.ConcurrentTransactions):
        coordinator.machine.verify_partitions(ID, 1000, 1, [EVENTS_0])
    coordinator.write_markers()
    coordinator.add(1000, 1, EVENTS_1)
    assert coordinator.transaction.partitions == {EVENTS_1}


def test_verification_tells_what_is_in_the_transaction(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    outcome = coordinator.machine.verify_partitions(ID, 1000, 0, [EVENTS_0, EVENTS_1])
    assert outcome.reply == {EVENTS_0: 0, EVENTS_1: errors.TransactionAbortable.code}
    assert not outcome.records


# --- EndTxn ------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_version_1_keeps_the_epoch(coordinator: Coordinator, commit: bool) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0, OTHER, version=VERSION_1)
    assert coordinator.end(1000, 0, commit=commit, version=4) == EndTxnResponse()
    assert coordinator.write_markers() == [
        WriteMarkers(ID, 1000, 0, commit, frozenset({EVENTS_0, OTHER}), 7, VERSION_1)
    ]
    end = "Commit" if commit else "Abort"
    assert coordinator.states == ["Empty", "Ongoing", f"Prepare{end}", f"Complete{end}"]
    coordinator.add(1000, 0, EVENTS_0, version=VERSION_1)


@pytest.mark.parametrize("commit", [True, False])
def test_version_2_gives_each_transaction_an_epoch(coordinator: Coordinator, commit: bool) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    assert coordinator.end(1000, 0, commit=commit) == EndTxnResponse(producer_id=1000, producer_epoch=1)
    assert coordinator.write_markers() == [
        WriteMarkers(ID, 1000, 1, commit, frozenset({EVENTS_0}), 7, VERSION_2)
    ]
    with pytest.raises(errors.ProducerFenced):
        coordinator.add(1000, 0, EVENTS_0)
    coordinator.add(1000, 1, EVENTS_0)


@pytest.mark.parametrize(
    ("state", "commit", "epoch", "expected"),
    [
        # The epoch in the log is 5, so 4 is that of a repeated request.
        (State.EMPTY, False, 4, errors.ProducerFenced),
        (State.EMPTY, False, 5, 6),
        (State.EMPTY, True, 4, errors.ProducerFenced),
        (State.EMPTY, True, 5, errors.InvalidTxnState),
        (State.COMPLETE_ABORT, False, 4, 5),
        (State.COMPLETE_ABORT, False, 5, 6),
        (State.COMPLETE_ABORT, True, 4, errors.InvalidTxnState),
        (State.COMPLETE_ABORT, True, 5, errors.InvalidTxnState),
        (State.COMPLETE_COMMIT, False, 4, errors.InvalidTxnState),
        (State.COMPLETE_COMMIT, False, 5, 6),
        (State.COMPLETE_COMMIT, True, 4, 5),
        (State.COMPLETE_COMMIT, True, 5, errors.InvalidTxnState),
        (State.ONGOING, True, 4, errors.ProducerFenced),
        (State.ONGOING, True, 5, 6),
        (State.ONGOING, False, 6, errors.ProducerFenced),
        (State.PREPARE_COMMIT, True, 4, errors.ConcurrentTransactions),
        (State.PREPARE_COMMIT, False, 5, errors.ConcurrentTransactions),
        (State.PREPARE_ABORT, False, 4, errors.ConcurrentTransactions),
        *(
            (state, True, epoch, errors.ProducerFenced)
            for state in (State.EMPTY, State.COMPLETE_COMMIT)
            for epoch in (3, 6)
        ),
    ],
)
def test_what_version_2_answers_in_each_state(
    coordinator: Coordinator, state: State, commit: bool, epoch: int, expected: int | type[errors.KafkaError]
) -> None:
    coordinator.init()
    partitions = frozenset({EVENTS_0}) if state in (1, 2, 3) else frozenset()
    at = replace(coordinator.transaction, state=state, producer_epoch=5, partitions=partitions, start_ms=1)
    coordinator.put(at)
    if isinstance(expected, int):
        answer = coordinator.end(1000, epoch, commit=commit)
        assert answer == EndTxnResponse(producer_id=1000, producer_epoch=expected)
    else:
        with pytest.raises(expected):
            coordinator.end(1000, epoch, commit=commit)
        assert coordinator.transaction == at


@pytest.mark.parametrize(
    ("state", "commit", "epoch", "expected"),
    [
        (State.EMPTY, True, 5, errors.InvalidTxnState),
        (State.EMPTY, False, 5, errors.InvalidTxnState),
        (State.COMPLETE_COMMIT, True, 5, None),
        (State.COMPLETE_COMMIT, False, 5, errors.InvalidTxnState),
        (State.COMPLETE_ABORT, False, 5, None),
        (State.COMPLETE_ABORT, True, 5, errors.InvalidTxnState),
        (State.PREPARE_COMMIT, True, 5, errors.ConcurrentTransactions),
        (State.PREPARE_ABORT, False, 5, errors.ConcurrentTransactions),
        (State.PREPARE_ABORT, False, 4, errors.ProducerFenced),
        (State.ONGOING, True, 4, errors.ProducerFenced),
        (State.ONGOING, True, 6, errors.ProducerFenced),
        (State.COMPLETE_COMMIT, True, 4, errors.ProducerFenced),
    ],
)
def test_what_version_1_answers_in_each_state(
    coordinator: Coordinator, state: State, commit: bool, epoch: int, expected: type[errors.KafkaError] | None
) -> None:
    coordinator.init()
    at = replace(coordinator.transaction, state=state, producer_epoch=5, start_ms=1)
    coordinator.put(at)
    if expected is None:
        assert coordinator.end(1000, epoch, commit=commit, version=4) == EndTxnResponse()
    else:
        with pytest.raises(expected):
            coordinator.end(1000, epoch, commit=commit, version=4)
    assert coordinator.transaction == at


@pytest.mark.parametrize("version", [4, 5])
def test_another_producer_cannot_end_the_transaction(coordinator: Coordinator, version: int) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    with pytest.raises(errors.InvalidProducerIdMapping):
        coordinator.end(999, 0, commit=True, version=version)


def test_an_abort_without_a_transaction_is_over_at_once(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.end(1000, 0, commit=False)
    assert coordinator.states == ["Empty", "PrepareAbort", "CompleteAbort"]
    assert not coordinator.effects
    assert coordinator.transaction.start_ms == coordinator.now.wall_ms


@pytest.mark.parametrize("commit", [True, False])
def test_the_last_epoch_hands_over_to_a_new_producer_id(coordinator: Coordinator, commit: bool) -> None:
    coordinator.init()
    coordinator.put(replace(coordinator.transaction, producer_epoch=LAST_CLIENT_EPOCH))
    coordinator.add(1000, LAST_CLIENT_EPOCH, EVENTS_0)
    answer = coordinator.end(1000, LAST_CLIENT_EPOCH, commit=commit)
    assert answer == EndTxnResponse(producer_id=1001, producer_epoch=0)
    # Until the markers are written, of the old producer id, the new one has to wait.
    with pytest.raises(errors.ConcurrentTransactions):
        coordinator.add(1001, 0, EVENTS_0)
    with pytest.raises(errors.ConcurrentTransactions):
        coordinator.end(1000, LAST_CLIENT_EPOCH, commit=commit)
    (markers,) = coordinator.write_markers()
    assert (markers.producer_id, markers.producer_epoch) == (1000, LAST_EPOCH)
    assert coordinator.end(1000, LAST_CLIENT_EPOCH, commit=commit) == answer
    with pytest.raises(errors.InvalidTxnState):
        coordinator.end(1000, LAST_CLIENT_EPOCH, commit=not commit)
    coordinator.add(1001, 0, EVENTS_0)
    with pytest.raises(errors.InvalidProducerIdMapping):
        coordinator.add(1000, LAST_CLIENT_EPOCH, EVENTS_0)


def test_a_producer_fenced_at_its_last_epoch_aborts_into_a_new_id(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.put(replace(coordinator.transaction, producer_epoch=LAST_CLIENT_EPOCH))
    coordinator.add(1000, LAST_CLIENT_EPOCH, EVENTS_0)
    coordinator.pass_time(60_000)
    coordinator.write_markers()
    with pytest.raises(errors.InvalidTxnState):
        coordinator.end(1000, LAST_CLIENT_EPOCH, commit=True)
    for _ in range(2):
        answer = coordinator.end(1000, LAST_CLIENT_EPOCH, commit=False)
        assert answer == EndTxnResponse(producer_id=1001, producer_epoch=0)


def test_the_new_producer_id_survives_a_restart_in_between(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.put(replace(coordinator.transaction, producer_epoch=LAST_CLIENT_EPOCH))
    coordinator.add(1000, LAST_CLIENT_EPOCH, EVENTS_0)
    coordinator.end(1000, LAST_CLIENT_EPOCH, commit=True)
    coordinator.restart()
    coordinator.write_markers()
    coordinator.restart()
    answer = coordinator.end(1000, LAST_CLIENT_EPOCH, commit=True)
    assert answer == EndTxnResponse(producer_id=1001, producer_epoch=0)


def test_a_delayed_request_of_version_2_does_not_hit_the_next_transaction(coordinator: Coordinator) -> None:
    """KAFKA-17754: the first abort is lost on the way, repeated, and the lost one arrives late."""
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.end(1000, 0, commit=False)
    coordinator.write_markers()
    coordinator.add(1000, 1, EVENTS_0)
    for late in (lambda: coordinator.end(1000, 0, commit=False), lambda: coordinator.add(1000, 0, OTHER)):
        with pytest.raises(errors.ProducerFenced):
            late()
    assert coordinator.transaction.state is State.ONGOING
    assert coordinator.transaction.partitions == {EVENTS_0}


def test_markers_that_are_reported_twice_complete_once(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.end(1000, 0, commit=True)
    (markers,) = coordinator.write_markers()
    assert not coordinator.take(coordinator.machine.markers_written(markers, coordinator.now))
    coordinator.add(1000, 1, EVENTS_0)
    coordinator.end(1000, 1, commit=True)
    assert not coordinator.take(coordinator.machine.markers_written(markers, coordinator.now))
    assert coordinator.transaction.state is State.PREPARE_COMMIT


# --- time --------------------------------------------------------------------------------


def test_a_transaction_that_takes_too_long_is_aborted(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.pass_time(59_999)
    assert coordinator.transaction.state is State.ONGOING
    coordinator.pass_time(1)
    assert coordinator.write_markers() == [
        WriteMarkers(ID, 1000, 1, False, frozenset({EVENTS_0}), 7, VERSION_2)
    ]
    with pytest.raises(errors.ProducerFenced):
        coordinator.end(1000, 0, commit=True, version=4)
    # It may go on with the epoch that fenced it: no other producer has come.
    assert coordinator.init(1000, 0) == initialized(1000, 1)


def test_an_old_cluster_fences_with_version_1(old_coordinator: Coordinator) -> None:
    old_coordinator.init()
    old_coordinator.add(1000, 0, EVENTS_0, version=VERSION_1)
    old_coordinator.pass_time(60_000)
    (markers,) = old_coordinator.write_markers()
    assert (markers.producer_epoch, markers.transaction_version) == (1, VERSION_1)
    with pytest.raises(errors.ProducerFenced):
        old_coordinator.init(1000, 0)


def test_adding_partitions_does_not_put_off_the_timeout(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.pass_time(30_000)
    coordinator.add(1000, 0, EVENTS_1)
    coordinator.pass_time(30_000)
    assert coordinator.transaction.state is State.PREPARE_ABORT


def test_each_transaction_has_its_own_time(coordinator: Coordinator) -> None:
    coordinator.init()
    for epoch in range(300):
        coordinator.add(1000, epoch, EVENTS_0)
        coordinator.end(1000, epoch, commit=True)
        coordinator.write_markers()
        coordinator.pass_time(1_000)
    coordinator.add(1000, 300, EVENTS_0)
    coordinator.pass_time(59_999)
    assert coordinator.transaction.state is State.ONGOING
    coordinator.pass_time(1)
    assert coordinator.transaction.state is State.PREPARE_ABORT


def test_the_age_counts_across_a_restart(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.pass_time(40_000)
    coordinator.restart()
    coordinator.pass_time(19_999)
    assert coordinator.transaction.state is State.ONGOING
    coordinator.pass_time(1)
    assert coordinator.transaction.state is State.PREPARE_ABORT


@pytest.mark.parametrize(("jump_ms", "left_ms"), [(-DAY_MS, 60_000), (DAY_MS, 0)])
def test_a_clock_that_was_set_cannot_stretch_a_transaction(
    coordinator: Coordinator, jump_ms: int, left_ms: int
) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.now = Now(coordinator.now.wall_ms + jump_ms, coordinator.now.monotonic_ms)
    coordinator.restart()
    assert coordinator.machine.deadline() == coordinator.now.monotonic_ms + left_ms


def test_a_running_coordinator_does_not_look_at_the_wall_clock(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.now = Now(coordinator.now.wall_ms + DAY_MS, coordinator.now.monotonic_ms)
    coordinator.pass_time(1)
    assert coordinator.transaction.state is State.ONGOING


def test_an_id_that_nobody_uses_is_forgotten(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.pass_time(7 * DAY_MS - 1)
    assert ID in coordinator.machine.transactions
    coordinator.pass_time(HOUR_MS)
    assert ID not in coordinator.machine.transactions
    assert coordinator.states == ["Empty", "-"]
    assert coordinator.init() == initialized(1001, 0)


def test_a_transaction_is_not_forgotten_while_its_markers_are_missing(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add(1000, 0, EVENTS_0)
    coordinator.end(1000, 0, commit=True)
    coordinator.pass_time(8 * DAY_MS)
    assert coordinator.transaction.state is State.PREPARE_COMMIT


def test_many_ids_are_forgotten_batch_by_batch(coordinator: Coordinator) -> None:
    for number in range(2_500):
        coordinator.init(transactional_id=f"tx-{number}")
    coordinator.now = Now(coordinator.now.wall_ms + 7 * DAY_MS, coordinator.now.monotonic_ms + HOUR_MS)
    sizes = []
    while coordinator.machine.transactions:
        outcome = coordinator.machine.expire(coordinator.now)
        sizes.append(len(outcome.records))
        coordinator.take(outcome)
    assert sizes == [1000, 1000, 500]
