"""A stream of orders for `make demo`: a quiet hour, a rush, a quiet hour, and then the shop is closed."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterable

import shop
from confluent_kafka import KafkaError, Message, Producer

WAVES = ((3.0, 1_000), (3.0, 6_000), (6.0, 1_000))
"""For how many seconds, how many orders in each."""
ENCORE_SECONDS = 15.0
"""How much longer the last wave may be, on a slow machine, until enough batches have been seen."""
OPENING = 200
"""How many are sent before, so that Spark has something to do for its first batch, which is slow."""
TICK_SECONDS = 0.1
SECONDS_APART = 0.05
PATIENCE_SECONDS = 30.0


class FeedFailed(Exception):
    """The broker did not take an order."""


class Feed(threading.Thread):
    """Sends orders, and remembers what a pipeline should make of them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True, name="feed")
        self.sent: list[tuple[float, int]] = []
        """When, and how many lines until then: orders, their repetitions, and what is no order."""
        self.totals: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        """How many orders of each customer, and what they cost."""
        self.broken = 0
        self.is_enough = threading.Event()
        self.is_done = threading.Event()
        self.error: Exception | None = None
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self._next = self._lines = 0
        self._known: set[int] = set()

    @property
    def orders(self) -> int:
        return sum(count for count, _ in self.totals.values())

    def open(self) -> None:
        """The first few, for which Spark gets ready."""
        self._send_orders(OPENING)

    def run(self) -> None:
        try:
            for seconds, rate in WAVES:
                self._wave(seconds, rate)
            self._wave(ENCORE_SECONDS, WAVES[-1][1], self.is_enough)
            # One from the day after, so that every window before it is final. It is in no window that is.
            self._send(shop.orders(1, first=round(86_400 / SECONDS_APART), seconds_apart=SECONDS_APART))
        except Exception as error:
            self.error = error
        else:
            self.is_done.set()

    def _wave(self, seconds: float, rate: int, until: threading.Event | None = None) -> None:
        began = time.monotonic()
        for tick in range(round(seconds / TICK_SECONDS)):
            if until is not None and until.is_set():
                return
            time.sleep(max(0.0, began + tick * TICK_SECONDS - time.monotonic()))
            self._send_orders(round(rate * TICK_SECONDS))

    def _send_orders(self, count: int) -> None:
        lines = list(shop.orders(count, first=self._next, seconds_apart=SECONDS_APART))
        self._next += count
        for line in lines:
            if line in shop.BROKEN:
                self.broken += 1
                continue
            order = json.loads(line)
            if order["id"] not in self._known:
                self._known.add(order["id"])
                orders, amount = self.totals[order["customer"]]
                self.totals[order["customer"]] = orders + 1, amount + order["amount"]
        self._send(lines)

    def _send(self, lines: Iterable[str]) -> None:
        """Returns when the broker has them all. So one partition is never ahead of the other by more than a
        tick, and no order is later than the pipelines wait for."""
        for line in lines:
            self._producer.produce("orders", line, key=str(self._lines), on_delivery=self._delivered)
            self._lines += 1
        if waiting := self._producer.flush(PATIENCE_SECONDS):
            raise FeedFailed(f"{waiting:,} orders were not taken within {PATIENCE_SECONDS:.0f} s")
        if self.error is not None:
            raise self.error
        self.sent.append((time.monotonic(), self._lines))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.error = FeedFailed(f"an order was not taken: {error.str()}")
