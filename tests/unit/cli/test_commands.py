"""Help, usage and completion of every command. No broker is started here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import ottla
from ottla.cli.given import from_environment
from ottla.cli.main import app

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])}


def every_command(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield (*path, name), each
        yield from every_command(each, (*path, name))


COMMANDS = dict(every_command(typer.main.get_command(app)))
# Those that ask a cluster. A pipeline has a project, which says where its cluster is.
ASKING = {
    path: each
    for path, each in COMMANDS.items()
    if path[0] != "pipeline" and any(p.name == "bootstrap" for p in each.params)
}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_what_a_command_is_for(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "--help"])

    assert result.exit_code == 0
    summary = (COMMANDS[path].help or "").splitlines()[0]
    assert summary.endswith(".")
    assert summary in " ".join(result.output.split())


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_a_command_that_asks_a_cluster_has_the_common_options_and_examples(path: tuple[str, ...]) -> None:
    output = CliRunner().invoke(app, [*path, "--help"]).output

    for option in ("--bootstrap", "OTTLA_BOOTSTRAP", "--json", "--timeout"):
        assert option in output
    assert f"  ottla {' '.join(path)}" in output.partition("Examples:")[2]


def test_every_command_of_a_cluster_is_there() -> None:
    named = {" ".join(path) for path in ASKING}

    assert named >= {
        *(
            f"topic {n}"
            for n in (["create", "list", "describe", "alter", "delete", "add-partitions", "delete-records"])
        ),
        *(f"group {name}" for name in ("list", "describe", "lag", "reset", "delete")),
        *(f"config {name}" for name in ("get", "set", "unset")),
        *(f"perf {name}" for name in ("produce", "consume", "latency")),
        *(f"schema {name}" for name in ("list", "show", "register", "check", "remove", "level")),
        *(f"{kind} {name}" for kind in ("acl", "user") for name in ("list", "add", "remove")),
        *("transactions list", "transactions describe", "cluster", "produce", "consume"),
    }


ARGUMENTS = {
    ("topic", "create"): ["t"],
    ("topic", "describe"): ["t"],
    ("topic", "alter"): ["t", "--unset", "retention.ms"],
    ("topic", "delete"): ["t"],
    ("topic", "add-partitions"): ["t", "1"],
    ("topic", "delete-records"): ["t", "--before", "end"],
    ("group", "describe"): ["g"],
    ("group", "reset"): ["g", "--from", "end"],
    ("group", "delete"): ["g"],
    ("config", "get"): ["topic", "t"],
    ("config", "set"): ["topic", "t", "retention.ms=1"],
    ("config", "unset"): ["topic", "t", "retention.ms"],
    ("transactions", "describe"): ["x"],
    ("acl", "add"): ["--allow", "User:a", "-o", "read", "-t", "t"],
    ("acl", "remove"): ["--all"],
    ("user", "add"): ["alice"],
    ("user", "remove"): ["alice"],
    ("schema", "show"): ["s"],
    ("schema", "register"): ["s", "-", "--type", "avro"],
    ("schema", "check"): ["s", "-", "--type", "avro"],
    ("schema", "remove"): ["s"],
    ("produce",): ["t"],
    ("consume",): ["t"],
    ("perf", "produce"): ["t"],
    ("perf", "consume"): ["t"],
    ("perf", "latency"): ["t"],
}


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_without_a_broker_every_command_says_so_in_one_line(path: tuple[str, ...]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        bootstrap = f"127.0.0.1:{taken.getsockname()[1]}"
        arguments = [*path, *ARGUMENTS.get(path, []), "--bootstrap", bootstrap]
        result = CliRunner().invoke(app, arguments, input="line\n")

    assert result.exit_code == 1
    assert result.stderr == (
        f"ottla: cannot connect to {bootstrap}: connection refused; "
        "start a broker with `ottla serve`, or name another with --bootstrap\n"
    )
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["consume", "t", "--from", "end", "--offset", "3"], "give one of them"),
        (["consume", "t", "--group", "g", "--offset", "3"], "the group decides"),
        (["consume"], "say which topics"),
        (["consume", "t", "--include", "t"], "say which topics"),
        (["consume", "--include", "("], "--include (: missing )"),
        (["consume", "t", "-f", "%q"], "--format: there is no %q"),
        (["consume", "t", "-b", "host:x"], "should look like localhost:9092"),
        (["produce", "t", "-k", "a", "-K", ":"], "not both"),
        (["produce", "t", "-H", "novalue"], "--header novalue: it should look like name=value"),
        (["topic", "create", "t", "-c", "x"], "--config x: it should look like name=value"),
        (["topic", "alter", "t"], "nothing to change"),
        (["topic", "delete-records", "t"], "say which records"),
        (["group", "reset", "g"], "say where to"),
        (["group", "reset", "g", "--from", "end", "--shift", "1"], "say where to"),
        (["acl", "add", "--topic", "t", "-o", "read"], "say for whom"),
        (["acl", "add", "--allow", "a", "-o", "read"], "say what it is about"),
        (["acl", "add", "--allow", "a", "--topic", "t"], "say what they may do"),
        (["acl", "add", "--allow", "User:", "-t", "t", "-o", "read"], "should look like User:alice"),
        (["acl", "add", "--allow", "a", "-t", "", "-o", "read"], "--topic: the name is empty"),
        (["acl", "add", "--allow", "a", "-t", "*", "--prefix", "-o", "read"], "it takes no --prefix"),
        (
            ["acl", "add", "--allow", "a", "-t", "t", "-o", "fly"],
            "--operation fly: there are all, read, write",
        ),
        (
            ["acl", "add", "--allow", "a", "-g", "g", "-o", "write"],
            "--group knows no write, only read, delete",
        ),
        (["acl", "add", "--allow", "a", "--cluster", "-o", "read"], "--cluster knows no read"),
        (["acl", "add", "--allow", "a", "-t", "t", "-o", "read", "--producer"], "give either --operation or"),
        (["acl", "add", "--allow", "a", "--transactional-id", "x", "--producer"], "need a --topic"),
        (["acl", "add", "--allow", "a", "-t", "t", "--consumer"], "--consumer needs a --group"),
        (["acl", "add", "--allow", "a", "-t", "t", "-g", "g", "--producer"], "--group has no part in that"),
        (["acl", "remove"], "say which rules"),
        (["acl", "remove", "--all", "--topic", "t"], "say which rules"),
        (["user", "add", ""], "a user needs a name"),
        (["user", "add", "alice"], "the password of alice is empty"),
        (["user", "add", "alice", "--password-file", "/not/there"], "cannot read /not/there"),
        (["config", "get", "broker", "one"], "a broker is named by its id"),
        (["config", "set", "topic", "t", "x"], "it should look like name=value"),
    ],
)
def test_wrong_use_is_one_line_and_2(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("ottla: ") and result.stderr.count("\n") == 1
    assert complaint in result.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["no-such"], "No such command 'no-such'; see `ottla --help`"),
        (["topic", "no-such"], "No such command 'no-such'; see `ottla topic --help`"),
        (["topic", "create"], "Missing argument 'TOPIC'; see `ottla topic create --help`"),
        (["topic", "list", "--no-such"], "No such option: --no-such; see `ottla topic list --help`"),
        (["produce", "t", "--acks", "5"], "'5' is not one of 'all', '1', '0'; see `ottla produce --help`"),
        (["transactions", "list", "--state", "Lost"], "see `ottla transactions list --help`"),
        (["-X", "security.protocol=TLS", "topic", "list"], "security.protocol is TLS; it can be PLAINTEXT"),
        (["-X", "client.id=me", "topic", "list"], "-X client.id: it takes security.*, ssl.* and sasl.*"),
        (["-X", "sasl.mechanism", "topic", "list"], "-X sasl.mechanism: it should look like name=value"),
    ],
)
def test_a_slip_is_told_in_one_line_with_where_to_look(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("ottla: ") and result.stderr.count("\n") == 1
    assert complaint in result.stderr


def test_a_command_of_commands_shows_them() -> None:
    result = CliRunner().invoke(app, ["topic"])

    assert result.exit_code == 2
    assert "Usage: ottla topic" in result.output and "delete-records" in result.output


def test_client_properties_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=ignored:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
    for arguments, environment in (
        (["--client-config", str(file)], {}),
        ([], {"OTTLA_CLIENT_CONFIG": str(file)}),
    ):
        result = CliRunner(env=environment).invoke(app, [*arguments, "topic", "list"])
        assert result.exit_code == 2 and "GSSAPI" in result.stderr
    assert CliRunner().invoke(app, ["--client-config", str(tmp_path / "no"), "topic", "list"]).exit_code == 1
    assert from_environment({"OTTLA_CLIENT_CONFIG": str(file)}) == {}  # no property of a broker


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell: str) -> None:
    variables = {"_OTTLA_COMPLETE": f"complete_{shell}", "COMP_WORDS": "ottla topic ", "COMP_CWORD": "2"}
    variables |= {"_TYPER_COMPLETE_ARGS": "ottla topic ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    code = "import sys; sys.argv[0] = 'ottla'; from ottla.cli.main import app; app(prog_name='ottla')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        check=True,
    )

    for name in ("create", "describe", "delete-records"):
        assert name in done.stdout


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom ottla.cli.main import app\n"
        "try:\n    app(['topic', '--help'])\nexcept SystemExit:\n    pass\n"
        "loaded = {'rich', 'asyncio', 'ottla.client', 'ottla.protocol', 'ottla.server'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )

    subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)


def test_the_variable_of_the_commands_is_no_property_of_a_broker() -> None:
    assert from_environment({"OTTLA_BOOTSTRAP": "kafka:9092"}) == {}
