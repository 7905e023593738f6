"""One cell: the client program on one broker, and what the judge says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import uuid
from collections.abc import Sequence

from tools.interop.features import Feature
from tools.interop.judges.evidence import PARTS, Report
from tools.interop.stage import Stage
from tools.interop.traffic import Traffic
from tools.interop.wire import Wire
from tools.interop.witness import CLIENT_ID

CELL_SECONDS = 90.0


def run_cell(words: Sequence[str], feature: Feature, wire: Wire) -> tuple[list[str], list[str]]:
    """What is wrong, and what the client did without. Raises NotHere."""
    stage = Stage(wire.bootstrap, f"{feature.name}-{uuid.uuid4().hex[:8]}")
    try:
        feature.prepare(stage)
        wire.begin(aged=feature.aged)
        report = run_program(words, feature.name, stage)
        stage.traffic = Traffic(said for said in wire.exchanges if said.client_id != CLIENT_ID.decode())
        left_out = list(report.get("without", []))
        unknown = [f"nothing is known of {part!r}" for part in left_out if part not in PARTS]
        return feature.judge(stage, report) + unknown, left_out
    except NotHere:
        raise
    except ProgramFailed as error:
        return [str(error)], []
    except Exception as error:
        # A judge trips over a report without the parts it asks for: that is a failed cell, not a failed run.
        return [f"{type(error).__name__}: {error}"], []
    finally:
        wire.begin()
        with contextlib.suppress(Exception):
            stage.clear()


class NotHere(RuntimeError):
    """The program says that this machine lacks something for this feature: exit code 3."""


class ProgramFailed(RuntimeError):
    """The program ended badly, said nothing, or did not end."""


def run_program(words: Sequence[str], feature: str, stage: Stage) -> Report:
    process = subprocess.Popen(
        [*words, stage.bootstrap, feature, stage.name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=CELL_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        raise ProgramFailed(f"no end after {CELL_SECONDS:g} s: {tail(errors)}") from None
    if process.returncode == 3:
        raise NotHere(tail(errors))
    if process.returncode != 0:
        raise ProgramFailed(f"exit code {process.returncode}: {tail(errors)}")
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise ProgramFailed(f"no report: {output[-300:]}{tail(errors)}")
    report: Report = json.loads(lines[-1])
    return report


def tail(errors: str) -> str:
    lines = [line for line in errors.strip().splitlines() if line.strip()]
    return " / ".join(lines[-6:])[-900:]
