"""Reaching a schema registry: where it is, and what goes wrong as one line with what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.cli import client_properties
from ottla.cli.running import Refused, guarded
from ottla.client.addresses import parse_bootstrap
from ottla.client.errors import Disconnected, Unreachable
from ottla.client.registry_exchange import Exchange, NoRegistry, Place, RegistryRefused, parse_url
from ottla.client.schema_registry import Registry
from ottla.client.security import Security

T = TypeVar("T")

# What to do next, by the registry's code.
_NEXT = {
    40301: "ask for the permission, or use another identity",
    40401: "`ottla schema list` shows the subjects there are",
    40402: "`ottla schema list` shows the versions there are",
    40404: "with --permanent it is removed for good",
    40406: "with --permanent it is removed for good",
    40901: "`ottla schema check` lists what speaks against it",
    42206: "remove what refers to it first",
}


def run(bootstrap: str, url: str | None, command: Callable[[Registry], T], *, timeout: float) -> T:
    """What the command answers; leaves the process with one line and a code if it fails.

    The registry is a broker of the bootstrap list, unless `url` says where another one is.
    """

    def connected() -> T:
        security = client_properties.security()
        places = _brokers(bootstrap, security) if url is None else [parse_url(url)]
        with Exchange(places, security=security, timeout=timeout) as exchange:
            try:
                return command(Registry(exchange))
            except RegistryRefused as error:
                raise Refused(f"{error}{_advice(error, security)}") from None
            except (Disconnected, NoRegistry) as error:
                raise Refused(f"{error}; {_where(url, security)}") from None
            except Unreachable as error:
                if url is None:
                    raise
                raise Refused(f"{error}; name another registry with --registry") from None

    return guarded(connected, bootstrap)


def _brokers(bootstrap: str, security: Security) -> list[Place]:
    scheme = "https" if security.uses_tls else "http"
    return [Place(scheme, address) for address in parse_bootstrap(bootstrap)]


def _advice(error: RegistryRefused, security: Security) -> str:
    if error.status in (401, 403) and security.uses_sasl:
        return f"; {_NO_SASL}"
    advice = _NEXT.get(error.code)
    return f"; {advice}" if advice else ""


def _where(url: str | None, security: Security) -> str:
    if url is not None:
        return "name another registry with --registry"
    if security.uses_sasl:
        return _NO_SASL
    return (
        "name a listener that has the HTTP door (ottla.doors) with --bootstrap, or a registry with --registry"
    )


_NO_SASL = (
    "the name and password of Kafka (SASL) do not go over HTTP: name a listener without SASL with "
    "--bootstrap, or a registry with --registry"
)
