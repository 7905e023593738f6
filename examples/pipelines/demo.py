"""The whole platform in one command, `make demo`: a broker, a stream of orders, two pipelines.

Orders are fed for some seconds. Meanwhile `windowed_totals` sums them up from topic to topic; then
`raw_to_parquet` files them. At the end there are two tables to read and a picture of throughput and lag.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import pyarrow.dataset
import shop
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

import ottla
from ottla.pipelines.environment import open_session
from ottla.pipelines.progress import Batch
from ottla.pipelines.project import find
from ottla.pipelines.reports import LineReport, LiveReport
from ottla.pipelines.run import Wishes, run

HERE = Path(__file__).parent
PIPELINES = ("windowed_totals", "raw_to_parquet")
SECONDS, ORDERS_PER_SECOND = 20, 2_000
TICKS_PER_SECOND = 10

console = Console()


class Feed(threading.Thread):
    """Sends orders at an even rate, and at the end one from the day after, so that every window is final."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.sent: list[tuple[float, int]] = []  # when, and how many until then
        self.is_done = threading.Event()

    def run(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 10})
        tick, count = ORDERS_PER_SECOND // TICKS_PER_SECOND, 0
        for number in range(SECONDS * TICKS_PER_SECOND):
            for line in shop.orders(tick, first=number * tick, seconds_apart=0.05):
                producer.produce("orders", line, key=str(count))
                count += 1
            producer.poll(1 / TICKS_PER_SECOND)
            self.sent.append((time.monotonic(), count))
        (last,) = shop.orders(1, first=86_400 * 20, seconds_apart=0.05)
        producer.produce("orders", last)
        producer.flush()
        self.is_done.set()


def recorder(feed: Feed, batches: list[tuple[float, Batch]]) -> LineReport:
    """A report that also keeps what it is told, and stops the live pipeline when it has read everything."""
    kind = LiveReport if console.is_terminal else LineReport

    class Recorder(kind):  # type: ignore[misc,valid-type]
        def batch(self, batch: Batch) -> None:
            batches.append((time.monotonic(), batch))
            super().batch(batch)
            is_live = batch.flow == PIPELINES[0]
            # Without new orders Spark runs one more batch, in which the last windows become final.
            if is_live and feed.is_done.is_set() and batch.rows_in == 0 and not any(batch.lag.values()):
                os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does: it stops after the batch

    return Recorder()


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    for name in PIPELINES:
        shutil.copytree(HERE / name, folder / name)
    with ottla.Broker(data_dir=folder / "data") as broker:
        console.print(f"a broker on {broker.bootstrap}, and {ORDERS_PER_SECOND:,} orders/s for {SECONDS} s")
        feed, batches = Feed(broker.bootstrap), list[tuple[float, Batch]]()
        live, files = (find(folder / name, bootstrap=broker.bootstrap) for name in PIPELINES)
        spark = open_session(live, verbose=False)
        began = time.monotonic()
        feed.start()
        try:
            run(live, spark, recorder(feed, batches), Wishes())
            run(files, spark, recorder(feed, batches), Wishes(available_now=True))
        finally:
            spark.stop()
        show_totals(broker.bootstrap)
        show_files(folder / "raw_to_parquet" / "out" / "orders", broker.bootstrap)
    picture = folder / "throughput.png"
    plot(picture, began, feed, batches)
    console.print(f"throughput and lag: {picture}")


def show_totals(bootstrap: str) -> None:
    rows = ottla.read_topic("totals", bootstrap=bootstrap, isolation_level="read_committed")
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    for value in rows.column("value").to_pylist():
        total = json.loads(value)
        for index, amount in enumerate((1, total["orders"], total["amount"])):
            sums[total["customer"]][index] += amount
    table = Table(title="topic totals: what each customer spent", box=None)
    for heading in ("customer", "minutes", "orders", "amount"):
        table.add_column(heading, justify="left" if heading == "customer" else "right")
    for customer, (minutes, orders, amount) in sorted(sums.items()):
        table.add_row(customer, f"{minutes:,}", f"{orders:,}", f"{amount:,.2f}")
    console.print(table)


def show_files(folder: Path, bootstrap: str) -> None:
    rows = pyarrow.dataset.dataset(folder, partitioning="hive").to_table(columns=["hour", "id"])
    hours = rows.group_by("hour").aggregate([("id", "count"), ("id", "count_distinct")]).sort_by("hour")
    table = Table(title=f"Parquet files: {rows.num_rows:,} orders", box=None)
    for heading in ("hour", "orders", "different"):
        table.add_column(heading, justify="right")
    for row in hours.to_pylist():
        table.add_row(str(row["hour"]), f"{row['id_count']:,}", f"{row['id_count_distinct']:,}")
    console.print(table)
    dead = ottla.read_topic("orders.dead", bootstrap=bootstrap, isolation_level="read_committed")
    console.print(f"and {dead.num_rows:,} lines that are no orders in the topic orders.dead")


def plot(picture: Path, began: float, feed: Feed, batches: list[tuple[float, Batch]]) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (rates, lags) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6), layout="constrained")
    each_second: dict[int, int] = {}
    before = 0
    for at, count in feed.sent:
        each_second[int(at - began)] = each_second.get(int(at - began), 0) + count - before
        before = count
    rates.step(list(each_second), list(each_second.values()), where="post", color="0.6", label="sent")
    for flow in dict.fromkeys(batch.flow for _, batch in batches):
        mine: list[tuple[float, Any]] = [(at - began, batch) for at, batch in batches if batch.flow == flow]
        times = [at for at, _ in mine]
        rates.plot(times, [batch.rows_in_per_second for _, batch in mine], "o-", ms=3, label=flow)
        lags.plot(times, [sum(batch.lag.values()) for _, batch in mine], "o-", ms=3, label=flow)
    rates.set_ylabel("records/s")
    rates.set_yscale("symlog", linthresh=100)
    lags.set_ylabel("records behind")
    lags.set_xlabel("seconds")
    rates.set_title("Throughput and lag of the pipelines")
    for axes in (rates, lags):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
