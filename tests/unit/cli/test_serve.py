"""`ottla serve` as its users see it: a real process, its output, its exit codes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ottla

SOURCE = str(Path(ottla.__file__).parents[1])
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")},
    "PYTHONPATH": SOURCE,
}


def command(data: Path, *arguments: str) -> list[str]:
    options = ["--data-dir", str(data), "--log-level", "warning", *arguments]
    if "--port" not in arguments:
        options += ["--port", "0"]
    return [sys.executable, "-m", "ottla", "serve", *options]


@contextmanager
def serving(data: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running broker and what it printed at its start."""
    process = subprocess.Popen(
        command(data), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "stop with" in line:
                break
        else:
            assert process.stderr is not None
            pytest.fail(f"the broker did not start: {process.stderr.read()}")
        yield process, "".join(lines)
    finally:
        process.kill()
        process.communicate()


def failing(*arguments: str, data: Path) -> tuple[int, str]:
    """The exit code and the complaint of a broker that cannot start."""
    done = subprocess.run(
        command(data, *arguments), env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_it_says_where_it_is_and_what_it_suggests_works(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as (process, announced):
        listening = re.search(r"listening on +(\S+)", announced)
        suggested = re.findall(r"(?:try|then) +(.*)", announced)
        assert listening and len(suggested) == 2
        assert str((tmp_path / "data").resolve()) in announced

        said = [
            subprocess.run(
                re.sub(r"\bottla\b", f"{sys.executable} -m ottla", each),
                shell=True,
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout
            for each in suggested
        ]
        assert said == ["", "hello\n"]

        process.send_signal(signal.SIGTERM)
        rest, complaints = process.communicate(timeout=60)
        assert (process.returncode, rest) == (0, "stopping\n")
        assert "Traceback" not in complaints


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        code, complaint = failing(data=tmp_path)
        assert code == 1
        assert re.fullmatch(r"ottla: .* in use by another broker.*\n", complaint)

        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        code, complaint = failing("--port", port, data=tmp_path)

    assert code == 1
    assert re.fullmatch(rf"ottla: port {port} .*in use.*\n", complaint)


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    code, complaint = failing(data=tmp_path / "file" / "data")

    assert code == 1
    assert complaint.startswith("ottla: ")
    assert str(tmp_path / "file") in complaint
    assert complaint.count("\n") == 1


_STUBBORN = """
import asyncio, signal
from ottla.cli.serve import _StopSignals

async def run():
    stop = _StopSignals()
    print("ready", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    await asyncio.Event().wait()

asyncio.run(run())
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_a_stop_that_hangs(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _STUBBORN], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == code
    finally:
        process.kill()
        process.communicate()


_STARTING = """
import asyncio, os, signal
from ottla.cli.serve import _StopSignals

async def run():
    _StopSignals()
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("gave up")
        raise

try:
    asyncio.run(run())
except asyncio.CancelledError:
    print("stopped")
"""


def test_a_signal_during_the_start_gives_the_start_up() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STARTING],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "gave up\nstopped\n"), done.stderr
