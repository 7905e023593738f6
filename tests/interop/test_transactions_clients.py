"""Transactions of three client libraries: what readers see, who is fenced, what becomes of the forgotten."""

from __future__ import annotations

import pytest
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaException
from kafka.errors import KafkaError as PythonKafkaError

from ottla.testing.history import Recorder, check
from tests.interop.crew import fetch_offsets
from tests.interop.requests import list_offset
from tests.interop.topics import Names, create_topic, eventually
from tests.interop.transactional import CLIENTS, Confluent, Reader, Transactional, drain, seen
from tests.interop.wire import Wire

ERRORS = (KafkaException, PythonKafkaError, AioKafkaError)
EACH_CLIENT = pytest.mark.parametrize("client", CLIENTS)


def no_anomalies(*recorders: Recorder) -> None:
    anomalies = check([event for recorder in recorders for event in recorder.events], drained=True)
    assert not anomalies, "\n".join(map(str, anomalies[:10]))


@EACH_CLIENT
def test_read_committed_sees_whole_transactions_and_nothing_else(
    quick: str, unique: Names, client: str
) -> None:
    topic = unique("ledger")
    create_topic(quick, topic, 3)
    partitions = [f"{topic}-{number}" for number in range(3)]
    first = Transactional(CLIENTS[client](quick, unique("one")), Recorder("first"))
    second = Transactional(CLIENTS[client](quick, unique("two")), Recorder("second"))
    with (
        first,
        second,
        Reader(quick, partitions, committed=True, name="committed") as reader,
        Reader(quick, partitions, committed=False, name="uncommitted") as other,
    ):
        committed: list[str] = []
        for number in range(10):
            # Two at a time, ended in the order in which they did not begin.
            for producer in (first, second):
                producer.begin()
                for partition in partitions:
                    producer.send(partition, f"{producer.name}/{partition}")
            for producer, commit in ((second, number % 3 != 0), (first, number % 4 != 0)):
                if commit:
                    producer.commit()
                    committed += [f"{producer.name}/{partition}" for partition in partitions]
                else:
                    producer.abort()
        reader.sees(committed)
        other.sees(
            f"{name}/{n}/{p}" for name in ("first", "second") for n in range(1, 11) for p in partitions
        )
    last = drain(quick, partitions, committed=True)
    assert seen(last) == set(committed)
    no_anomalies(first.recorder, second.recorder, reader.recorder, other.recorder, last)


@EACH_CLIENT
def test_the_older_of_two_producers_with_one_id_is_fenced(quick: str, unique: Names, client: str) -> None:
    topic, name = unique("ledger"), unique("id")
    create_topic(quick, topic)
    with Transactional(CLIENTS[client](quick, name), Recorder("older")) as older:
        older.begin()
        older.send(f"{topic}-0", "of the older")
        older.client.flush()
        with Transactional(CLIENTS[client](quick, name), Recorder("newer")) as newer:
            newer.begin()
            newer.send(f"{topic}-0", "of the newer")
            newer.client.flush()
            with pytest.raises(ERRORS):
                older.client.commit()
            older.recorder.end_transaction(older.name, commit=True).fail()
            newer.commit()
    last = drain(quick, [f"{topic}-0"], committed=True)
    assert seen(last) == {"of the newer"}
    no_anomalies(older.recorder, newer.recorder, last)


@EACH_CLIENT
def test_a_transaction_that_is_never_ended_is_aborted(quick: str, unique: Names, client: str) -> None:
    topic, name = unique("ledger"), unique("id")
    create_topic(quick, topic)
    with (
        Transactional(CLIENTS[client](quick, name, timeout_ms=2000), Recorder("hanging")) as hanging,
        Transactional(Confluent(quick, unique("id")), Recorder("behind")) as behind,
        Reader(quick, [f"{topic}-0"], committed=True, name="reader") as reader,
        Wire(quick) as wire,
    ):
        hanging.begin()
        hanging.send(f"{topic}-0", "of the hanging")
        hanging.client.flush()
        behind.begin()
        behind.send(f"{topic}-0", "behind it")
        behind.commit()
        assert list_offset(wire, topic, -1, isolation_level=1).offset == 0
        reader.sees(["behind it"])
        (described,) = wire.ask("describe_transactions", 0, transactional_ids=[name]).transaction_states
        assert described.transaction_state == "CompleteAbort"
        with pytest.raises(ERRORS):
            hanging.client.commit()
        hanging.recorder.end_transaction(hanging.name, commit=True).fail()
    last = drain(quick, [f"{topic}-0"], committed=True)
    no_anomalies(hanging.recorder, behind.recorder, reader.recorder, last)


@EACH_CLIENT
def test_offsets_come_with_their_transaction(quick: str, unique: Names, client: str) -> None:
    topic, group = unique("ledger"), unique("group")
    create_topic(quick, topic)
    test = Recorder("test")
    source = f"{topic}-0"

    def committed(*, stable: bool) -> int | None:
        return fetch_offsets(test, quick, group, [source], stable=stable)[source]

    with (
        Transactional(CLIENTS[client](quick, unique("id")), Recorder("producer")) as producer,
        Wire(quick) as wire,
    ):
        producer.begin()
        producer.send_offsets(group, {source: 5})
        assert committed(stable=False) is None
        asked = [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]
        (answer,) = wire.ask("offset_fetch", 8, groups=asked, require_stable=True).groups
        assert answer.topics[0].partitions[0].error_code == 88
        producer.abort()
        assert committed(stable=True) is None

        producer.begin()
        producer.send_offsets(group, {source: 7})
        producer.commit()
        assert committed(stable=True) == 7
        eventually(lambda: committed(stable=False) == 7)
    no_anomalies(producer.recorder, test)
