"""TLS on a listener: a context made of Kafka's `ssl.*` settings, and made again when their files change.

Keys and certificates are PEM, in a file or in the settings themselves; Java's own stores are refused with the
command that converts them. Imported only where a listener uses TLS.
"""

from __future__ import annotations

import logging
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ottla.config.broker import BrokerSettings
from ottla.config.settings import ConfigError, declared
from ottla.server.cipher_suites import choose_ciphers

logger = logging.getLogger("ottla.tls")

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}

_MADE_OF: Final = [
    each.attribute for each in declared(BrokerSettings).values() if each.name.startswith("ssl.")
]
_PEM: Final = "PEM"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.S)
_JAVA_STORES: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}


class Tls:
    """The context of a listener, as of now. `settings` are asked for whenever it is refreshed."""

    def __init__(
        self,
        listener: str,
        settings: Callable[[], tuple[BrokerSettings, str]],
        languages: tuple[str, ...] = (),
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._languages = languages
        self._made_of = self._now()
        self.context = self._made()

    def refresh(self) -> None:
        """Make the context again if what it is made of has changed. If it cannot be made, nothing changes."""
        now = self._now()
        if now == self._made_of:
            return
        self._made_of = now  # if it is no good there is one line about it, and no other until the next change
        try:
            self.context = self._made()
        except ConfigError as error:
            logger.error("certificates are as before listener=%s reason=%s", self._listener, error)
        else:
            logger.info("certificates were read again listener=%s", self._listener)

    def _made(self) -> ssl.SSLContext:
        context = make_context(*self._settings())
        if self._languages:
            context.set_alpn_protocols(list(self._languages))
        return context

    def _now(self) -> object:
        """Compares unequal to what it was when a setting or a file has changed."""
        settings, client_auth = self._settings()
        # What else is set, or altered while the broker runs, has nothing to do with it.
        own = [getattr(settings, attribute) for attribute in _MADE_OF]
        return own, client_auth, list(_stamps(settings))


def _stamps(settings: BrokerSettings) -> Iterator[tuple[int, int, int] | None]:
    for location in (settings.ssl_keystore_location, settings.ssl_truststore_location):
        if location is None:
            continue
        try:
            found = Path(location).stat()
        except OSError:
            yield None
        else:
            yield found.st_mtime_ns, found.st_size, found.st_ino


def make_context(settings: BrokerSettings, client_auth: str) -> ssl.SSLContext:
    """Raises ConfigError with one line that says what to do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _choose_versions(context, settings)
    choose_ciphers(context, settings.ssl_cipher_suites)
    _load_key(context, settings)
    _load_trusted(context, settings, client_auth)
    context.verify_mode = CLIENT_AUTH[client_auth]
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _choose_versions(context: ssl.SSLContext, settings: BrokerSettings) -> None:
    chosen = []
    for name in settings.ssl_enabled_protocols:
        if name not in VERSIONS:
            raise ConfigError(f"ssl.enabled.protocols: {name} is not offered: set {' or '.join(VERSIONS)}")
        chosen.append(VERSIONS[name])
    if not chosen:
        raise ConfigError(f"ssl.enabled.protocols: set {' or '.join(VERSIONS)}")
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)


def _load_key(context: ssl.SSLContext, settings: BrokerSettings) -> None:
    location, chain, key = (
        settings.ssl_keystore_location,
        settings.ssl_keystore_certificate_chain,
        settings.ssl_keystore_key,
    )
    # Never None, or OpenSSL would ask for the password at the terminal.
    password = settings.ssl_key_password or ""
    try:
        if chain is not None and key is not None:
            with _file_with(f"{_lines(key)}\n{_lines(chain)}\n") as file:
                context.load_cert_chain(file, password=password)
        elif location is not None:
            _require_pem("keystore", location, settings.ssl_keystore_type)
            context.load_cert_chain(location, password=password)
        else:
            raise ConfigError(
                "TLS needs a key and a certificate: set ssl.keystore.type=PEM and ssl.keystore.location, "
                "or ssl.keystore.key and ssl.keystore.certificate.chain"
            )
    except OSError as error:  # ssl.SSLError is one
        where = location if chain is None else "the text"
        raise ConfigError(f"ssl.keystore: {where} cannot be used: {_reason(error)}") from None


def _load_trusted(context: ssl.SSLContext, settings: BrokerSettings, client_auth: str) -> None:
    location, certificates = settings.ssl_truststore_location, settings.ssl_truststore_certificates
    try:
        if certificates is not None:
            context.load_verify_locations(cadata=_lines(certificates))
        elif location is not None:
            _require_pem("truststore", location, settings.ssl_truststore_type)
            context.load_verify_locations(cafile=location)
        elif client_auth != "none":
            # Java would take every authority that it comes with, which is hardly what was meant.
            raise ConfigError(
                f"ssl.client.auth={client_auth} needs the authority of the clients' certificates: set "
                "ssl.truststore.type=PEM and ssl.truststore.location, or ssl.truststore.certificates"
            )
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        where = location if certificates is None else "the text"
        raise ConfigError(f"ssl.truststore: {where} cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason is None:
        return "there is no PEM in it, or the password of the key is wrong"
    if isinstance(error, ssl.SSLError):
        return str(error.reason).lower().replace("_", " ")
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _require_pem(store: str, location: str, kind: str) -> None:
    """Refuses Java's key stores, by what a file begins with, whatever its type is said to be."""
    with Path(location).open("rb") as file:
        start = file.read(64)
    if start[:4] in _JAVA_STORES:
        kind = _JAVA_STORES[start[:4]]
    elif start[:1] == b"\x30":
        kind = "PKCS12"
    elif kind.upper() == _PEM or b"-----BEGIN" in start or start[:1].isascii():
        return
    source, first = location, ""
    if kind.upper() != "PKCS12":
        first = (
            f"keytool -importkeystore -srckeystore {location} -destkeystore store.p12 -deststoretype PKCS12, "
            "then "
        )
        source = "store.p12"
    what = "-nokeys " if store == "truststore" else ""
    raise ConfigError(
        f"ssl.{store}.location is a {kind} store, and this broker reads PEM: convert it with {first}"
        f"openssl pkcs12 -in {source} {what}-out {store}.pem, "
        f"and set ssl.{store}.type=PEM and ssl.{store}.location={store}.pem"
    )


def _lines(pem: str) -> str:
    """PEM that a property file has in one line, in lines of its own."""
    if "\n" in pem.strip():
        return pem
    blocks = []
    for name, base64 in _BLOCK.findall(pem):
        digits = "".join(base64.split())
        lines = [digits[start : start + 64] for start in range(0, len(digits), 64)]
        blocks += [f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""]
    return "\n".join(blocks)


@contextmanager
def _file_with(text: str) -> Iterator[str]:
    """A file with this text, for this user alone and gone at once: Python reads keys from files only."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(text)
        file.flush()
        yield file.name
