"""A small service: it reads orders, adds them up for each customer, and publishes the totals."""

from __future__ import annotations

import json
from collections import defaultdict

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer


class Totals:
    """Reads `orders`, writes `totals`. An order counts once its total is published."""

    def __init__(self, bootstrap: str, orders: str, totals: str, group: str = "totals") -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "retry.backoff.ms": 10,
                "client.id": "totals",
            }
        )
        self._consumer.subscribe([orders])
        self._topic = totals
        self.totals: defaultdict[str, int] = defaultdict(int)

    def run(self, count: int, seconds: float = 30) -> None:
        """Handle so many orders."""
        for _ in range(count):
            message = self._consumer.poll(seconds)
            if message is None:
                raise TimeoutError(f"no order within {seconds} s")
            if message.error():
                raise KafkaException(message.error())
            order = json.loads(message.value())
            self.totals[order["customer"]] += order["amount"]
            self._publish(order["customer"])
            self._consumer.commit(message, asynchronous=False)

    def _publish(self, customer: str) -> None:
        failures: list[KafkaError] = []
        self._producer.produce(
            self._topic,
            str(self.totals[customer]),
            key=customer,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        if self._producer.flush(30) or failures:
            raise KafkaException(failures[0] if failures else KafkaError(KafkaError._MSG_TIMED_OUT))

    def close(self) -> None:
        self._consumer.close()
