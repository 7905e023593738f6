"""`ottla pipeline` as a user runs it: a new project, its results, Ctrl-C, and Spark's own pipelines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ottla
from tests.spark.conftest import FOR_TESTS, Broker

PATIENCE_SECONDS = 240


class Command:
    """Runs `ottla pipeline ...` in a folder."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "OTTLA_BOOTSTRAP": self.broker.bootstrap, "OTTLA_MASTER": "local[2]"}
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "pipeline", *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        """What it prints on stdout and stderr; its exit code has to be the expected one."""
        process = self.start(*words)
        said, complaints = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code, complaints
        return said, complaints


@pytest.fixture
def command(broker: Broker, tmp_path: Path) -> Iterator[Command]:
    command = Command(broker, tmp_path)
    yield command
    for process in command.processes:
        with process:
            process.kill()


def quick(project: Path) -> None:
    """Settings for a Spark that has little to do."""
    settings = project / "pipeline.toml"
    chosen = {name: value for name, value in FOR_TESTS.items() if name != "spark.sql.warehouse.dir"}
    lines = [f'"{name}" = {json.dumps(value)}' for name, value in chosen.items()]
    settings.write_text(settings.read_text() + "\n".join(lines) + "\n")


def events(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.timeout(600)
def test_a_new_project_runs_as_it_is_and_goes_on_until_ctrl_c(command: Command) -> None:
    name = command.broker.process.unique("shop")
    assert "Next: cd" in command("init", name)[0]
    project = command.folder / name
    quick(project)
    assert "no flow has run yet" in command("status", name)[1]

    # Without --available-now, so that it runs until it is told to stop.
    process = command.start("run", name, "--json")
    assert process.stdout is not None
    batches: dict[str, dict[str, Any]] = {}
    for line in process.stdout:
        event = json.loads(line)
        assert event["event"] == "batch", (event, process.communicate())
        batches.setdefault(event["flow"], event)
        if len(batches) == 3:
            break
    assert len(batches) == 3, process.communicate()
    assert json.loads(command("status", name, "--json")[0])["run"]["pid"] == process.pid
    assert "is being run already" in command("run", name, code=1)[1]
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, complaints
    assert f"topic {name}-orders did not exist: made it, with 1,000 sample events" in complaints
    assert "stopping after the batch" in complaints
    assert (batches["orders"]["rows_in"], batches["orders"]["rows_out"]) == (1000, 996)
    assert batches["orders-dead-letter"]["rows_out"] == 4
    (finished,) = [event for event in events(said) if event["event"] == "finished"]
    names = {"orders", "orders-dead-letter", "totals"}
    assert {(flow["flow"], flow["state"]) for flow in finished["flows"]} == {(each, "done") for each in names}

    assert pq.read_table(project / "out/orders").num_rows == 996
    assert ottla.read_topic(f"{name}-orders.dead", bootstrap=command.broker.bootstrap).num_rows == 4
    status = json.loads(command("status", name, "--json")[0])
    assert status["run"] is None
    assert {flow["flow"] for flow in status["flows"]} == names
    assert all(flow["lag"] == {f"{name}-orders": 0} for flow in status["flows"])


@pytest.mark.timeout(600)
def test_a_declarative_pipeline_reads_a_topic_into_tables(command: Command) -> None:
    name = command.broker.process.unique("sdp")
    command("init", name, "--sdp", "-b", command.broker.bootstrap)
    quick(command.folder / name)
    said, _ = command("run", name)
    assert "Run is COMPLETED" in said
    orders = pq.read_table(command.folder / name / ".ottla/warehouse/orders")
    assert orders.num_rows == 996
    totals = pq.read_table(command.folder / name / ".ottla/warehouse/totals")
    assert sorted(totals["customer"].to_pylist()) == ["ada", "barbara", "edsger", "grace"]
    (flow,) = json.loads(command("status", name, "--json")[0])["flows"]
    assert (flow["flow"], flow["lag"]) == ("default.orders", {f"{name}-orders": 0})
