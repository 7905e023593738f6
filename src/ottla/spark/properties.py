"""Options as Spark hands them over, and the Kafka client properties among them.

Spark's option names know no case and arrive in lower case; a Kafka client property is an option with the
prefix `kafka.`, as in Spark's own Kafka connector. Which options exist, readers and writers know.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

PREFIX: Final = "kafka."


class BadOption(ValueError):
    """An option that is missing, unknown, contradictory or has a value that cannot be used."""


def split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """(options of the source itself, Kafka client properties without their prefix), names in lower case."""
    own: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, value in options.items():
        lower = name.lower()
        if lower.startswith(PREFIX):
            kafka[lower[len(PREFIX) :]] = value
        else:
            own[lower] = value
    return own, kafka


def refuse_unknown(
    given: Iterable[str], known: Collection[str], *, prefix: str = "", client: str = "consumer"
) -> None:
    """Raise for the first name that is not known, with the closest one that is."""
    lower = {name.lower(): name for name in known}
    for name in sorted(given):
        if name not in lower:
            close = difflib.get_close_matches(name, lower, n=1)
            advice = f"did you mean '{prefix}{lower[close[0]]}'?" if close else _advice(name, lower, client)
            raise BadOption(f"unknown option '{prefix}{name}': {advice}")


def _advice(name: str, lower: Mapping[str, str], client: str) -> str:
    if not name:
        return "it has no name"
    if len(lower) > 40:  # Kafka's own properties: too many to list
        return f"Kafka's {client} has no such property"
    return (
        f"the options are {', '.join(sorted(lower.values()))} and Kafka properties with the prefix 'kafka.'"
    )


def boolean(name: str, text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise BadOption(f"option '{name}' is true or false, not '{text}'")


def number(name: str, text: str, *, at_least: int) -> int:
    try:
        value = int(text.strip())
    except ValueError:
        raise BadOption(f"option '{name}' is a whole number, not '{text}'") from None
    if value < at_least:
        raise BadOption(f"option '{name}' is at least {at_least}, not {value}")
    return value
