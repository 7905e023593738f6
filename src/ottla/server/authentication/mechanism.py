"""What every mechanism of SASL is to an exchange."""

from __future__ import annotations

from typing import Protocol


class NotAuthenticated(Exception):
    """The client has not proved who it is. The message is for the client, and gives nothing away."""


class InvalidCredentials(NotAuthenticated):
    """As above, where Kafka keeps to itself what was wrong and names the mechanism instead."""


class Mechanism(Protocol):
    """One exchange of a mechanism, good for one attempt."""

    # Whose name was proved; empty until then.
    username: str

    def answer(self, token: bytes) -> bytes:
        """What to send to what a client says. Raises NotAuthenticated, after which the exchange is over."""
