"""Which requests are under way to whom, and how long to leave a node alone after a failure."""

from __future__ import annotations

from typing import Final

from ottla.raft.effects import Request, Send
from ottla.raft.membership import Address

# A pause doubles with every failure, this many times at most.
DOUBLINGS: Final = 4


class RequestManager:
    """At most one request of a kind is awaited from an address."""

    def __init__(self, timeout_ms: int, backoff_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._last_id = 0
        self._awaited: dict[tuple[Address, type[Request]], Send] = {}
        # When an address may be tried again, and how often in a row it has failed.
        self._ready_at: dict[Address, int] = {}
        self._failures: dict[Address, int] = {}

    def is_ready(self, to: Address, kind: type[Request], now_ms: int) -> bool:
        return (to, kind) not in self._awaited and self._ready_at.get(to, now_ms) <= now_ms

    def is_backing_off(self, to: Address, now_ms: int) -> bool:
        return self._ready_at.get(to, now_ms) > now_ms

    def is_awaiting(self, kind: type[Request]) -> bool:
        """Whether any node owes us an answer of this kind."""
        return any(awaited is kind for _, awaited in self._awaited)

    def ready_at(self, to: Address, kind: type[Request]) -> int | None:
        """When a request could be sent if nothing else happened; None if an answer has to come first."""
        return None if (to, kind) in self._awaited else self._ready_at.get(to, 0)

    def send(self, to: Address, node_id: int, request: Request) -> Send:
        self._last_id += 1
        sent = Send(self._last_id, to, node_id, request, self._timeout_ms)
        self._awaited[to, type(request)] = sent
        return sent

    def answered(self, sent: Send) -> bool:
        """Whether the answer is still awaited."""
        awaited = self._awaited.get((sent.to, type(sent.request)))
        if awaited is None or awaited.id != sent.id:
            return False
        del self._awaited[sent.to, type(sent.request)]
        return True

    def succeeded(self, to: Address) -> None:
        self._ready_at.pop(to, None)
        self._failures.pop(to, None)

    def back_off(self, to: Address, now_ms: int) -> None:
        """The node could not be reached, or had nothing useful to say: leave it alone for a moment."""
        failures = self._failures.get(to, 0)
        self._failures[to] = failures + 1
        self._ready_at[to] = now_ms + (self._backoff_ms << min(failures, DOUBLINGS))

    def forget(self) -> None:
        """We are in another state now: answers to what was asked before mean nothing any more."""
        self._awaited.clear()
