"""Transactions whose coordinator goes away and comes back, stopped or killed, at any point.

Apache Kafka 4.3 cannot be the referee of kills: killed after a commit was acknowledged and before its markers
were written, it may start with a coordinator that knows the transaction before it knows the topic, takes the
partitions for deleted, and completes the transaction without markers. The next transaction then decides what
becomes of the records. Stopped properly it passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException

from ottla.testing.history import Recorder, check
from tests.interop.nodes import Node
from tests.interop.requests import list_offset
from tests.interop.topics import create_topic, eventually
from tests.interop.transactional import Confluent, Reader, Transactional, drain
from tests.interop.wire import Wire

PARTITIONS = ["ledger-0", "ledger-1", "ledger-2"]
GO_DOWN: list[Callable[[Node], object]] = [lambda node: node.stop(), lambda node: node.kill()]


@pytest.mark.parametrize("go_down", GO_DOWN, ids=["stopped", "killed"])
def test_a_transaction_goes_on_where_it_was(
    quick_node: Node, go_down: Callable[[Node], object], referee: bool
) -> None:
    """Three of them at once: one is committed afterwards, one aborted, and one belongs to nobody any more."""
    if referee and go_down is not GO_DOWN[0]:
        pytest.skip("Apache Kafka may forget markers when it is killed")
    bootstrap = quick_node.bootstrap
    create_topic(bootstrap, "ledger", 3)
    recorders = {name: Recorder(name) for name in ("commits", "aborts", "leaves")}
    producers = {
        name: Transactional(Confluent(bootstrap, name, timeout_ms=20_000), recorder)
        for name, recorder in recorders.items()
    }
    with Reader(bootstrap, PARTITIONS, committed=True, name="reader") as reader:
        for number in (1, 2):
            for producer in producers.values():
                producer.begin()
                for partition in PARTITIONS:
                    producer.send(partition, f"{producer.name}/{partition}")
                producer.client.flush()
            if number == 1:
                producers["leaves"].commit()
            go_down(quick_node)
            quick_node.start()
            producers["commits"].commit()
            producers["aborts"].abort()
        # Whoever comes after it with the same id ends what it left.
        heir = Transactional(Confluent(bootstrap, "leaves"), Recorder("heir"))
        heir.begin()
        heir.send(PARTITIONS[0], "of the heir")
        heir.commit()
        names = ("commits/1", "commits/2", "leaves/1")
        reader.sees(["of the heir", *(f"{name}/{partition}" for name in names for partition in PARTITIONS)])
    last = drain(bootstrap, PARTITIONS, committed=True)
    no_anomalies(*recorders.values(), heir.recorder, reader.recorder, last)


def test_transactions_are_whole_however_often_the_broker_is_killed(quick_node: Node, referee: bool) -> None:
    bootstrap = quick_node.bootstrap
    go_down = quick_node.stop if referee else quick_node.kill
    create_topic(bootstrap, "ledger", 3)
    producer = Transactional(Confluent(bootstrap, "steady"), Recorder("steady"))
    with Reader(bootstrap, PARTITIONS, committed=True, name="reader") as reader:
        for number in range(20):
            producer.begin()
            for partition in PARTITIONS:
                producer.send(partition, f"{producer.name}/{partition}")
            if number % 10 == 4:
                go_down()
                quick_node.start()
            end(producer, commit=number % 4 != 3)
            if number % 10 == 8:
                # Right after the answer: what was promised is not yet done in every partition.
                go_down()
                quick_node.start()
        with Wire(bootstrap) as wire:
            eventually(lambda: all(is_stable(wire, partition) for partition in range(3)))
        last = drain(bootstrap, PARTITIONS, committed=True)
    no_anomalies(producer.recorder, reader.recorder, last)


def is_stable(wire: Wire, partition: int) -> bool:
    """Whether no transaction is open any more."""
    ends = [list_offset(wire, "ledger", -1, isolation_level=level, partition=partition) for level in (0, 1)]
    return bool(ends[0].error_code == 0 and ends[0].offset == ends[1].offset)


def end(producer: Transactional, *, commit: bool) -> None:
    """What may be tried again is; what must be aborted is."""
    producer.client.flush()
    operation = producer.recorder.end_transaction(producer.name, commit=commit)
    while True:
        try:
            (producer.client.commit if commit else producer.client.abort)()
            operation.ok()
            return
        except KafkaException as raised:
            error: Any = raised.args[0]
            if error.txn_requires_abort():
                operation.info(error=error.name())
                end(producer, commit=False)
                return
            if not error.retriable():
                raise


def no_anomalies(*recorders: Recorder) -> None:
    anomalies = check([event for recorder in recorders for event in recorder.events], drained=True)
    assert not anomalies, "\n".join(map(str, anomalies[:10]))
