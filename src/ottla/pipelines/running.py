"""Who runs a project: a file in it that is locked for as long as the run lives.

Two runs would share checkpoints and spoil both. The lock goes with the process, however that ends.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.project import OWN_DIRECTORY, Project


def _file(project: Project) -> Path:
    return project.root / OWN_DIRECTORY / f"{project.file.stem}.run"


@contextmanager
def held(project: Project) -> Iterator[None]:
    """Within this block the project is this process's. Raises PipelineError if it is another's."""
    path = _file(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = _said(path)
            raise PipelineError(
                f"{project.file} is being run already, by process {other.get('pid', 'unknown')}"
            ) from None
        file.truncate(0)
        json.dump({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}, file)
        file.flush()
        yield


def running(project: Project) -> dict[str, Any] | None:
    """`pid` and `since` of the run that is under way; None if there is none."""
    path = _file(project)
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return _said(path)
    return None


def _said(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
