"""Who can log in to a new cluster, as `--add-scram` says it.

In Apache Kafka's words for `kafka-storage format`:

    SCRAM-SHA-256=[name=alice,password=secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="c2FsdA==",saltedpassword="..."]

A password on a command line is there for everybody on the machine to read, so it may also be in a file
(`password-file=/run/secrets/alice`) or in the environment (`password-env=ALICE_PASSWORD`).
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ottla.config.settings import ConfigError
from ottla.core.scram import BY_NAME, MAX_ITERATIONS, MIN_ITERATIONS, keys, salted_password
from ottla.protocol.stored.metadata import UserScramCredentialRecord

SALT_BYTES: Final = 32

_PARTS: Final = (
    "name",
    "password or password-file or password-env",
    "iterations",
    "salt",
    "saltedpassword",
)
_SHAPE: Final = "it should look like SCRAM-SHA-256=[name=alice,password=secret]"


def first_users(given: Iterable[str], environment: Mapping[str, str]) -> list[UserScramCredentialRecord]:
    """A credential for each. Raises ConfigError, which never tells the password."""
    made: dict[tuple[int, str], UserScramCredentialRecord] = {}
    for each in given:
        credential = _credential(each.strip(), environment)
        key = credential.mechanism, credential.name
        if key in made:
            raise ConfigError(f"--add-scram: {credential.name} is there twice")
        made[key] = credential
    return list(made.values())


def _credential(text: str, environment: Mapping[str, str]) -> UserScramCredentialRecord:
    name, equals, rest = text.partition("=")
    mechanism = BY_NAME.get(name)
    if not equals:
        raise ConfigError(f"--add-scram: {_SHAPE}")
    if mechanism is None:
        raise ConfigError(f"--add-scram: there is no mechanism {name}, only {' and '.join(BY_NAME)}")
    if not (rest.startswith("[") and rest.endswith("]")):
        raise ConfigError(f"--add-scram: {_SHAPE}")
    parts = _parts(rest[1:-1])
    user = parts.pop("name", "")
    if not user:
        raise ConfigError(f"--add-scram: a user needs a name; {_SHAPE}")
    iterations = _iterations(user, parts.pop("iterations", str(MIN_ITERATIONS)))
    salt = _base64(user, "salt", parts.pop("salt")) if "salt" in parts else None
    if "saltedpassword" in parts:
        if not salt:
            raise ConfigError(f"--add-scram: {user} has a saltedpassword, which needs its salt")
        salted = _base64(user, "saltedpassword", parts.pop("saltedpassword"))
        if not salted:
            raise ConfigError(f"--add-scram: the saltedpassword of {user} is empty")
    else:
        salt = salt or secrets.token_bytes(SALT_BYTES)
        salted = salted_password(mechanism, _password(user, parts, environment), salt, iterations)
    if parts:
        # Not told which: it may be what follows a comma in a password.
        raise ConfigError(f"--add-scram: {user} has a part too many; there are {', '.join(_PARTS)}")
    derived = keys(mechanism, salted)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=salt,
        stored_key=derived.stored_key,
        server_key=derived.server_key,
        iterations=iterations,
    )


def _parts(text: str) -> dict[str, str]:
    parts = {}
    for each in text.split(","):
        name, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--add-scram: {_SHAPE}, and a password with a comma in it goes into a file")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        parts[name.strip()] = value
    return parts


def _password(user: str, parts: dict[str, str], environment: Mapping[str, str]) -> str:
    if "password" in parts:
        password = parts.pop("password")
    elif "password-file" in parts:
        password = read_password(Path(parts.pop("password-file")))
    elif "password-env" in parts:
        variable = parts.pop("password-env")
        if variable not in environment:
            raise ConfigError(f"--add-scram: there is no environment variable {variable}")
        password = environment[variable]
    else:
        raise ConfigError(f"--add-scram: {user} needs a password, a password-file or a password-env")
    if not password:
        raise ConfigError(f"--add-scram: the password of {user} is empty")
    return password


def read_password(path: Path) -> str:
    """The first line of a file. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not text in UTF-8") from None
    return text.partition("\n")[0].removesuffix("\r")


def _iterations(user: str, text: str) -> int:
    if not text.isdecimal() or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ConfigError(
            f"--add-scram: the iterations of {user} should be from {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        )
    return int(text)


def _base64(user: str, name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ConfigError(f"--add-scram: the {name} of {user} is not base64") from None
