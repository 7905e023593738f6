"""What Apache Kafka has no property for; every name starts with `ottla.`."""

from __future__ import annotations

from ottla.config.settings import setting, settings


@settings
class OwnSettings:
    """What Apache Kafka has no property for; every name starts with `ottla.`."""

    ottla_durability: str = setting(
        "durable",
        choices=("durable", "kafka"),
        about="When a write counts: durable waits for fdatasync before acks=all is answered, "
        "kafka leaves it in the page cache as Apache Kafka does.",
    )
    ottla_allow_insecure_listeners: bool = setting(
        False,
        about="Let listeners without authentication use addresses other than localhost; "
        "the same as `ottla serve --insecure`.",
    )
