"""A pipeline on a cluster: a standalone master and two workers, from nothing but the installed packages."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from ottla.spark.java import java_home
from tests.spark.committed import records
from tests.spark.conftest import Broker
from tests.spark.test_examples import (
    EXAMPLES,
    closing_order,
    parsed,
    rename_topics,
    shop,
    totals_of,
    written_totals,
)

SECONDS = 240.0
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
SETTINGS = """\
[spark]
"spark.executor.memory" = "600m"
"spark.driver.memory" = "600m"
"spark.sql.shuffle.partitions" = 2
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


def environment() -> dict[str, str]:
    here = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **here}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a master that has two workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = stack.enter_context(
            daemon(folder / "master.log", "master.Master", "--port", str(port), "--webui-port", "0")
        )
        for number in (1, 2):
            work = folder / f"worker-{number}"
            words = (
                "--cores",
                "1",
                "--memory",
                "700m",
                "--webui-port",
                "0",
                "--work-dir",
                str(work),
                address,
            )
            stack.enter_context(daemon(folder / f"worker-{number}.log", "worker.Worker", *words))
        until = time.monotonic() + SECONDS
        log = folder / "master.log"
        while log.read_text().count("Registering worker") < 2:
            assert master.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield address


@contextmanager
def daemon(log: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_pipeline_runs_on_a_cluster_as_it_runs_on_one_machine(broker: Broker, tmp_path: Path) -> None:
    orders, totals = broker.topic(partitions=2), broker.topic(partitions=2)
    project = tmp_path / "windowed_totals"
    shutil.copytree(EXAMPLES / "windowed_totals", project, ignore=shutil.ignore_patterns(".ottla"))
    rename_topics(project / "pipeline.py", {"orders": orders, "totals": totals})
    (project / "pipeline.toml").write_text(SETTINGS)
    lines = list(shop.orders(1000))
    for partition in (0, 1):
        values = [line.encode() for line in [*lines, closing_order(lines)][partition::2]]
        broker.send(orders, values, partition=partition)
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(project), "--available-now", "--json"]
    with cluster(tmp_path) as master:
        done = subprocess.run(
            [*command, "--master", master, "--bootstrap", broker.bootstrap],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    finished = json.loads(done.stdout.splitlines()[-1])
    assert finished["event"] == "finished"
    assert [each["state"] for each in finished["flows"]] == ["done"]
    executors = {path.parent.parent.name for path in tmp_path.glob("worker-*/app-*/*")}
    assert executors == {"worker-1", "worker-2"}
    assert written_totals(records(broker.bootstrap, totals)) == totals_of(parsed(lines).values())
