"""Which brokers the controller has heard from, and when.

Soft state: it is never written to the log, and a new controller starts by giving everyone a fresh session.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.metadata.cluster import BrokerRegistration

FAR_FUTURE_OFFSET = 2**63 - 1


class _Session:
    __slots__ = ("contact_ms", "epoch", "metadata_offset", "shutdown_offset")

    def __init__(self, epoch: int, contact_ms: int) -> None:
        self.epoch = epoch
        self.contact_ms = contact_ms
        self.metadata_offset = -1
        self.shutdown_offset = -1  # where its controlled shutdown is in the log, once it asked for one


class Sessions:
    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._by_broker: dict[int, _Session] = {}

    def start(self, brokers: Iterable[BrokerRegistration], now_ms: int) -> None:
        """Begin to keep sessions: every unfenced broker gets the benefit of the doubt."""
        self._by_broker = {
            broker.id: _Session(broker.epoch, now_ms) for broker in brokers if not broker.fenced
        }

    def heard(self, broker: int, epoch: int, metadata_offset: int, now_ms: int) -> None:
        session = self._by_broker.get(broker)
        if session is None or session.epoch != epoch:
            session = self._by_broker[broker] = _Session(epoch, now_ms)
        session.contact_ms = now_ms
        session.metadata_offset = metadata_offset

    def missed(self, broker: int, epoch: int, within_ms: int, now_ms: int) -> None:
        """Its connection broke, or its node seems dead. It lives if it is heard within this time."""
        session = self._by_broker.get(broker)
        if session is not None and session.epoch == epoch:
            session.contact_ms = min(session.contact_ms, now_ms + within_ms - self.timeout_ms)

    def end(self, broker: int) -> None:
        self._by_broker.pop(broker, None)

    def forgive(self, late_ms: int) -> None:
        """Extend every session: for that long it was the controller that was not listening."""
        for session in self._by_broker.values():
            session.contact_ms += late_ms

    def is_valid(self, broker: int, epoch: int, now_ms: int) -> bool:
        session = self._by_broker.get(broker)
        return (
            session is not None and session.epoch == epoch and now_ms <= session.contact_ms + self.timeout_ms
        )

    def is_shutting_down(self, broker: int) -> bool:
        return self.shutdown_offset(broker) >= 0

    def shutdown_offset(self, broker: int) -> int:
        session = self._by_broker.get(broker)
        return -1 if session is None else session.shutdown_offset

    def begin_shutdown(self, broker: int, offset: int) -> None:
        session = self._by_broker.get(broker)
        if session is not None and session.shutdown_offset < 0:
            session.shutdown_offset = offset

    def lowest_offset(self, active: Iterable[int]) -> int:
        """How far the slowest of these brokers has read the metadata log."""
        found = (self._by_broker[broker].metadata_offset for broker in active if broker in self._by_broker)
        return min(found, default=FAR_FUTURE_OFFSET)

    def deadline(self, unfenced: Iterable[int]) -> int | None:
        """When the first of these brokers will have been silent for too long."""
        contacts = [self._by_broker[broker].contact_ms for broker in unfenced if broker in self._by_broker]
        return min(contacts) + self.timeout_ms + 1 if contacts else None

    def expired(self, unfenced: Iterable[int], now_ms: int) -> int | None:
        """An unfenced broker that has been silent for too long. A broker without a session is one, too."""
        for broker in unfenced:
            session = self._by_broker.get(broker)
            if session is None or now_ms > session.contact_ms + self.timeout_ms:
                return broker
        return None
