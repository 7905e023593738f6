"""Checks on single values that a range or a list of choices cannot express.

Each returns the reason a value is refused, or None. Some raise ConfigError themselves, where
Apache Kafka's message does not have the usual form.
"""

from __future__ import annotations

import re

from ottla.config.settings import ConfigError

_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_VOTER = re.compile(r"[0-9]+@.+:[0-9]+")
_HOST_AND_PORT = re.compile(r".+:[0-9]+")
_DURATION = re.compile(r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?", re.IGNORECASE)


def gzip_level(level: int) -> str | None:
    """A gzip level: 1 to 9, or -1 for the library's own."""
    return None if level == -1 or 1 <= level <= 9 else "Value must be between 1 and 9 or equal to -1"


def throttled_replicas(name: str, replicas: tuple[str, ...]) -> None:
    """A list of partition:broker pairs, or a lone star."""
    if replicas == ("*",) or all(_REPLICA.fullmatch(replica) for replica in replicas):
        return
    raise ConfigError(
        f"Invalid value [{', '.join(replicas)}] for configuration {name}: {name} must be the literal "
        "'*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def host_and_port_list(servers: tuple[str, ...]) -> str | None:
    """Entries of host:port."""
    for server in servers:
        if not _HOST_AND_PORT.fullmatch(server):
            return f'{server} is not in the form "{{host}}:{{port}}"'
    return None


def voter_list(voters: tuple[str, ...]) -> str | None:
    """Entries of id@host:port."""
    for voter in voters:
        if not _VOTER.fullmatch(voter):
            return f"{voter} is not in the form {{id}}@{{host}}:{{port}}"
    return None


def offset_reset(strategy: str) -> str | None:
    """Where a share group starts: earliest, latest, or a duration back."""
    if strategy in ("earliest", "latest"):
        return None
    prefix, colon, duration = strategy.partition(":")
    if prefix == "by_duration" and colon and _DURATION.fullmatch(duration):
        return None
    return (
        f"Invalid value `{strategy}` for configuration share.auto.offset.reset. The value must be either "
        "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )
