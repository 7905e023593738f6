"""Bootstrap addresses: `host:port`, several with commas between them."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.errors import BadAddress

DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(text: str) -> list[Address]:
    """The addresses of a bootstrap list; a port that is left out is Kafka's."""
    addresses = [_parse(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise BadAddress("the bootstrap address is empty; it should look like localhost:9092")
    return addresses


def _parse(text: str) -> Address:
    # Addresses are often pasted from a listener, with its protocol in front.
    host, separator, port = text.rpartition("://")[2].rpartition(":")
    if not separator or (text.endswith("]") and "[" in text):
        host, port = text.rpartition("://")[2], str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise BadAddress(f"{text!r} is no address of a broker; it should look like localhost:9092")
    return Address(host, int(port))
