"""What a machine is told about time, and what a shell asks for it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970, for timestamps that are stored or shown."""

    def monotonic_ms(self) -> int:
        """Milliseconds from an arbitrary start that never go back, for timeouts."""
