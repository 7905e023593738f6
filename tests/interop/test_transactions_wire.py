"""Transactions frame by frame: what Java's clients do (transaction version 2), and what must be refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.interop.batches import CONTROL, TRANSACTIONAL, batch, headers
from tests.interop.requests import fetch, list_offset, produce
from tests.interop.topics import Names, create_topic, eventually
from tests.interop.wire import Wire

NONE, CONCURRENT, FENCED, STALE_EPOCH = 0, 51, 90, 47
LOADING = (14, 15, 16)


@dataclass
class Producer:
    """A transactional producer that sends single frames."""

    wire: Wire
    transactional_id: str
    id: int = -1
    epoch: int = -1
    sequence: int = 0

    def init(self, timeout_ms: int = 30_000) -> None:
        """As clients do, again and again while the coordinator is not ready or ends what was before."""

        def done() -> bool:
            answer = self.wire.ask(
                "init_producer_id",
                5,
                transactional_id=self.transactional_id,
                transaction_timeout=timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
            )
            assert answer.error_code in (NONE, CONCURRENT, *LOADING)
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
            return bool(answer.error_code == NONE)

        find(self.wire, 1, self.transactional_id)
        eventually(done)

    def send(self, topic: str, value: bytes, *, version: int = 12) -> int:
        """The error of a Produce request. From version 12 on it adds the partition to the transaction."""
        records = batch(
            value,
            attributes=TRANSACTIONAL,
            producer_id=self.id,
            producer_epoch=self.epoch,
            sequence=self.sequence,
        )
        transactional_id = self.transactional_id
        answer = produce(self.wire, topic, records, version=version, transactional_id=transactional_id)
        if answer.error_code == NONE:
            self.sequence += 1
        return int(answer.error_code)

    def sends(self, topic: str, value: bytes) -> None:
        """Again while the transaction before is still being ended."""
        eventually(lambda: self._sent(topic, value))

    def _sent(self, topic: str, value: bytes) -> bool:
        error = self.send(topic, value)
        assert error in (NONE, CONCURRENT)
        return error == NONE

    def add(self, topic: str) -> int:
        """AddPartitionsToTxn, which clients of version 1 send first."""
        answer = self.wire.ask(
            "add_partitions_to_txn",
            3,
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": topic, "partitions": [0]}],
        )
        ((result,),) = [each.results_by_partition for each in answer.results_by_topic_v3_and_below]
        return int(result.partition_error_code)

    def commit_offset(
        self, group: str, topic: str, offset: int, *, generation: int = -1, member: str = ""
    ) -> int:
        """The error of TxnOffsetCommit, which adds the group's partition to the transaction by itself."""
        at = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        answer = self.wire.ask(
            "txn_offset_commit",
            5,
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            generation_id=generation,
            member_id=member,
            group_instance_id=None,
            topics=[{"name": topic, "partitions": [at | {"committed_metadata": "m"}]}],
        )
        ((result,),) = [each.partitions for each in answer.topics]
        return int(result.error_code)

    def commits_offset(self, group: str, topic: str, offset: int) -> None:
        def committed() -> bool:
            error = self.commit_offset(group, topic, offset)
            assert error in (NONE, CONCURRENT, *LOADING)
            return error == NONE

        eventually(committed)

    def end(self, *, commit: bool, version: int = 5) -> Any:
        """EndTxn; from version 5 on it says which epoch comes next."""
        return self.wire.ask(
            "end_txn",
            version,
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def ends(self, *, commit: bool) -> None:
        answer = self.end(commit=commit)
        assert answer.error_code == NONE
        assert (answer.producer_id, answer.producer_epoch) == (self.id, self.epoch + 1)
        self.epoch, self.sequence = answer.producer_epoch, 0


def find(wire: Wire, key_type: int, key: str) -> None:
    """Whoever asks for a coordinator first has its topic made."""

    def found() -> bool:
        (answer,) = wire.ask("find_coordinator", 4, key_type=key_type, coordinator_keys=[key]).coordinators
        return bool(answer.error_code == NONE)

    eventually(found)


@pytest.fixture
def producer(quick: str, unique: Names) -> Any:
    with Wire(quick) as wire:
        producer = Producer(wire, unique("id"))
        producer.init()
        yield producer


@pytest.fixture
def ledger(quick: str, unique: Names) -> str:
    topic = unique("ledger")
    create_topic(quick, topic)
    return topic


def stable_offset(wire: Wire, topic: str) -> int:
    return int(list_offset(wire, topic, -1, isolation_level=1).offset)


def test_produce_adds_its_partition_and_every_end_brings_a_new_epoch(producer: Producer, ledger: str) -> None:
    wire, first = producer.wire, producer.epoch
    for number, commit in enumerate((True, False, True)):
        producer.sends(ledger, b"%d" % number)
        assert stable_offset(wire, ledger) == 2 * number, "it is open"
        producer.ends(commit=commit)
        eventually(lambda end=2 * number + 2: stable_offset(wire, ledger) == end)
    assert producer.epoch == first + 3
    answer = fetch(wire, ledger, 0, isolation_level=1)
    assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == [
        (producer.id, 2)
    ]
    found = [(header.base_offset, header.attributes & CONTROL != 0) for header in headers(answer.records)]
    assert found == [(0, False), (1, True), (2, False), (3, True), (4, False), (5, True)]
    # A marker has the epoch that comes after that of its records.
    epochs = [header.producer_epoch for header in headers(answer.records)]
    assert epochs == [first, first + 1, first + 1, first + 2, first + 2, first + 3]


def test_an_end_that_is_sent_again_is_known(producer: Producer, ledger: str) -> None:
    producer.sends(ledger, b"once")
    answer = producer.end(commit=True)
    assert answer.error_code == NONE

    def again() -> bool:
        repeated = producer.end(commit=True)
        assert repeated.error_code in (NONE, CONCURRENT)
        return bool(repeated.error_code == NONE and repeated.producer_epoch == answer.producer_epoch)

    eventually(again)
    assert producer.end(commit=False).error_code == 48, "it was committed, it is not aborted any more"


def test_what_comes_late_does_not_get_into_the_next_transaction(producer: Producer, ledger: str) -> None:
    """The reason for an epoch per transaction (KIP-890): a delayed Produce or EndTxn meets the wrong one."""
    wire = producer.wire
    producer.sends(ledger, b"first")
    late = Producer(wire, producer.transactional_id, producer.id, producer.epoch, producer.sequence)
    producer.ends(commit=True)
    producer.sends(ledger, b"second")
    end_offset = list_offset(wire, ledger, -1).offset
    assert late.send(ledger, b"late") in (STALE_EPOCH, FENCED)
    assert list_offset(wire, ledger, -1).offset == end_offset, "a refused batch leaves nothing"
    assert late.end(commit=False).error_code == FENCED
    producer.ends(commit=True)
    eventually(lambda: stable_offset(wire, ledger) == end_offset + 1)
    assert fetch(wire, ledger, 0, isolation_level=1).aborted_transactions in (None, ())


def test_a_new_producer_ends_what_the_old_one_left_and_fences_it(producer: Producer, ledger: str) -> None:
    wire = producer.wire
    producer.sends(ledger, b"left open")
    heir = Producer(wire, producer.transactional_id)
    heir.init()
    assert heir.id == producer.id
    assert heir.epoch > producer.epoch
    assert producer.send(ledger, b"zombie") in (STALE_EPOCH, FENCED)
    assert producer.end(commit=True).error_code == FENCED
    eventually(lambda: stable_offset(wire, ledger) == 2)
    answer = fetch(wire, ledger, 0, isolation_level=1)
    assert [each.first_offset for each in answer.aborted_transactions] == [0]


def test_a_producer_of_version_one_names_its_partitions_first(producer: Producer, ledger: str) -> None:
    wire, epoch = producer.wire, producer.epoch
    assert producer.send(ledger, b"too early", version=11) == 120
    assert producer.add(ledger) == NONE
    assert producer.send(ledger, b"in time", version=11) == NONE
    answer = producer.end(commit=True, version=3)
    assert answer.error_code == NONE
    eventually(lambda: stable_offset(wire, ledger) == 2)
    assert producer.epoch == epoch, "its epoch stays"
    eventually(lambda: producer.add(ledger) == NONE)
    assert producer.send(ledger, b"again", version=11) == NONE


def test_offsets_are_committed_in_one_frame(producer: Producer, ledger: str, unique: Names) -> None:
    wire, group = producer.wire, unique("group")
    find(wire, 0, group)

    def found(*, stable: bool) -> Any:
        asked = [{"group_id": group, "topics": [{"name": ledger, "partition_indexes": [0]}]}]
        (answer,) = wire.ask("offset_fetch", 8, groups=asked, require_stable=stable).groups
        ((result,),) = [topic.partitions for topic in answer.topics]
        return result

    producer.commits_offset(group, ledger, 5)
    assert found(stable=True).error_code == 88
    assert (found(stable=False).error_code, found(stable=False).committed_offset) == (NONE, -1)
    producer.ends(commit=False)
    eventually(lambda: found(stable=True).error_code == NONE)
    assert found(stable=True).committed_offset == -1

    producer.commits_offset(group, ledger, 7)
    producer.ends(commit=True)
    eventually(lambda: found(stable=True).error_code == NONE)
    assert (found(stable=False).committed_offset, found(stable=False).metadata) == (7, "m")


def test_a_transaction_without_anything_is_not_committed_but_may_be_aborted(producer: Producer) -> None:
    assert producer.end(commit=True).error_code == 48
    producer.ends(commit=False)


def test_a_zombie_of_a_group_commits_nothing_within_a_transaction(
    producer: Producer, ledger: str, unique: Names
) -> None:
    """Generations fence consumers here too (KIP-447)."""
    group = unique("group")
    find(producer.wire, 0, group)
    producer.commits_offset(group, ledger, 1)
    assert producer.commit_offset(group, ledger, 2, generation=3, member="nobody") == 25
    other = unique("group")

    def error() -> int:
        return producer.commit_offset(other, ledger, 2, generation=3, member="nobody")

    eventually(lambda: error() not in (CONCURRENT, *LOADING))
    assert error() == 22
    producer.ends(commit=False)


def test_transactions_are_listed(producer: Producer, ledger: str) -> None:
    wire = producer.wire

    def listed(*states: str) -> dict[str, str]:
        found = wire.ask("list_transactions", 1, state_filters=states, duration_filter=-1)
        return {each.transactional_id: each.transaction_state for each in found.transaction_states}

    name = producer.transactional_id
    assert listed()[name] == "Empty"
    producer.sends(ledger, b"value")
    assert listed("Ongoing")[name] == "Ongoing"
    (state,) = wire.ask("describe_transactions", 0, transactional_ids=[name]).transaction_states
    assert (state.producer_id, state.producer_epoch) == (producer.id, producer.epoch)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [(ledger, (0,))]
    (active,) = (
        wire.ask("describe_producers", 0, topics=[{"name": ledger, "partition_indexes": [0]}])
        .topics[0]
        .partitions[0]
        .active_producers
    )
    assert (active.producer_id, active.current_txn_start_offset) == (producer.id, 0)
    producer.ends(commit=True)
    eventually(lambda: listed("CompleteCommit").get(name) == "CompleteCommit")
