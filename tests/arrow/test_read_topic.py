"""`ottla.read_topic`: a topic of a real broker, and of its files, as a table."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.transaction import IdempotentProducer, TransactionalProducer, end_transaction
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import OffsetOutOfRange, UnknownTopicOrPartition
from ottla.testing.broker import TestBroker

NOW_MS = time.time_ns() // 1_000_000
UTC = UTC

Read = Callable[..., pa.Table]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        yield broker


@pytest.fixture
def cluster(broker: TestBroker) -> Iterator[BlockingCluster]:
    with BlockingCluster(broker.bootstrap) as cluster:
        yield cluster


@pytest.fixture(params=["broker", "directory"])
def read(request: pytest.FixtureRequest, broker: TestBroker) -> Read:
    """Reads through the broker, and past it."""
    if request.param == "broker":
        where: dict[str, Any] = {"bootstrap": broker.bootstrap}
    else:
        where = {"directory": broker.data_dir}
    return lambda topic, **options: ottla.read_topic(topic, **where, **options)


def write(cluster: BlockingCluster, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> None:
    """One batch, a second between its records."""
    producer = IdempotentProducer.start(cluster)
    records = [
        Record(0, NOW_MS + 1000 * number, fields.get("key"), value, fields.get("headers", []))
        for number, value in enumerate(values)
    ]
    producer.produce({TopicPartition(topic, partition): write_batch(records, codec=fields.get("codec", 0))})
    producer.flush()
    producer.close()


@pytest.fixture
def orders(broker: TestBroker, cluster: BlockingCluster) -> str:
    """Two partitions: a to f in batches of three and of one, x and y in one."""
    topic = broker.topic("orders-" + broker.unique("topic"), partitions=2)
    write(cluster, topic, b"a", b"b", b"c", key=b"key", headers=[("trace", b"1"), ("empty", None)])
    for value in (b"d", b"e", b"f"):
        write(cluster, topic, value, codec=4)
    write(cluster, topic, b"x", b"y", partition=1)
    return topic


def values(table: pa.Table) -> str:
    return b"".join(table["value"].to_pylist()).decode()


def test_a_topic_is_a_table_of_the_columns_of_sparks_connector(read: Read, orders: str) -> None:
    table = read(orders)
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int32"),
        ("offset", "int64"),
        ("timestamp", "timestamp[us, tz=UTC]"),
        ("timestampType", "int32"),
    ]
    assert table.slice(1, 1).to_pylist() == [
        {
            "key": b"key",
            "value": b"b",
            "topic": orders,
            "partition": 0,
            "offset": 1,
            "timestamp": datetime.fromtimestamp((NOW_MS + 1000) / 1000, UTC),
            "timestampType": 0,
        }
    ]
    assert values(table) == "abcdefxy"
    assert table["offset"].to_pylist() == [0, 1, 2, 3, 4, 5, 0, 1]
    assert table["partition"].to_pylist() == [0] * 6 + [1] * 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"start": "latest"}, ""),
        ({"end": "earliest"}, ""),
        ({"start": 1}, "bcdefy"),
        ({"end": 1}, "ax"),
        ({"start": 1, "end": 2}, "by"),
        ({"start": 4, "end": 5}, "e"),
        ({"start": 5, "end": 100}, "f"),
        ({"start": 100}, ""),
        ({"start": {0: 2}}, "cdefxy"),
        ({"start": {0: "latest"}}, "xy"),
        ({"end": {1: 0}}, "abcdef"),
        ({"end": {0: 4, 1: "earliest"}}, "abcd"),
        ({"partitions": [1]}, "xy"),
        ({"partitions": [1, 0, 1], "start": 1, "end": 3}, "bcy"),
        ({"partitions": []}, ""),
    ],
    ids=str,
)
def test_a_range_is_read_by_offsets(read: Read, orders: str, options: dict[str, Any], expected: str) -> None:
    assert values(read(orders, **options)) == expected


def test_a_range_is_read_by_time(read: Read, orders: str) -> None:
    second = datetime.fromtimestamp((NOW_MS + 1000) / 1000, UTC)
    # By the first record of that time: those behind it may be older.
    assert values(read(orders, start=second)) == "bcdefy"
    assert values(read(orders, start=second + timedelta(microseconds=1))) == "cdef"
    assert values(read(orders, end=second)) == "ax"
    assert values(read(orders, start=second + timedelta(days=1))) == ""
    assert values(read(orders, end=second + timedelta(days=1))) == "abcdefxy"
    assert values(read(orders, start=timedelta(days=1))) == "abcdefxy"
    assert values(read(orders, start={0: second}, end={0: 2})) == "bxy"
    elsewhere = second.astimezone(timezone(timedelta(hours=5)))
    assert values(read(orders, start=elsewhere)) == "bcdefy"


def test_only_the_columns_asked_for_come_in_their_order(read: Read, orders: str) -> None:
    table = read(orders, columns=["offset", "headers", "value"], end=1, partitions=[0])
    assert table.to_pylist() == [
        {
            "offset": 0,
            "headers": [{"key": "trace", "value": b"1"}, {"key": "empty", "value": None}],
            "value": b"a",
        }
    ]
    assert read(orders, headers=True).column_names[-1] == "headers"
    assert read(orders, start="latest", columns=["key"]).schema == pa.schema([("key", pa.binary())])


def test_aborted_and_open_transactions_are_left_out_when_committed_records_are_wanted(
    read: Read, broker: TestBroker, cluster: BlockingCluster
) -> None:
    topic = broker.topic("transactions-" + broker.unique("topic"))
    partition = TopicPartition(topic, 0)
    write(cluster, topic, b"1")
    for value, end in ((b"2", True), (b"3", False), (b"4", True), (b"5", None), (b"6", None)):
        producer = TransactionalProducer.begin(cluster, broker.unique(f"t{topic}"), 60_000)
        producer.produce({partition: write_batch([Record(0, NOW_MS, None, value)])})
        producer.flush()
        producer.close()
        if end is not None:
            end_transaction(cluster, producer.handle, end)
    assert values(read(topic)) == "123456"
    assert values(read(topic, isolation_level="read_committed")) == "124"
    assert values(read(topic, isolation_level="read_committed", start=3)) == "4"


def test_what_does_not_fit_into_memory_comes_in_batches(broker: TestBroker, cluster: BlockingCluster) -> None:
    topic = broker.topic(partitions=2)
    for number in range(12):
        write(cluster, topic, bytes(900_000), partition=number % 2)
    batches = ottla.read_batches(topic, bootstrap=broker.bootstrap, columns=["partition", "offset"])
    first = next(batches)
    assert 0 < first.num_rows < 6
    rest = [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]
    assert [*zip(*first.to_pydict().values(), strict=True), *rest] == [
        (partition, offset) for partition in range(2) for offset in range(6)
    ]
    unfinished = ottla.read_batches(topic, bootstrap=broker.bootstrap)
    next(unfinished)
    unfinished.close()  # type: ignore[attr-defined]


def test_an_offset_that_is_gone_is_an_error_and_the_earliest_is_what_is_left(
    read: Read, broker: TestBroker, cluster: BlockingCluster
) -> None:
    from ottla.protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        DeleteRecordsTopic,
    )

    topic = broker.topic("gone-" + broker.unique("topic"))
    for value in (b"a", b"b", b"c"):
        write(cluster, topic, value)
    wanted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
    cluster.leader(TopicPartition(topic, 0)).ask(
        DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000), DeleteRecordsResponse
    )
    broker.restart()  # checkpoints the new start
    assert values(read(topic)) == "c"
    with pytest.raises(OffsetOutOfRange, match=rf"{topic}-0 holds offsets from 2 up to 3; 1 is gone"):
        read(topic, start=1)


def test_a_topic_that_is_not_there_is_said(read: Read, orders: str) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
        read("nowhere")
    for options in ({"partitions": [0, 7]}, {"start": {7: 0}}, {"end": {7: "latest"}}):
        with pytest.raises(UnknownTopicOrPartition, match="has no partition 7: it has 2"):
            read(orders, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"start": "first"}, "'first' is no position"),
        ({"start": -1}, "-1 is no position"),
        ({"start": True}, "True is no position"),
        ({"start": datetime(2026, 1, 1)}, "has no time zone"),
        ({"columns": ["vaule"]}, "no column 'vaule'"),
        ({"isolation_level": "serializable"}, "read_uncommitted or read_committed"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(
    read: Read, orders: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        read(orders, **options)


def test_the_table_goes_to_pandas_polars_and_duckdb(broker: TestBroker, orders: str) -> None:
    import duckdb
    import polars

    table = ottla.read_topic(orders, bootstrap=broker.bootstrap, headers=True)
    frame = table.to_pandas()
    assert frame[frame["partition"] == 1]["value"].tolist() == [b"x", b"y"]
    assert str(frame["timestamp"].dtype) == "datetime64[us, UTC]"
    counted = polars.from_arrow(table).group_by("partition").len().sort("partition")  # type: ignore[union-attr]
    assert counted.rows() == [(0, 6), (1, 2)]
    found = duckdb.sql("select partition, max(value)::varchar, count(*) from 'table' group by 1 order by 1")
    assert found.fetchall() == [(0, "f", 6), (1, "y", 2)]


def test_values_in_json_are_queried_with_duckdb(broker: TestBroker, cluster: BlockingCluster) -> None:
    import duckdb

    topic = broker.topic()
    write(cluster, topic, b'{"customer": "ann"}', b'{"customer": "J\xc3\xbcrgen"}', b'{"customer": "ann"}')
    orders = ottla.read_topic(topic, bootstrap=broker.bootstrap)
    assert orders.num_rows == 3
    found = duckdb.sql("select decode(value)::json->>'customer' as customer, count(*) from orders group by 1")
    assert dict(found.fetchall()) == {"ann": 2, "Jürgen": 1}


def test_without_pyarrow_the_way_to_get_it_is_said() -> None:
    program = (
        "import sys, ottla\n"
        "assert 'pyarrow' not in sys.modules\n"
        "sys.modules['pyarrow'] = None\n"
        "try: ottla.read_topic\n"
        "except ImportError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "read_topic needs pyarrow: pip install 'ottla[arrow]'\n"
