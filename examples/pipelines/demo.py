"""The whole platform in one command, `make demo`: a broker, a stream of orders, two pipelines.

`windowed_totals` runs live and sums orders up from topic to topic, while they are sent: first few, then many,
then few. When all are read, `raw_to_parquet` files them. What both have made is compared with what was sent,
and there is a picture of throughput and lag.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import picture
import pyarrow.dataset
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from feed import WAVES, Feed
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import ottla
from ottla.pipelines.environment import open_session
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.progress import Batch
from ottla.pipelines.project import find
from ottla.pipelines.reports import LineReport, LiveReport
from ottla.pipelines.run import Wishes, run

HERE = Path(__file__).parent
LIVE, FILES = "windowed_totals", "raw_to_parquet"
ENOUGH_BATCHES = 6
LIMIT_SECONDS = 300.0  # far more than it takes; for when something hangs

console = Console(highlight=False)


class DemoFailed(Exception):
    """A part did not do what it should; the message says which."""


class Recorder:
    """Keeps what the pipelines report. Starts the feed when the live one has done its first batch, and ends
    that one when it has read everything."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.reads: list[picture.Read] = []
        self.until = time.monotonic() + LIMIT_SECONDS
        # Spark tells by the clock on the wall when a batch began.
        self.monotonic_at_epoch = time.monotonic() - time.time()
        self.is_stopping = False

    def saw(self, batch: Batch, note: Callable[[str], None]) -> None:
        began = datetime.fromisoformat(batch.timestamp).timestamp() + self.monotonic_at_epoch
        self.reads.append(picture.Read(batch.flow, began, began + batch.duration_ms / 1000, batch.rows_in))
        if batch.flow != LIVE:
            return
        if self.feed.ident is None:
            note(f"Spark is ready. Now {', then '.join(f'{rate:,}/s for {s:.0f} s' for s, rate in WAVES)}.")
            self.feed.start()
            return
        if len(self.reads) > ENOUGH_BATCHES:
            self.feed.is_enough.set()
        # Without new orders Spark runs one more batch, in which the last windows become final.
        read = sum(batch.offsets.get("orders", {}).values())
        if self.feed.is_done.is_set() and read == self.feed.sent[-1][1] and not batch.rows_in:
            self.is_stopping = True
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does: it stops after the batch

    def look(self) -> None:
        if self.feed.error is not None and not self.feed.is_alive():
            raise DemoFailed(f"the feed: {self.feed.error}")
        if time.monotonic() > self.until:
            raise DemoFailed(f"it is not done after {LIMIT_SECONDS:.0f} s")

    def report(self) -> LineReport:
        recorder = self
        kind = LiveReport if console.is_terminal else LineReport

        class Recording(kind):  # type: ignore[misc,valid-type]
            def batch(self, batch: Batch) -> None:
                super().batch(batch)
                recorder.saw(batch, self.note)

            def refresh(self) -> None:
                super().refresh()
                recorder.look()

            def note(self, text: str) -> None:
                super().note("everything is read" if recorder.is_stopping else text)

        return Recording()


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo").resolve()
    try:
        demonstrate(folder)
    except (DemoFailed, PipelineError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("it was interrupted")
    except Exception as error:
        console.print_exception()
        fail(f"{type(error).__name__}: {error}")


def fail(reason: str) -> NoReturn:
    console.print(f"demo failed: {reason}", style="bold red", markup=False, soft_wrap=True)
    sys.exit(1)


def demonstrate(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name in (LIVE, FILES):
        shutil.copytree(HERE / name, folder / name, ignore=shutil.ignore_patterns(".ottla", "out"))
    with ottla.Broker(data_dir=folder / "data") as broker:
        create_topic(broker.bootstrap, "orders", partitions=2)
        feed = Feed(broker.bootstrap)
        feed.open()
        recorder = Recorder(feed)
        say(f"A broker is on {broker.bootstrap}. Spark starts; its first batch takes some seconds.")
        live, files = (find(folder / name, bootstrap=broker.bootstrap) for name in (LIVE, FILES))
        spark = open_session(live, verbose=False)
        try:
            say(f"\n[bold]{LIVE}[/]: what each customer spends in a minute, from topic to topic, live")
            run(live, spark, recorder.report(), Wishes())
            if not recorder.is_stopping:
                raise DemoFailed("it was stopped before all orders were read")
            recorder.is_stopping = False
            say(f"[bold]{FILES}[/]: the same orders as Parquet files, by day and hour")
            run(files, spark, recorder.report(), Wishes(available_now=True))
        finally:
            spark.stop()
        show_totals(feed, broker.bootstrap)
        check_files(feed, folder / FILES / "out" / "orders", broker.bootstrap)
    words = {LIVE: f"{LIVE}, live", "orders_to_parquet": f"{FILES} --available-now"}
    picture.draw(folder / "throughput.png", feed.sent, recorder.reads, words)
    say(f"Throughput and lag: {folder / 'throughput.png'}")


def create_topic(bootstrap: str, name: str, *, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        created.result()


def show_totals(feed: Feed, bootstrap: str) -> None:
    rows = ottla.read_topic("totals", bootstrap=bootstrap, isolation_level="read_committed")
    windows: dict[str, int] = defaultdict(int)
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for value in rows.column("value").to_pylist():
        total = json.loads(value)
        orders, amount = found[total["customer"]]
        windows[total["customer"]] += 1
        found[total["customer"]] = orders + total["orders"], amount + total["amount"]
    table = Table(box=SIMPLE, header_style="bold cyan", pad_edge=False)
    for heading in ("customer", "minutes", "orders", "amount"):
        table.add_column(heading, justify="left" if heading == "customer" else "right")
    for customer, (orders, amount) in sorted(found.items()):
        table.add_row(customer, f"{windows[customer]:,}", f"{orders:,}", f"{amount:,.2f}")
    say("The topic totals, summed up:")
    console.print(table)
    if rounded(found) != rounded(feed.totals):
        raise DemoFailed(f"the topic totals should say {rounded(feed.totals)} and says {rounded(found)}")
    say(f"{feed.orders:,} orders were sent, some twice, and each was counted once.")


def rounded(totals: dict[str, tuple[int, float]]) -> dict[str, tuple[int, float]]:
    return {customer: (orders, round(amount, 2)) for customer, (orders, amount) in sorted(totals.items())}


def check_files(feed: Feed, folder: Path, bootstrap: str) -> None:
    rows = pyarrow.dataset.dataset(folder, partitioning="hive").to_table(columns=["id"])
    dead = ottla.read_topic("orders.dead", bootstrap=bootstrap, isolation_level="read_committed")
    # One more than in windows: the one from the day after.
    expected = (feed.orders + 1, feed.orders + 1, feed.broken)
    found = (rows.num_rows, len(rows.column("id").unique()), dead.num_rows)
    if found != expected:
        raise DemoFailed(f"files should have {expected} rows, different orders, dead letters; have {found}")
    files = len(list(folder.rglob("*.parquet")))
    say(
        f"The same orders, and the one that closed the last minute, are in {files} Parquet files below"
        f" {folder}; {dead.num_rows:,} lines that are no orders are in the topic orders.dead."
    )


def say(text: str) -> None:
    console.print(text, soft_wrap=True)


if __name__ == "__main__":
    main()
