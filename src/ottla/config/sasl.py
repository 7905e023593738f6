"""SASL on one listener: which mechanisms it takes, the users of PLAIN, and how long a session lasts.

Mechanisms that Apache Kafka has and this broker has not are refused, with what to set instead. Imported only
where a listener uses SASL.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from ottla.config.broker import BrokerSettings
from ottla.config.jaas import parse_jaas
from ottla.config.listener_security import refuse_plug_ins
from ottla.config.listener_settings import mechanism_settings
from ottla.config.settings import ConfigError, declared

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)
NOT_AVAILABLE: Final = ("GSSAPI", "OAUTHBEARER")

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_USER: Final = "user_"


class Sasl(NamedTuple):
    """SASL on one listener."""

    mechanisms: tuple[str, ...]
    # Of each user of PLAIN the SHA-256 of the password, so that nothing which prints this prints a secret.
    plain_users: Mapping[str, bytes]
    # How long a session lasts before its client has to authenticate again; 0 is for ever.
    session_ms: Mapping[str, int]
    receive_bytes_max: int
    failure_delay_ms: int


def sasl_of(own: BrokerSettings, properties: Mapping[str, str], name: str) -> Sasl:
    """SASL as the settings of a listener have it. Raises ConfigError."""
    where = f"listener.name.{name.lower()}"
    users: dict[str, bytes] = {}
    session_ms = {}
    if not own.sasl_enabled_mechanisms:
        raise ConfigError(f"{where}.sasl.enabled.mechanisms: name one of {', '.join(MECHANISMS)}")
    for mechanism in own.sasl_enabled_mechanisms:
        _check_mechanism(own, mechanism, name, where)
    for mechanism in own.sasl_enabled_mechanisms:
        settings = mechanism_settings(own, properties, name, mechanism)
        refuse_plug_ins(settings, ("sasl.server.callback.handler.class",), name)
        session_ms[mechanism] = max(0, settings.connections_max_reauth_ms)
        if mechanism == PLAIN:
            users = _plain_users(settings, f"{where}.plain.sasl.jaas.config")
        elif settings.sasl_jaas_config is not None:
            _options(settings.sasl_jaas_config, SCRAM_MODULE, f"{where}.{mechanism.lower()}.sasl.jaas.config")
    return Sasl(
        own.sasl_enabled_mechanisms,
        users,
        session_ms,
        own.sasl_server_max_receive_size,
        own.connection_failed_authentication_delay_ms,
    )


def _check_mechanism(own: BrokerSettings, mechanism: str, name: str, where: str) -> None:
    if mechanism in MECHANISMS:
        return
    choice = (
        f"set sasl.enabled.mechanisms, or {where}.sasl.enabled.mechanisms, to any of {', '.join(MECHANISMS)}"
    )
    if own.sasl_enabled_mechanisms == declared(BrokerSettings)["sasl.enabled.mechanisms"].default:
        raise ConfigError(
            f"listener {name} uses SASL, whose default mechanism GSSAPI is not available yet: {choice}"
        )
    if mechanism in NOT_AVAILABLE:
        raise ConfigError(f"sasl.enabled.mechanisms: {mechanism} is not available yet: {choice}")
    raise ConfigError(f"sasl.enabled.mechanisms: there is no mechanism {mechanism}: {choice}")


def _plain_users(settings: BrokerSettings, where: str) -> dict[str, bytes]:
    if settings.sasl_jaas_config is None:
        raise ConfigError(
            f'{where}: PLAIN needs its users, as in {PLAIN_MODULE} required user_alice="her password";'
        )
    options = _options(settings.sasl_jaas_config, PLAIN_MODULE, where)
    if options is None:
        raise ConfigError(f"{where}: there is no {PLAIN_MODULE} in it, which has the users of PLAIN")
    users = {
        option.removeprefix(_USER): sha256(password.encode()).digest()
        for option, password in options.items()
        if option.startswith(_USER)
    }
    if not users:
        raise ConfigError(
            f'{where}: it names no users, so nobody could log in: add user_alice="her password"'
        )
    return users


def _options(text: str, module: str, where: str) -> dict[str, str] | None:
    """The options of the first entry for this login module."""
    try:
        modules = parse_jaas(text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return next((each.options for each in modules if each.name == module), None)
