from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from ottla.pipelines import declarative
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.project import Project, find
from ottla.pipelines.templates import write_project
from tests.unit.pipelines.test_checkpoints import orders, write_checkpoint


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("OTTLA_MASTER", raising=False)
    write_project(tmp_path / "shop", declarative=True, bootstrap="b:1")
    return find(tmp_path / "shop")


def test_spark_s_own_command_line_is_run_in_our_environment(project: Project) -> None:
    words = declarative.command(project, dry=False, full_refresh=True)
    assert words[0] == sys.executable
    assert words[1].endswith("pyspark/pipelines/cli.py")
    assert words[2:] == ["run", "--spec", str(project.file), "--full-refresh-all"]
    assert declarative.command(project, dry=True, full_refresh=False)[2] == "dry-run"
    environment = declarative.environment(project, verbose=False)
    assert environment["SPARK_REMOTE"] == "local[*]"
    submitted = shlex.split(environment["PYSPARK_SUBMIT_ARGS"])
    assert "spark.python.unix.domain.socket.enabled=true" in submitted
    assert submitted[-1] == "pyspark-shell"


def test_a_master_that_is_no_spark_connect_server_is_refused(project: Project) -> None:
    with pytest.raises(PipelineError, match=r"Spark Connect server \(sc://host\), not on spark://head:7077"):
        declarative.environment(find(project.root, master="spark://head:7077"), verbose=False)


def test_what_it_prints_comes_line_by_line_and_a_failure_says_why(project: Project) -> None:
    code = "import sys; print('one'); print('two'); sys.stdout.flush(); raise ValueError('no table')"
    lines: list[str] = []
    with pytest.raises(PipelineError, match="the pipeline failed: ValueError: no table"):
        lines.extend(declarative.run([sys.executable, "-c", code], project, {}))
    assert lines[:2] == ["one", "two"]


def test_checkpoints_are_named_by_their_tables(project: Project) -> None:
    below = project.root / "storage/_checkpoints/spark_catalog/default/orders"
    write_checkpoint(below / "orders/0", [orders(1, 2)], 1)
    write_checkpoint(below / "late/0", [orders(1, 2)], 1)
    found = declarative.checkpoints(project)
    assert [each.name for each in found] == ["default.orders.late", "default.orders"]
    assert found[0].offsets(0) == {"orders": {0: 1, 1: 2}}
