"""An authority that makes certificates for one test, by the openssl program."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


class Authority:
    """`issue("server")` makes server.pem, with the key and the certificate of that name."""

    def __init__(self, home: Path, name: str = "authority") -> None:
        self.home = home
        self.pem = home / f"{name}.pem"
        self._key = home / f"{name}.key"
        openssl(
            *("req", "-x509", *CURVE, "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", self._key, "-out", self.pem),
        )

    def issue(self, name: str, subject: str | None = None, *, password: str | None = None) -> Path:
        key, asked, signed = (self.home / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        extensions = self.home / f"{name}.ext"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        protection = ("-nodes",) if password is None else ("-passout", f"pass:{password}")
        openssl(
            *("req", *CURVE, *protection, "-utf8", "-multivalue-rdn", "-subj", subject or f"/CN={name}"),
            *("-keyout", key, "-out", asked),
        )
        openssl(
            *("x509", "-req", "-in", asked, "-CA", self.pem, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", "2", "-extfile", extensions, "-out", signed),
        )
        pem = self.home / f"{name}.pem"
        pem.write_text(key.read_text() + signed.read_text())
        return pem

    def client_context(self, certificate: Path | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.pem)
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context


def openssl(*arguments: str | Path) -> None:
    done = subprocess.run(("openssl", *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
