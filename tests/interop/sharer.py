"""A member of a share group in a process of its own, so that it can be killed: librdkafka's ShareConsumer.

`python -m tests.interop.sharer OPTIONS`, with options as JSON (`tests.interop.crew` starts it). It writes
lines of JSON: what it was given (`delivered`), what it is about to accept (`accepting`), and what the broker
has taken as accepted (`accepted`). SIGTERM makes it leave.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer


@dataclass
class Options:
    bootstrap: str
    group: str
    topics: list[str]
    name: str
    history: str
    settings: dict[str, Any] = field(default_factory=dict)


class Sharer:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.running = True
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.running = False

    def run(self) -> None:
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self.options.bootstrap,
                "group.id": self.options.group,
                "share.acknowledgement.mode": "explicit",
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                **self.options.settings,
            }
        )
        consumer.subscribe(self.options.topics)
        with Path(self.options.history).open("w") as file:

            def note(word: str, values: list[str]) -> None:
                file.write(json.dumps({word: values}) + "\n")
                file.flush()

            while self.running:
                messages = [message for message in consumer.poll(0.1) if message.error() is None]
                if not messages:
                    continue
                values = [(message.value() or b"").decode() for message in messages]
                note("delivered", values)
                for message in messages:
                    consumer.acknowledge(message, AcknowledgeType.ACCEPT)
                note("accepting", values)
                results = consumer.commit_sync(10.0)
                failed = {(at.topic, at.partition) for at, error in results.items() if error is not None}
                note(
                    "accepted",
                    [
                        value
                        for message, value in zip(messages, values, strict=True)
                        if (message.topic(), message.partition()) not in failed
                    ],
                )
        consumer.close()


def main() -> None:
    Sharer(Options(**json.loads(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
