"""kafka-python's own integration tests, from its source distribution, against Ottla and Apache Kafka.

The distribution is fetched when it is wanted and stays below `.interop/`. Its tests take the address of a
running broker from the environment; what they need beside that and the distribution lacks is laid over it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from tools.broker_process import BrokerProcess, free_port
from tools.interop.brokers import PROPERTIES
from tools.interop.toolchains import HOME, NotAvailable, python_program, run
from tools.kafka.distribution import VERSION as KAFKA_VERSION
from tools.kafka.distribution import KafkaUnavailable, write_whole
from tools.kafka.node import KafkaNode

FILE = HOME / "suites.json"
SUITE_SECONDS = 1800.0

# What the tests take for granted: node 0 with advertised listeners, and sessions of half a second.
SUITE_PROPERTIES = PROPERTIES | {"num.partitions": "4", "group.min.session.timeout.ms": "100"}

LEFT_OUT = {
    "test_ssl_integration.py": "start brokers of their own with TLS, by the scripts of an Apache Kafka",
    "test_sasl_integration.py": "start brokers of their own with SASL, by the scripts of an Apache Kafka",
}
EXPECTED = {
    "test_alter_replica_log_dirs": "Ottla does not move a partition between log directories of a node",
}

# The distribution comes without the module that starts processes; with a broker that runs it is not used.
SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    pass
"""


@dataclass
class Suite:
    version: str
    ottla: dict[str, str] = field(default_factory=dict)
    kafka: dict[str, str] = field(default_factory=dict)
    not_run: str = ""


def run_suite(referee: bool) -> Suite:
    suite = Suite(version("kafka-python"))
    try:
        folder = fetch(suite.version)
        packages = python_program("kafka-python", "python-snappy")[1]
    except NotAvailable as error:
        suite.not_run = str(error)
        return suite
    port = free_port()
    own = {"node.id": "0", "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    settings = [f"{name}={value}" for name, value in {**SUITE_PROPERTIES, **own}.items()]
    with BrokerProcess(port=port, settings=settings) as ottla:
        suite.ottla = run_tests(folder, ottla.bootstrap, packages)
    if referee:
        try:
            with KafkaNode(node_id=0, properties=SUITE_PROPERTIES) as kafka:
                suite.kafka = run_tests(folder, kafka.bootstrap, packages)
        except KafkaUnavailable as error:
            print(f"no referee: {error}")
    return suite


def fetch(release: str) -> Path:
    home = HOME / "kafka-python-suite"
    folder = home / f"kafka_python-{release}"
    if not (folder / "test" / "service.py").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
        run([*pip, "--no-deps", "--no-binary", ":all:", f"kafka-python=={release}"], home)
        with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
            archive.extractall(home, filter="data")
        (folder / "test" / "__init__.py").touch()
        (folder / "servers" / KAFKA_VERSION / "kafka-bin").mkdir(parents=True)
        (folder / "test" / "service.py").write_text(SERVICE)
    return folder


def run_tests(folder: Path, bootstrap: str, packages: str) -> dict[str, str]:
    """The name of each test to passed, skipped, or what went wrong."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    name, _, path = packages.partition("=")
    left_out = [f"--ignore=test/integration/{file}" for file in LEFT_OUT]
    environment = {
        "KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_URI": f"kafka://{bootstrap}",
        # Plugins of this project's own tests have no business here.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        name: path,
    }
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    words += ["--timeout=120", "--tb=line", "--show-capture=no", f"--junitxml={report}", *left_out]
    subprocess.run(
        [*words, "test/integration"],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SUITE_SECONDS,
        check=False,
    )
    if not report.exists():
        raise RuntimeError("kafka-python's tests did not run at all")
    return {case.get("name", ""): outcome(case) for case in xml.parse(report).iter("testcase")}


def outcome(case: xml.Element) -> str:
    for child in case:
        if child.tag == "skipped":
            return "skipped"
        if child.tag in ("failure", "error"):
            return (child.get("message") or child.tag).splitlines()[0][:300]
    return "passed"


def failures(suite: Suite) -> list[str]:
    """Tests that fail or are not run here, pass on Apache Kafka, and for no reason that is known."""
    missing = [f"{name}: was not run" for name in suite.kafka if name not in suite.ottla]
    return missing + [
        f"{name}: {result}"
        for name, result in suite.ottla.items()
        if result not in ("passed", "skipped")
        and name not in EXPECTED
        and suite.kafka.get(name, "passed") == "passed"
    ]


def save(suite: Suite) -> None:
    write_whole(FILE, json.dumps(asdict(suite), indent=1) + "\n")


def load() -> Suite | None:
    return Suite(**json.loads(FILE.read_text())) if FILE.exists() else None
