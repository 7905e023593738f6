"""`ssl.cipher.suites` for OpenSSL, which has names of its own for the suites of TLS 1.2.

Python leaves the suites of TLS 1.3 as they are. All three are good; a list with some of them cannot be
kept, and is refused. As in Java, a version of which no suite is named is not spoken.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

from ottla.config.settings import ConfigError

TLS_1_3: Final = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
_NAME: Final = re.compile(
    r"TLS_(?P<exchange>ECDHE_RSA|ECDHE_ECDSA|DHE_RSA|RSA)_WITH_(?P<cipher>\w+?)_(?P<hash>SHA\d*)"
)


def choose_ciphers(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    """Raises ConfigError."""
    if not suites:
        return
    newer = [name for name in suites if name in TLS_1_3]
    older = [openssl_name(name) for name in suites if name not in TLS_1_3]
    if newer and TLS_1_3 - set(newer) and context.maximum_version >= ssl.TLSVersion.TLSv1_3:
        raise ConfigError(
            "ssl.cipher.suites: the suites of TLS 1.3 can be had together only: "
            f"name all of {', '.join(sorted(TLS_1_3))}, or none"
        )
    if not newer:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise ConfigError("ssl.cipher.suites: it names no suite of the versions in ssl.enabled.protocols")
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites: OpenSSL has none of {', '.join(suites)}, or finds them too weak"
            ) from None


def openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384; OpenSSL's names stay."""
    match = _NAME.fullmatch(suite)
    if match is None:
        return suite
    exchange = "" if match["exchange"] == "RSA" else match["exchange"].replace("_", "-") + "-"
    cipher = match["cipher"].replace("AES_", "AES").removesuffix("_CBC").replace("_", "-")
    # Of CHACHA20-POLY1305 there is one only, so OpenSSL leaves the hash out.
    return f"{exchange}{cipher}" if "POLY1305" in cipher else f"{exchange}{cipher}-{match['hash']}"
