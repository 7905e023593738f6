"""How a client makes itself known and its connection private, in Kafka's own property names.

`Security.from_properties` takes what a Java client would be given (`security.protocol`, `ssl.*`, `sasl.*`) or
librdkafka's names for the same things. Keys and certificates are PEM: a JKS or PKCS12 store is refused with
the command that converts it. The result is a plain value: it can be compared, pickled and sent to executors;
its TLS context is made where it is used.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

from ottla.client.errors import BadSecurity
from ottla.client.sasl import MECHANISMS

PREFIXES: Final = ("security.", "ssl.", "sasl.")
VERIFY: Final = "enable.ssl.certificate.verification"

_SAME: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
}
"""librdkafka's names, and Kafka's for the same."""

_READ: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.username",
        "sasl.password",
        "sasl.jaas.config",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.password",
        "ssl.key.location",
        "ssl.certificate.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        VERIFY,
    }
)
_WITHOUT_MEANING_HERE: Final = frozenset(
    {
        "security.providers",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.provider",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
    }
)
"""How Java makes TLS, which Python's ssl decides by itself."""

_JAAS: Final = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(required|requisite|sufficient|optional)\b(?P<options>.*);\s*", re.S
)
_JAAS_OPTION: Final = re.compile(
    r"""\s*(?P<name>[\w.]+)\s*=\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s;]+))"""
)


@dataclass(frozen=True, slots=True)
class Security:
    """What to do before a connection is used. `Security()` is a plain connection."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    ca_location: str | None = None
    ca_certificates: str | None = field(default=None, repr=False)
    certificate_location: str | None = None
    key_location: str | None = None
    certificate_chain: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    verify: bool = True

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context; None without TLS. Raises `BadSecurity` for a file that is no good."""
        return _context(self) if self.uses_tls else None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Security:
        """From Kafka's client properties; those that are not about security are passed over."""
        given = _about_security(properties)
        protocol = given.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise BadSecurity(
                f"security.protocol is {protocol}; it can be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"
            )
        found = cls(protocol)
        if found.uses_sasl:
            found = _with_sasl(found, given)
        return _with_tls(found, given) if found.uses_tls else found


PLAINTEXT: Final = Security()


def is_security_property(name: str) -> bool:
    """Whether a client property is for `Security.from_properties`."""
    return name.startswith(PREFIXES) or name == VERIFY


def _about_security(properties: Mapping[str, str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in properties.items():
        if not is_security_property(name) or name in _WITHOUT_MEANING_HERE:
            continue
        known = _SAME.get(name, name)
        if known not in _READ:
            raise BadSecurity(f"{name} is not supported: this client knows {_list(_READ)}")
        given[known] = value
    return given


def _with_sasl(found: Security, given: Mapping[str, str]) -> Security:
    mechanism = given.get("sasl.mechanism", "GSSAPI").upper()  # Kafka's default
    if mechanism not in MECHANISMS:
        said = "" if "sasl.mechanism" in given else ", the default,"
        raise BadSecurity(
            f"sasl.mechanism {mechanism}{said} is not supported: set it to {_list(MECHANISMS, ' or ')}"
        )
    username, password = given.get("sasl.username"), given.get("sasl.password")
    if "sasl.jaas.config" in given:
        options = _jaas_options(given["sasl.jaas.config"])
        username, password = options.get("username", username), options.get("password", password)
    if not username or password is None:
        raise BadSecurity(
            f"{mechanism} needs a name and a password: sasl.username and sasl.password, or sasl.jaas.config"
        )
    return replace(found, mechanism=mechanism, username=username, password=password)


def _jaas_options(text: str) -> dict[str, str]:
    """The options of a login module: `org...PlainLoginModule required username="a" password="b";`"""
    matched = _JAAS.fullmatch(text)
    options: dict[str, str] = {}
    position = 0
    rest = matched["options"] if matched else ""
    while matched and rest[position:].strip():
        option = _JAAS_OPTION.match(rest, position)
        if option is None:
            matched = None
            break
        quoted = option["double"] if option["double"] is not None else option["single"]
        options[option["name"]] = option["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        position = option.end()
    if matched is None:
        raise BadSecurity(
            "sasl.jaas.config cannot be read; it should look like "
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
        )
    return options


def _with_tls(found: Security, given: Mapping[str, str]) -> Security:
    for store in ("truststore", "keystore"):
        _require_pem(store, given)
    keystore = given.get("ssl.keystore.location")
    return replace(
        found,
        ca_location=given.get("ssl.truststore.location"),
        ca_certificates=given.get("ssl.truststore.certificates"),
        certificate_location=given.get("ssl.certificate.location", keystore),
        key_location=given.get("ssl.key.location", keystore),
        certificate_chain=given.get("ssl.keystore.certificate.chain"),
        key=given.get("ssl.keystore.key"),
        key_password=given.get("ssl.key.password", given.get("ssl.keystore.password")),
        check_hostname=given.get("ssl.endpoint.identification.algorithm", "https").lower() == "https",
        verify=given.get(VERIFY, "true").lower() != "false",
    )


def _require_pem(store: str, given: Mapping[str, str]) -> None:
    """Refuses Java's own key stores, by the type that is said and by what the file begins with."""
    location = given.get(f"ssl.{store}.location")
    kind = given.get(f"ssl.{store}.type", "PEM").upper()
    if location is not None and kind == "PEM":
        kind = _kind_of_store(location, f"ssl.{store}.location")
    if kind == "PEM":
        return
    source, first = location or f"{store}.jks", ""
    if kind != "PKCS12":
        first = f"keytool -importkeystore -srckeystore {source} -destkeystore store.p12 and then "
        source = "store.p12"
    what = "-nokeys " if store == "truststore" else ""
    raise BadSecurity(
        f"ssl.{store}.location is a {kind} store, and this client reads PEM. Convert it with "
        f"{first}openssl pkcs12 -in {source} {what}-out {store}.pem, "
        f"and set ssl.{store}.type=PEM and ssl.{store}.location={store}.pem"
    )


def _kind_of_store(location: str, name: str) -> str:
    try:
        with Path(location).open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise BadSecurity(f"{name} {location} cannot be read: {error.strerror}") from None
    if start in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"):
        return "JKS"
    return "PKCS12" if start[:1] == b"\x30" else "PEM"


@cache
def _context(security: Security) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.check_hostname and security.verify
    if not security.verify:
        context.verify_mode = ssl.CERT_NONE
    try:
        if security.ca_location or security.ca_certificates:
            context.load_verify_locations(cafile=security.ca_location, cadata=security.ca_certificates)
        else:
            context.load_default_certs()
        _load_certificate(context, security)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadSecurity(f"the certificates or the key cannot be read: {error}") from None
    return context


def _load_certificate(context: ssl.SSLContext, security: Security) -> None:
    """The client's own certificate, if it has one."""
    if security.certificate_location:
        context.load_cert_chain(
            security.certificate_location, security.key_location, security.key_password or ""
        )
    elif security.certificate_chain and security.key:
        # Python's ssl reads keys from files only; this one is readable by its owner alone, and gone at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{security.key}\n{security.certificate_chain}\n")
            file.flush()
            context.load_cert_chain(file.name, password=security.key_password or "")


def _list(names: Iterable[str], last: str = ", ") -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:-1]) + last + ordered[-1]
