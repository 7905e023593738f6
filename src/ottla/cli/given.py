"""The properties a user gave to `ottla serve`, from all the places they can be given.

The weaker first: development defaults, property file, environment, --set, other options. An
error names the place it was found in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.config.broker import BrokerSettings, development_defaults
from ottla.config.listeners import SocketAddress, parse_address
from ottla.config.names import is_passed_through, refuse_removed
from ottla.config.properties import parse_properties
from ottla.config.settings import ConfigError, declared, unknown

ENVIRONMENT_PREFIX = "OTTLA_"


class Given(NamedTuple):
    """What the command line said."""

    config: Path | None = None
    assignments: tuple[str, ...] = ()
    port: int | None = None
    data_dir: Path | None = None
    insecure: bool = False


def properties(given: Given, environment: Mapping[str, str]) -> dict[str, str]:
    """Every property in force, with development defaults for what nobody gave. Raises ConfigError."""
    found = said(given, environment)
    return {**development_defaults(found), **found}


def said(given: Given, environment: Mapping[str, str]) -> dict[str, str]:
    """The properties that somebody gave. Raises ConfigError."""
    found: dict[str, str] = {}
    if given.config is not None:
        found |= _checked(str(given.config), _read(given.config))
    found |= from_environment(environment)
    found |= _checked("--set", dict(_assignment(each) for each in given.assignments))
    if given.data_dir is not None:
        found["log.dirs"] = str(given.data_dir)
    if given.insecure:
        found["ottla.allow.insecure.listeners"] = "true"
    if given.port is not None:
        found["listeners"] = _with_port(found, given.port)
    return found


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The properties that environment variables set. Raises ConfigError for a likely slip.

    Not every unknown variable is refused: where a Kubernetes service is called ottla, every
    container gets OTTLA_PORT, OTTLA_SERVICE_HOST and more.
    """
    names = {_variable(name): name for name in declared(BrokerSettings)}
    found: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if variable in names:
            found |= _checked(variable, {names[variable]: value})
        elif close := _closest(variable, names):
            raise ConfigError(f"environment variable {variable} sets no property; did you mean {close}?")
    return found


def _variable(name: str) -> str:
    upper = name.replace(".", "_").upper()
    return upper if upper.startswith(ENVIRONMENT_PREFIX) else ENVIRONMENT_PREFIX + upper


def _closest(variable: str, names: Mapping[str, str]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(variable, list(names), n=1, cutoff=0.9)
    return close[0] if close else None


def _read(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not a text file in UTF-8") from None
    try:
        return parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {text}: it should look like name=value")
    return name.strip(), value


def _checked(place: str, found: dict[str, str]) -> dict[str, str]:
    known = declared(BrokerSettings)
    try:
        for name, value in found.items():
            if name in known:
                known[name].parse(value)
            elif not is_passed_through(name):
                refuse_removed(name)
                raise unknown(name, known)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None
    return found


def _with_port(found: Mapping[str, str], port: int) -> str:
    """The listeners with the port that --port asks for, which has to be clear which one that is."""
    if "listeners" not in found:
        return f"PLAINTEXT://127.0.0.1:{port}"
    controllers = {name.strip().upper() for name in found.get("controller.listener.names", "").split(",")}
    listeners: list[SocketAddress] = [
        parse_address("listeners", text.strip()) for text in found["listeners"].split(",")
    ]
    clients = [each for each in listeners if each.name not in controllers]
    if len(clients) != 1:
        raise ConfigError(
            f"--port {port}: there are {len(clients)} listeners for clients, set listeners instead"
        )
    return ",".join(str(each._replace(port=port) if each is clients[0] else each) for each in listeners)
