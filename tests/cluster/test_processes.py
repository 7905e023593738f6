"""`ottla serve --processes 3` as a user meets it: one command, a cluster, a node that dies and comes back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import cluster_state

SECONDS = 60.0


@pytest.fixture(autouse=True)
def only_ottla(referee: bool) -> None:
    if referee:
        pytest.skip("about Ottla's own command line")


def ottla(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_a_cluster_of_processes(tmp_path: Path) -> None:
    said = tmp_path / "said"
    command = [sys.executable, "-m", "ottla", "serve", "--processes", "3", "--port", "0"]
    command += ["--data-dir", str(tmp_path / "data"), "--log-level", "warning"]
    with said.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        says(said, "stop with")
        bootstrap = found(said, r"listening on +(\S+)")
        assert len(bootstrap.split(",")) == 3
        made = ottla("topic", "create", "orders", "-p", "3", "-b", bootstrap)
        assert "replication factor 3" in made.stdout, made.stderr
        assert ottla("produce", "orders", "-b", bootstrap, given="one\ntwo\n").returncode == 0
        described = ottla("topic", "describe", "orders", "-b", bootstrap).stdout
        assert "1,2,3" in described
        assert "min.insync.replicas=2" in (tmp_path / "data/node-1/server.properties").read_text()

        os.kill(int(found(said, r"kill -9 (\d+)")), signal.SIGKILL)
        says(said, "node 1 was ended by signal 9")
        assert ottla("produce", "orders", "-b", bootstrap, given="three\n").returncode == 0
        says(said, "node 1 is back")
        cluster_state.eventually(
            "all is well",
            lambda: ottla("cluster", "--check", "-b", bootstrap).returncode == 0,
            SECONDS,
        )
        read = ottla("consume", "orders", "-b", bootstrap, "--from", "beginning", "-n", "3").stdout
        assert sorted(read.split()) == ["one", "three", "two"]

        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0, said.read_text()[-3000:]
        assert "Traceback" not in said.read_text()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(SECONDS)


def says(said: Path, words: str) -> None:
    try:
        cluster_state.eventually(words, lambda: words in said.read_text(), SECONDS)
    except TimeoutError:
        raise AssertionError(f"it does not say {words!r}:\n{said.read_text()[-3000:]}") from None


def found(said: Path, pattern: str) -> str:
    match = re.search(pattern, said.read_text())
    assert match, said.read_text()[-3000:]
    return match.group(1)
