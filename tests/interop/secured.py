"""A broker process with a listener of every security protocol, and what clients are told to reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.interop.nodes import Node
from tests.unit.server.authority import Authority
from tools.broker_process import BrokerProcess, free_port
from tools.kafka.node import KafkaNode

USER, PASSWORD = "ada", 'p"w;d, =1'
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "PASSWORDS": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "TLS": "SSL",
    "MUTUAL": "SSL",
}


class SecuredProcess(BrokerProcess):
    """`ottla serve` with a property file."""

    def arguments(self) -> list[str]:
        return [*self.command, "--config", str(self.home / "server.properties")]


class Secured:
    """The broker, the authority of its certificates, and the settings of its clients."""

    def __init__(self, home: Path, referee: bool, **properties: str) -> None:
        self.authority = Authority(home)
        self.authority.issue("server")
        self.certificate = self.authority.issue("client", "/O=Example/OU=Clients/CN=Ada")
        self.home = home
        self.ports = {name: free_port() for name in PROTOCOLS}
        wanted = {**self._properties(), **properties}
        self.node: Node
        if referee:
            kafka = KafkaNode(port=self.ports["PLAINTEXT"])
            controller = f"CONTROLLER://127.0.0.1:{kafka.controller_port}"
            wanted["listeners"] += f",{controller}"
            wanted["advertised.listeners"] += f",{controller}"
            wanted["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
            kafka.extra.update({name: _escaped(value) for name, value in wanted.items()})
            self.node = kafka
        else:
            process = SecuredProcess(port=self.ports["PLAINTEXT"])
            wanted["log.dirs"] = str(process.data_dir)
            lines = [f"{name}={_escaped(value)}\n" for name, value in wanted.items()]
            (process.home / "server.properties").write_text("".join(lines))
            self.node = process

    def start(self) -> None:
        self.node.start()
        admin = AdminClient({"bootstrap.servers": self.node.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
            )
            admin.alter_user_scram_credentials([change])[USER].result(30)

    def bootstrap(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def _properties(self) -> dict[str, str]:
        properties = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "advertised.listeners": ",".join(
                f"{name}://localhost:{port}" for name, port in self.ports.items()
            ),
            "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in PROTOCOLS.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.home / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.pem),
            "listener.name.mutual.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?),OU=Clients,.*$/$1/L,DEFAULT",
        }
        password = PASSWORD.replace('"', '\\"')
        for listener in ("passwords", "both"):
            prefix = f"listener.name.{listener}"
            properties[f"{prefix}.plain.sasl.jaas.config"] = (
                f'{PLAIN_MODULE} required user_{USER}="{password}" user_eve="apple";'
            )
            for mechanism in MECHANISMS[1:]:
                properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
        return properties

    # --- what clients are told -------------------------------------------------------------

    def librdkafka(self, listener: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap(listener),
            "security.protocol": PROTOCOLS[listener].lower(),
            "broker.address.family": "v4",
            "log_level": 0,
        }
        if "SSL" in PROTOCOLS[listener]:
            settings["ssl.ca.location"] = str(self.authority.pem)
        if "SASL" in PROTOCOLS[listener]:
            settings |= {"sasl.mechanisms": mechanism, "sasl.username": USER, "sasl.password": password}
        if listener == "MUTUAL":
            settings |= {
                "ssl.certificate.location": str(self.certificate),
                "ssl.key.location": str(self.certificate),
            }
        return settings

    def python(self, listener: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, Any]:
        """For aiokafka and kafka-python, which have the same names for these settings."""
        certificate = self.certificate if listener == "MUTUAL" else None
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap(listener),
            "security_protocol": PROTOCOLS[listener],
        }
        if "SSL" in PROTOCOLS[listener]:
            settings["ssl_context"] = self.authority.client_context(certificate)
        if "SASL" in PROTOCOLS[listener]:
            settings |= {
                "sasl_mechanism": mechanism,
                "sasl_plain_username": USER,
                "sasl_plain_password": password,
            }
        return settings

    def java(self, listener: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, str]:
        """A property file of a Java client, which is also what `ottla --client-config` takes."""
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        quoted = password.replace('"', '\\"')
        settings = {"security.protocol": PROTOCOLS[listener]}
        if "SSL" in PROTOCOLS[listener]:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.pem)}
        if "SASL" in PROTOCOLS[listener]:
            settings |= {
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f'{module} required username="{USER}" password="{quoted}";',
            }
        if listener == "MUTUAL":
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate)}
        return settings

    def java_file(self, listener: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> Path:
        path = self.home / f"{listener}-{mechanism}-{hash(password)}.properties"
        settings = self.java(listener, mechanism, password)
        path.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in settings.items()))
        return path


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
