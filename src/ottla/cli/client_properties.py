"""How commands reach a cluster that wants TLS or a password: Kafka's client properties.

They are given once, before the command, as `kafka-topics --command-config` and kcat's `-X` do it:

    ottla -X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN topic list
    ottla --client-config client.properties topic list
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.security import Security

_file: Path | None = None
_assigned: tuple[str, ...] = ()


def give(file: Path | None, assigned: tuple[str, ...]) -> None:
    """What the command line says, for the command that follows."""
    global _file, _assigned
    _file, _assigned = file, assigned


def security() -> Security:
    """What was given, read. Raises ConfigError, BadSecurity and Misused."""
    from ottla.client.security import Security

    return Security.from_properties(properties())


def properties() -> dict[str, str]:
    """What was given, by Kafka's names. Raises ConfigError and Misused."""
    from ottla.cli.given_values import assignments
    from ottla.cli.running import Misused
    from ottla.client.security import is_security_property
    from ottla.config.properties import parse_properties

    given: dict[str, str] = {}
    if _file is not None:
        given |= parse_properties(_file.read_text(encoding="utf-8"))
    chosen = assignments(_assigned, "-X")
    if others := [name for name in chosen if not is_security_property(name)]:
        raise Misused(f"-X {others[0]}: it takes security.*, ssl.* and sasl.*; the rest are options")
    return given | chosen
