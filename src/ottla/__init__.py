"""Ottla: a Kafka-compatible event streaming platform in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.arrow.topic import read_batches as read_batches
    from ottla.arrow.topic import read_topic as read_topic
    from ottla.server.broker import Broker as Broker

__version__ = "0.1.0"
__all__ = ["Broker", "__version__", "read_batches", "read_topic"]


def __getattr__(name: str) -> Any:
    # These are imported when they are asked for, so that `import ottla` costs nothing.
    if name == "Broker":
        from ottla.server.broker import Broker

        return Broker
    if name in ("read_batches", "read_topic"):
        try:
            from ottla.arrow import topic
        except ModuleNotFoundError as error:
            if error.name != "pyarrow":
                raise
            raise ImportError(f"{name} needs pyarrow: pip install 'ottla[arrow]'") from None
        return getattr(topic, name)
    raise AttributeError(f"module 'ottla' has no attribute {name!r}")
