from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla import Broker
from ottla.cli.main import app
from ottla.client.blocking.cluster import BlockingCluster
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.project import Kind, find
from ottla.pipelines.running import held, running
from ottla.pipelines.templates import write_project


@pytest.mark.parametrize(("declarative", "kind"), [(False, Kind.PYTHON), (True, Kind.DECLARATIVE)])
def test_a_new_project_is_one(tmp_path: Path, declarative: bool, kind: Kind) -> None:
    written = write_project(tmp_path / "shop", declarative=declarative, bootstrap="broker:1")
    project = find(tmp_path / "shop")
    assert project.kind is kind
    assert project.settings.bootstrap == "broker:1"
    assert project.settings.seed == {"shop-orders": "events.py"}
    for file in written:
        text = file.read_text()
        assert "{name}" not in text
        if file.suffix == ".py":
            compile(text, str(file), "exec")


@pytest.mark.parametrize("declarative", [False, True])
def test_a_run_without_spark_makes_no_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declarative: bool
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with Broker() as broker:
        write_project(tmp_path / "shop", declarative=declarative, bootstrap=broker.bootstrap)
        result = CliRunner().invoke(app, ["pipeline", "run", str(tmp_path / "shop")])
        with BlockingCluster(broker.bootstrap) as cluster:
            assert cluster.topics() == {}
    assert result.exit_code == 1
    assert result.stderr == "ottla: pyspark is not installed; run: pip install 'ottla[spark]'\n"
    assert result.stdout == ""


def test_its_events_are_json_but_for_a_few(tmp_path: Path) -> None:
    write_project(tmp_path / "shop", declarative=False, bootstrap="b:1")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "shop" / "events.py")], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    bad = [line for line in lines if not line.startswith("{")]
    assert (len(lines), len(bad)) == (1000, 4)
    assert set(json.loads(lines[0])) == {"id", "customer", "amount", "at"}


def test_a_folder_that_exists_and_a_name_that_cannot_be_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="exists already"):
        write_project(tmp_path, declarative=False, bootstrap="b:1")
    with pytest.raises(PipelineError, match="cannot be a project's name"):
        write_project(tmp_path / "a b", declarative=False, bootstrap="b:1")


def test_one_process_at_a_time_runs_a_project(tmp_path: Path) -> None:
    write_project(tmp_path / "shop", declarative=False, bootstrap="b:1")
    project = find(tmp_path / "shop")
    assert running(project) is None
    with held(project):
        found = running(project)
        assert found is not None
        with (
            pytest.raises(PipelineError, match=f"is being run already, by process {found['pid']}"),
            held(project),
        ):
            pass
    assert running(project) is None
    with held(project):
        pass
