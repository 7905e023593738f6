"""SCRAM credentials as Kafka keeps them (RFC 5802): never the password, only what proves that one knows it.

Whoever sets a password salts it and sends the result; the cluster keeps two keys that follow from that. Names
and passwords are UTF-8 without SASLprep, as in Kafka.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384


class ScramMechanism(IntEnum):
    """With the numbers that Kafka gives them on the wire and in the metadata log."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """`SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """What `hashlib` calls it: `sha256`."""
        return f"sha{self.name.rpartition('_')[2]}"


BY_NAME: Final = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
BY_NUMBER: Final = {int(mechanism): mechanism for mechanism in ScramMechanism}


class Keys(NamedTuple):
    """What is kept of a password, beside its salt and how often it was salted."""

    stored_key: bytes
    server_key: bytes


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds on purpose: not for the event loop of a broker."""
    import hashlib

    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def keys(mechanism: ScramMechanism, salted: bytes) -> Keys:
    import hashlib
    import hmac

    name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", name)
    return Keys(hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name))
