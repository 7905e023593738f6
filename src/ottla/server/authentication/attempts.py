"""How long an answer to a failed attempt is held back: the longer, the more of them an address has made.

Kafka waits `connection.failed.authentication.delay.ms` every time. That is the delay here too for the first
attempts; whoever goes on guessing waits twice as long after each further dozen, up to 32 times.
"""

from __future__ import annotations

from typing import Final

ATTEMPTS: Final = 12
DOUBLINGS_MAX: Final = 5
# Addresses remembered; the one that failed longest ago makes room.
ADDRESSES_MAX: Final = 10_000


class FailedAttempts:
    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def failed(self, address: str, delay_ms: int) -> int:
        """Note a failure. Answers the delay of its answer, in milliseconds."""
        count = self._counts.pop(address, 0)
        if len(self._counts) >= ADDRESSES_MAX:
            del self._counts[next(iter(self._counts))]
        self._counts[address] = count + 1
        return delay_ms << min(count // ATTEMPTS, DOUBLINGS_MAX)

    def succeeded(self, address: str) -> None:
        self._counts.pop(address, None)
