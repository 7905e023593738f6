from __future__ import annotations

from pathlib import Path

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.project import Kind, find


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTTLA_BOOTSTRAP", "OTTLA_REGISTRY", "OTTLA_MASTER"):
        monkeypatch.delenv(name, raising=False)


def test_a_folder_is_known_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text("")
    found = find(tmp_path)
    assert (found.kind, found.file, found.name) == (Kind.PYTHON, tmp_path / "pipeline.py", tmp_path.name)
    assert found.checkpoints == str(tmp_path / ".ottla/checkpoints")


def test_a_declarative_pipeline_is_known_by_its_spec(tmp_path: Path) -> None:
    (tmp_path / "spark-pipeline.yml").write_text("name: x")
    assert find(tmp_path).kind is Kind.DECLARATIVE
    assert find(tmp_path / "spark-pipeline.yml").kind is Kind.DECLARATIVE


def test_a_file_can_be_named_itself(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("")
    found = find(tmp_path / "late.py")
    assert (found.root, found.name) == (tmp_path, "late")


@pytest.mark.parametrize(
    ("files", "path", "reason"),
    [
        ([], "", r"has no pipeline\.py"),
        (["pipeline.py", "spark-pipeline.yml"], "", r"spark-pipeline\.yml and pipeline\.py; name the one"),
        ([], "gone", "gone does not exist"),
        (["notes.txt"], "notes.txt", "is no pipeline"),
    ],
)
def test_what_is_no_project_is_said_so(tmp_path: Path, files: list[str], path: str, reason: str) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    with pytest.raises(PipelineError, match=reason):
        find(tmp_path / path)


def test_settings_come_from_the_file_the_environment_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline.py").write_text("")
    (tmp_path / "pipeline.toml").write_text(
        'bootstrap = "one:9092"\nregistry = "http://one"\nmaster = "local[1]"\ncheckpoints = "s3://bucket/x/"\n'
        '[spark]\n"spark.sql.shuffle.partitions" = 4\n"spark.ui.enabled" = true\n'
        '[kafka]\n"security.protocol" = "SSL"\n'
    )
    monkeypatch.setenv("OTTLA_REGISTRY", "http://two")
    found = find(tmp_path, master="local[3]", bootstrap=None, kafka={"ssl.ca.location": "ca.pem"})
    assert found.settings.bootstrap == "one:9092"
    assert found.settings.registry == "http://two"
    assert found.settings.master == "local[3]"
    assert found.checkpoints == "s3://bucket/x"
    assert found.settings.spark == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "true"}
    assert found.surroundings().connector_options() == {
        "kafka.bootstrap.servers": "one:9092",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.ca.location": "ca.pem",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("boot = 1", "boot is not known"),
        ("bootstrap = 9092", "bootstrap should be a text"),
        (
            "[spark]\nspark.ui.enabled = true",
            r"\[spark\] should hold plain values; names with dots want quotes",
        ),
        ("bootstrap", "pipeline.toml: "),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "pipeline.py").write_text("")
    (tmp_path / "pipeline.toml").write_text(text)
    with pytest.raises(PipelineError, match=reason):
        find(tmp_path)


def test_relative_paths_of_sinks_belong_to_the_project(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text("")
    surroundings = find(tmp_path).surroundings()
    assert surroundings.path("out/x") == str(tmp_path / "out/x")
    assert surroundings.path("/abs") == "/abs"
    assert surroundings.path("s3://bucket/x") == "s3://bucket/x"
