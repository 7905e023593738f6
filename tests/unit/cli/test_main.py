"""The command line itself: commands, options, usage errors. No broker is started here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ottla
from ottla.cli.main import app

SOURCE = Path(ottla.__file__).parents[1]


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_version() -> None:
    assert invoke("--version") == (0, f"ottla {ottla.__version__}\n")


def test_help_names_every_option() -> None:
    code, output = invoke("serve", "--help")

    assert code == 0
    for option in ("--port", "--data-dir", "--config", "--set", "--log-level", "--insecure"):
        assert option in output


@pytest.mark.parametrize(
    "arguments",
    [
        ["serv"],
        ["serve", "--port", "x"],
        ["serve", "--port", "65536"],
        ["serve", "--log-level", "loud"],
        ["serve", "--no-such-option"],
    ],
)
def test_bad_usage_exits_with_2(arguments: list[str]) -> None:
    code, output = invoke(*arguments)

    assert code == 2
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--set", "num.partition=1"],
            "ottla: --set: unknown property num.partition; did you mean num.partitions?",
        ),
        (["--config", "/no/such/file"], "ottla: cannot read /no/such/file: No such file or directory"),
        (
            ["--set", "listeners=PLAINTEXT://:9092"],
            "ottla: listener PLAINTEXT://:9092 opens port 9092 on every",
        ),
        (
            ["--set", "listeners=SASL_PLAINTEXT://127.0.0.1:9092"],
            "ottla: listener SASL_PLAINTEXT uses SASL, whose default mechanism GSSAPI is not available yet",
        ),
        (
            ["--set", "listeners=SSL://127.0.0.1:9092"],
            "ottla: TLS needs a key and a certificate: set ssl.keystore.type=PEM",
        ),
        (
            ["--set", "advertised.listeners=X://h:1"],
            "ottla: advertised.listeners: no security protocol defined",
        ),
        (["--set", "log.retention.ms=0"], "ottla: log.retention.ms must be unlimited"),
    ],
)
def test_a_bad_property_is_one_line_and_2(arguments: list[str], message: str) -> None:
    code, output = invoke("serve", *arguments)

    assert code == 2
    assert output.startswith(message)
    assert output.count("\n") == 1


def test_nothing_heavy_is_loaded_before_a_command_runs() -> None:
    code = (
        "import sys; import ottla.cli.main\n"
        "loaded = {'rich', 'asyncio', 'ottla.server', 'ottla.config'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )

    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
