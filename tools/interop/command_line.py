"""Kafka's command line tools, of this release and of an older one, against Ottla and Apache Kafka."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from tools.broker_process import BrokerProcess
from tools.interop.toolchains import HOME
from tools.kafka.distribution import PROJECT, VERSION, KafkaUnavailable, jars, java, write_whole
from tools.kafka.node import KafkaNode

FILE = HOME / "tools.json"
RELEASES = (VERSION, "3.9.1")
SECONDS = 1800.0

Found = dict[str, dict[str, list[str]]]
"""Release of the tools, and broker, to what was wrong."""


def run_everything(referee: bool, say: Callable[[str], None]) -> Found | str:
    """Or why it could not be run."""
    try:
        jars(), java()
    except KafkaUnavailable as error:
        return str(error)
    nodes: dict[str, Callable[[], BrokerProcess | KafkaNode]] = {"Ottla": BrokerProcess}
    if referee:
        nodes["Apache Kafka"] = KafkaNode
    found: Found = {release: {} for release in RELEASES}
    for release in RELEASES:
        for name, node in nodes.items():
            with node() as broker:
                problems = run_tools(release, broker.bootstrap)
            found[release][name] = problems
            say(f"{'FAILED' if problems else 'ok':>6}  the tools of Kafka {release} work against {name}")
            for problem in problems:
                say(f"        {problem}")
    return found


def run_tools(release: str, bootstrap: str) -> list[str]:
    """In a process of its own, since a process knows one release."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.kafka", "tools", bootstrap],
        cwd=PROJECT,
        env=os.environ | {"KAFKA_VERSION": release},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = (done.stdout + done.stderr).strip().splitlines()
    return (said or [f"exit code {done.returncode}"]) if done.returncode else []


def save(found: Found) -> None:
    write_whole(FILE, json.dumps(found, indent=1) + "\n")


def load() -> Found | None:
    found: Found | None = json.loads(FILE.read_text()) if FILE.exists() else None
    return found
