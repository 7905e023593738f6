"""The bench must run, whatever its figures: a run of the smallest kind, Ottla alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.workload import Family


@pytest.mark.timeout(400)
def test_the_bench_measures_something_of_every_family(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--smoke", "--json", str(file)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(file.read_text())
    assert {row["family"] for row in results["rows"]} == {family.value for family in Family}
    assert all(
        value >= 0 for row in results["rows"] for values in row["samples"].values() for value in values
    )
    assert results["notes"] == []
    assert "Ottla" in done.stdout
    assert len(list(tmp_path.glob("*.png"))) == len(Family)
