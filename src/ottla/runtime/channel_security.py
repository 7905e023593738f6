"""How this node makes itself known to the others: the client's side of a listener's `ssl.*` and `sasl.*`.

As in Kafka, a node speaks on another node's listener with what is set for its own listener of that name: the
key and the certificates to trust, and of the login module in `sasl.jaas.config` the options `username` and
`password`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.errors import BadSecurity
from ottla.client.security import PLAINTEXT, Security
from ottla.config.broker import BrokerSettings
from ottla.config.listener_security import uses_sasl, uses_tls
from ottla.config.listener_settings import listener_settings, mechanism_settings


def channel_security(
    settings: BrokerSettings,
    properties: Mapping[str, str],
    listener: str,
    protocol: str,
    *,
    to_controller: bool,
) -> Security:
    """What to do before a connection to a listener of this name is used. Raises `BadSecurity`."""
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    own = listener_settings(settings, properties, listener)
    asked = {"security.protocol": protocol}
    if uses_tls(protocol):
        asked |= _tls(own)
    if uses_sasl(protocol):
        asked |= _sasl(own, properties, listener, to_controller=to_controller)
    return Security.from_properties(asked)


def _tls(own: BrokerSettings) -> dict[str, str]:
    given = {
        "ssl.keystore.location": own.ssl_keystore_location,
        "ssl.keystore.key": own.ssl_keystore_key,
        "ssl.keystore.certificate.chain": own.ssl_keystore_certificate_chain,
        "ssl.key.password": own.ssl_key_password,
        "ssl.truststore.location": own.ssl_truststore_location,
        "ssl.truststore.certificates": own.ssl_truststore_certificates,
    }
    found = {name: value for name, value in given.items() if value is not None}
    found["ssl.endpoint.identification.algorithm"] = own.ssl_endpoint_identification_algorithm
    return found


def _sasl(
    own: BrokerSettings, properties: Mapping[str, str], listener: str, *, to_controller: bool
) -> dict[str, str]:
    name = "sasl.mechanism.controller.protocol" if to_controller else "sasl.mechanism.inter.broker.protocol"
    mechanism = (
        own.sasl_mechanism_controller_protocol if to_controller else own.sasl_mechanism_inter_broker_protocol
    )
    login = mechanism_settings(own, properties, listener, mechanism).sasl_jaas_config
    where = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    if login is None:
        raise BadSecurity(f"{name} is {mechanism}, and {where} does not say who this node is")
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
