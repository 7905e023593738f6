"""What a coordinator's machine may ask about the cluster's topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ottla.core.ids import Uuid


class Topics(Protocol):
    """The topics as the metadata log has them now. A topic that does not exist has no answer: None."""

    def partition_count(self, topic: str) -> int | None: ...
    def topic_id(self, topic: str) -> Uuid | None: ...
    def name_of(self, topic_id: Uuid) -> str | None: ...
    def names(self) -> Iterable[str]: ...

    def racks(self, topic: str, partition: int) -> frozenset[str]:
        """The racks of the brokers that hold a replica, as far as they have one."""
