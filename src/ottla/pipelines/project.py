"""A pipeline's project: which kind it is, where its files are, and what its `pipeline.toml` says.

Three kinds:
  declarative  a folder with spark-pipeline.yml: Spark's own declarative pipeline
  flows        a Python file with flows, `pipeline.py` when a folder is named
  plain        a Python file without flows that starts its streaming queries itself

Settings come, the later the stronger, from pipeline.toml, the environment and the command line.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ottla.pipelines.context import DEFAULT_BOOTSTRAP, Surroundings
from ottla.pipelines.errors import PipelineError

SPEC_FILES = ("spark-pipeline.yml", "spark-pipeline.yaml")
FLOW_FILE = "pipeline.py"
SETTINGS_FILE = "pipeline.toml"
OWN_DIRECTORY = ".ottla"
_TEXTS = ("bootstrap", "registry", "checkpoints", "master")
_TABLES = ("spark", "kafka", "seed")


class Kind(StrEnum):
    """What is in the project's file. Whether a Python file has flows is only known once it was loaded."""

    DECLARATIVE = "declarative"
    PYTHON = "python"


@dataclass(frozen=True)
class Settings:
    """What pipeline.toml may say.

    spark: properties of the session. kafka: client properties such as security.protocol.
    seed: topics to fill with sample events if they do not exist, and the program that prints these.
    """

    bootstrap: str = DEFAULT_BOOTSTRAP
    registry: str | None = None
    checkpoints: str = f"{OWN_DIRECTORY}/checkpoints"
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    kafka: Mapping[str, str] = field(default_factory=dict)
    seed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """A project that was found."""

    kind: Kind
    root: Path
    file: Path
    settings: Settings

    @property
    def name(self) -> str:
        return self.root.name if self.file.name in (FLOW_FILE, *SPEC_FILES) else self.file.stem

    @property
    def checkpoints(self) -> str:
        """Where checkpoints are: a directory, or an address that Spark understands."""
        given = self.settings.checkpoints
        return given.rstrip("/") if "://" in given else str((self.root / given).resolve())

    def surroundings(self) -> Surroundings:
        return Surroundings(
            self.root, self.settings.bootstrap, self.settings.registry, dict(self.settings.kafka)
        )


def find(path: Path, *, kafka: Mapping[str, str] | None = None, **given: str | None) -> Project:
    """The project at a path: a folder or one of the files above. What is `given` overrides its settings, and
    `kafka` those client properties that it names."""
    if path.is_dir():
        root, file = path, _file_of(path)
    elif path.is_file():
        root, file = path.parent, path
    else:
        raise PipelineError(f"{path} does not exist; `ottla pipeline init NAME` makes a project")
    if file.name in SPEC_FILES:
        kind = Kind.DECLARATIVE
    elif file.suffix == ".py":
        kind = Kind.PYTHON
    else:
        raise PipelineError(
            f"{file} is no pipeline; name a Python file, {SPEC_FILES[0]} or a folder with one"
        )
    root = root.resolve()
    settings = read_settings(root, given)
    if kafka:
        settings = replace(settings, kafka={**settings.kafka, **kafka})
    return Project(kind, root, root / file.name, settings)


def _file_of(folder: Path) -> Path:
    found = [folder / name for name in (*SPEC_FILES, FLOW_FILE) if (folder / name).is_file()]
    if not found:
        raise PipelineError(
            f"{folder} has no {FLOW_FILE} and no {SPEC_FILES[0]}; `ottla pipeline init NAME` makes a project"
        )
    if len(found) > 1:
        names = " and ".join(each.name for each in found)
        raise PipelineError(f"{folder} holds {names}; name the one to run")
    return found[0]


def read_settings(root: Path, given: Mapping[str, str | None]) -> Settings:
    """pipeline.toml if there is one, then the environment, then what was given."""
    file = root / SETTINGS_FILE
    said: dict[str, Any] = {}
    if file.is_file():
        try:
            said = tomllib.loads(file.read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PipelineError(f"{file}: {error}") from None
        _check(file, said)
    environment = {"bootstrap": "OTTLA_BOOTSTRAP", "registry": "OTTLA_REGISTRY", "master": "OTTLA_MASTER"}
    for name, variable in environment.items():
        if os.environ.get(variable):
            said[name] = os.environ[variable]
    said.update({name: value for name, value in given.items() if value is not None})
    for name in _TABLES:
        said[name] = {key: _text(value) for key, value in said.get(name, {}).items()}
    return Settings(**said)


def _check(file: Path, said: Mapping[str, Any]) -> None:
    for name, value in said.items():
        if name in _TEXTS:
            if not isinstance(value, str):
                raise PipelineError(f"{file}: {name} should be a text")
        elif name in _TABLES:
            if not isinstance(value, dict) or any(isinstance(each, dict | list) for each in value.values()):
                raise PipelineError(
                    f"{file}: [{name}] should hold plain values; names with dots want quotes,"
                    ' such as "spark.sql.shuffle.partitions" = 4'
                )
        else:
            raise PipelineError(f"{file}: {name} is not known; there are {', '.join((*_TEXTS, *_TABLES))}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
