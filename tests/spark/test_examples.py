"""The pipelines under examples/, run as they are, with results that are computed here in plain Python."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Message

from ottla.pipelines.project import find
from ottla.pipelines.reports import LineReport
from ottla.pipelines.run import Wishes, run
from tests.spark.committed import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Broker

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"
Total = tuple[str, datetime, int, float]


def load_shop() -> Any:
    spec = importlib.util.spec_from_file_location("shop", EXAMPLES / "shop.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


shop = load_shop()


class Example:
    """A copy of an example that reads and writes topics of its own."""

    def __init__(self, name: str, folder: Path, spark: SparkSession, broker: Broker, *topics: str) -> None:
        self.root = folder / name
        shutil.copytree(
            EXAMPLES / name, self.root, ignore=shutil.ignore_patterns(".ottla", "out", "__pycache__")
        )
        self._spark, self.broker = spark, broker
        self.topics = {topic: broker.topic(partitions=2) for topic in topics}
        rename_topics(self.root / "pipeline.py", self.topics)

    def send(self, topic: str, lines: Iterable[str]) -> None:
        each = list(lines)
        for partition in range(2):
            values = [line.encode() for line in each[partition::2]]
            self.broker.send(self.topics[topic], values, partition=partition)

    def run(self) -> None:
        project = find(self.root, bootstrap=self.broker.bootstrap)
        assert not run(project, self._spark, LineReport(), Wishes(available_now=True))

    def read(self, topic: str) -> list[Message]:
        return records(self.broker.bootstrap, self.topics[topic])


def rename_topics(pipeline: Path, names: dict[str, str]) -> None:
    text = pipeline.read_text()
    for topic, real in names.items():
        text, count = re.subn(rf'(topic\(\s*|dead_letter=)"{re.escape(topic)}"', rf'\1"{real}"', text)
        assert count == 1
    pipeline.write_text(text)


def parsed(lines: Iterable[str]) -> dict[int, dict[str, Any]]:
    """The orders by their number, without repetitions and broken lines."""
    return {order["id"]: order for line in lines if line not in shop.BROKEN for order in [json.loads(line)]}


def totals_of(orders: Iterable[dict[str, Any]]) -> list[Total]:
    windows: dict[tuple[str, datetime], list[float]] = defaultdict(list)
    for order in orders:
        minute = datetime.fromisoformat(order["at"]).replace(second=0, microsecond=0)
        windows[order["customer"], minute].append(order["amount"])
    return sorted((*window, len(amounts), round(sum(amounts), 2)) for window, amounts in windows.items())


def written_totals(messages: Iterable[Message]) -> list[Total]:
    found = []
    for message in messages:
        total = json.loads(message.value())
        assert message.key().decode() == total["customer"]
        start = datetime.fromisoformat(total["window_start"])
        assert datetime.fromisoformat(total["window_end"]) - start == timedelta(minutes=1)
        found.append((total["customer"], start, total["orders"], total["amount"]))
    return sorted(found)


def closing_order(lines: Iterable[str]) -> str:
    """An order so much later that every window before it is final."""
    latest = max(datetime.fromisoformat(order["at"]) for order in parsed(lines).values())
    return json.dumps(
        {"id": -1, "customer": "nobody", "amount": 0.0, "at": (latest + timedelta(days=1)).isoformat()}
    )


def test_raw_events_become_parquet_files_and_what_is_no_event_a_dead_letter(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    example = Example("raw_to_parquet", tmp_path, spark, broker, "orders", "orders.dead")
    lines = list(shop.orders(600, seconds_apart=10))
    example.send("orders", lines[:300])
    example.run()
    example.send("orders", lines[300:])
    example.run()
    expected = parsed(lines)
    rows = spark.read.parquet(str(example.root / "out" / "orders")).collect()
    assert sorted(row.id for row in rows) == sorted(expected)
    for row in rows:
        order = expected[row.id]
        assert (row.customer, row.amount) == (order["customer"], order["amount"])
        assert row.hour == datetime.fromisoformat(order["at"]).hour
    assert {path.name for path in (example.root / "out" / "orders").glob("day=*")} == {"day=2026-01-01"}
    dead = example.read("orders.dead")
    assert sorted(message.value().decode() for message in dead) == sorted(
        each for each in lines if each in shop.BROKEN
    )
    for message in dead:
        assert example.topics["orders"].encode() in dict(message.headers()).values()


def test_windowed_totals_are_written_once_though_the_pipeline_was_restarted(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    example = Example("windowed_totals", tmp_path, spark, broker, "orders", "totals")
    lines = list(shop.orders(600))
    example.send("orders", lines[:250])
    example.run()
    early = written_totals(example.read("totals"))
    assert early  # windows that were final in the middle
    example.send("orders", [*lines[250:], closing_order(lines)])
    example.run()
    assert written_totals(example.read("totals")) == totals_of(parsed(lines).values())
    assert set(early) <= set(written_totals(example.read("totals")))


def test_changes_become_rows_of_a_delta_table(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    example = Example("changes_to_delta", tmp_path, spark, broker, "customers.changes", "prices")
    changes = list(shop.changes(200))
    # Twice and in the wrong order: only the version counts.
    example.send("customers.changes", [*reversed(changes[:120]), *changes[:50]])
    example.broker.send(example.topics["prices"], [b'{"price": 1.5}', b'{"price": 2.5}'], key="tea")
    example.broker.send(example.topics["prices"], [b'{"price": 3.0}'], key="rum")
    example.run()
    example.send("customers.changes", changes[120:])
    example.broker.send(example.topics["prices"], [None], key="rum")
    example.broker.send(example.topics["prices"], [b'{"price": 4.0}'], key="ink")
    example.run()
    expected: dict[int, dict[str, Any]] = {}
    for change in map(json.loads, changes):
        expected.pop(change["id"], None)
        if not change.get("deleted"):
            expected[change["id"]] = change
    rows = deltalake.DeltaTable(str(example.root / "out" / "customers")).to_pyarrow_table().to_pylist()
    found = {row["id"]: {"id": row["id"], **{k: row[k] for k in ("version", "name", "city")}} for row in rows}
    assert len(rows) == len(found)
    assert found == expected
    prices = deltalake.DeltaTable(str(example.root / "out" / "prices")).to_pyarrow_table().to_pylist()
    assert {row["key"]: row["price"] for row in prices} == {"tea": 2.5, "ink": 4.0}
