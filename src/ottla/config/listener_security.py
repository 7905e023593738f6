"""What a listener asks of its clients: which mechanisms of SASL, whose passwords, whose certificates.

What Apache Kafka would do and this broker cannot is refused with a line that says what to set instead: a
listener that went on without it would let in whom its file keeps out, or keep out everybody.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker import BrokerSettings
from ottla.config.listener_settings import listener_settings, overrides
from ottla.config.settings import ConfigError, declared


def uses_sasl(protocol: str) -> bool:
    return protocol.startswith("SASL_")


def uses_tls(protocol: str) -> bool:
    return protocol.endswith("SSL")


def client_auth(settings: BrokerSettings, properties: Mapping[str, str], name: str, protocol: str) -> str:
    """`ssl.client.auth` of a listener.

    As in Kafka, where SASL tells who a client is it counts only when it is said for that very listener.
    """
    if uses_sasl(protocol) and "ssl.client.auth" not in dict(overrides(properties, name)):
        return "none"
    return settings.ssl_client_auth


def authenticates(settings: BrokerSettings, properties: Mapping[str, str], name: str, protocol: str) -> bool:
    """Whether nobody gets anywhere on this listener without having said, and proved, who they are."""
    if uses_sasl(protocol):
        return True
    own = listener_settings(settings, properties, name)
    return uses_tls(protocol) and client_auth(own, properties, name, protocol) == "required"


def check_security(
    settings: BrokerSettings, properties: Mapping[str, str], name: str, protocol: str
) -> BrokerSettings:
    """The settings of a listener, once it is known that this broker can keep them. Raises ConfigError."""
    own = listener_settings(settings, properties, name)
    if protocol != "PLAINTEXT":
        refuse_plug_ins(own, ("principal.builder.class",), name)
    if uses_tls(protocol):
        refuse_plug_ins(own, ("ssl.engine.factory.class",), name)
    if uses_sasl(protocol):
        from ottla.config.sasl import sasl_of

        sasl_of(own, properties, name)
    return own


def refuse_plug_ins(settings: BrokerSettings, names: tuple[str, ...], listener: str) -> None:
    for name in names:
        each = declared(BrokerSettings)[name]
        plug_in = getattr(settings, each.attribute)
        if plug_in and plug_in != each.default:
            raise ConfigError(
                f"{name}: plug-ins of Apache Kafka cannot be run, so listener {listener} would not do "
                f"what {plug_in} does"
            )
