"""What Apache Kafka has no property for; every name starts with `ottla.`."""

from __future__ import annotations

from ottla.config.settings import setting, settings

DOORS = ("kafka", "grpc", "http", "text")


def _check_doors(entries: tuple[str, ...]) -> str | None:
    for entry in entries:
        if entry.rpartition(":")[2].lower() not in DOORS:
            return f"{entry} is not a door: there are {', '.join(DOORS)}, or LISTENER:door for one listener"
    return None


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
    ottla_doors: tuple[str, ...] = setting(
        (),
        check=_check_doors,
        about="Which languages listeners speak: kafka, grpc, http, text. `INTERNAL:grpc` is for the listener "
        "of that name only. Empty means all of them on localhost, and only kafka on other addresses.",
    )
    ottla_cluster_id: str = setting(
        "",
        about="The id of a cluster that is new, the same on every node. Empty means one that follows from "
        "the voters, or for a node alone one by chance.",
    )
