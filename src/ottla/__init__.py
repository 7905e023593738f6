"""Ottla: a Kafka-compatible event streaming platform in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.server.broker import Broker as Broker

__version__ = "0.1.0"
__all__ = ["Broker", "__version__"]


def __getattr__(name: str) -> Any:
    # The broker is imported when it is asked for, so that `import ottla` costs nothing.
    if name == "Broker":
        from ottla.server.broker import Broker

        return Broker
    raise AttributeError(f"module 'ottla' has no attribute {name!r}")
