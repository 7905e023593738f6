"""`ottla schema` against a broker that runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import ottla
from ottla import Broker
from ottla.client.registry_exchange import Exchange, parse_url
from ottla.client.schema_registry import Registry
from ottla.registry.schemas import Schema, SchemaType
from tests.interop.cli import Cli, Ran

QUICK = {"ottla.durability": "kafka", "offsets.topic.num.partitions": "2"}
A = {"name": "a", "type": "string"}
B = {"name": "b", "type": "int"}
B_WITH_DEFAULT = {"name": "b", "type": "int", "default": 0}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=QUICK) as broker:
        yield broker


@pytest.fixture(autouse=True)
def nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTTLA_REGISTRY", "OTTLA_CLIENT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(broker: Broker) -> Cli:
    return Cli(broker.bootstrap)


@pytest.fixture
def subject() -> str:
    return f"s-{uuid4().hex[:12]}"


class Files:
    """Schemas in files."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *fields: dict[str, Any], name: str = "r", file: str = "r.avsc") -> str:
        return self.text(file, json.dumps({"type": "record", "name": name, "fields": list(fields)}))

    def text(self, file: str, text: str) -> str:
        (self.home / file).write_text(text)
        return str(self.home / file)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def rows(ran: Ran) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in ran.lines}


def test_where_there_is_nothing_that_is_said() -> None:
    with Broker(properties=QUICK) as broker:
        cli = Cli(broker.bootstrap)
        empty = cli("schema", "list")
        assert (empty.out, empty.err) == (
            "",
            "there are no schemas; register one with `ottla schema register SUBJECT FILE`\n",
        )
        assert cli.json("schema", "list") == []
        assert cli.json("schema", "level") == {"subject": None, "level": "BACKWARD", "own": False}


def test_a_schema_is_registered_listed_and_shown(cli: Cli, files: Files, subject: str) -> None:
    first, second = (
        files(A, name=f"r{subject[2:]}"),
        files(A, B_WITH_DEFAULT, name=f"r{subject[2:]}", file="2.avsc"),
    )

    made = cli.json("schema", "register", subject, first)
    schema_id = made["id"]
    assert made == {"subject": subject, "version": 1, "id": schema_id, "type": "AVRO", "registered": True}
    again = cli("schema", "register", subject, first)
    assert again.out == f"{subject} version 1, id {schema_id} (AVRO) was there already\n"
    assert cli.json("schema", "register", subject, first) == {**made, "registered": False}
    assert cli("schema", "register", subject, second).out == (
        f"registered {subject} version 2, id {schema_id + 1} (AVRO)\n"
    )

    assert rows(cli("schema", "list"))[subject] == ["1-2", str(schema_id + 1), "AVRO", "BACKWARD"]
    (row,) = [each for each in cli.json("schema", "list") if each["subject"] == subject]
    assert row == {
        "subject": subject,
        "versions": [1, 2],
        "id": schema_id + 1,
        "type": "AVRO",
        "level": "BACKWARD",
    }

    shown = cli("schema", "show", subject, "--version", "1")
    facts, _, text = shown.out.partition("\n\n")
    assert facts.split() == ["subject:", subject, "version:", "1", "id:", str(schema_id), "type:", "AVRO"]
    assert text.startswith('{\n  "type": "record"') and json.loads(text)["fields"] == [A]
    latest = cli.json("schema", "show", subject)
    assert (latest["version"], latest["id"], latest["references"]) == (2, schema_id + 1, [])
    assert cli("schema", "show", subject, "--text").out == latest["schema"] + "\n"
    by_id = cli.json("schema", "show", "--id", str(schema_id))
    assert by_id["versions"] == [{"subject": subject, "version": 1}]
    assert f"versions: {subject}:1\n" in cli("schema", "show", "--id", str(schema_id)).out


@pytest.mark.parametrize(
    ("file", "kind", "text"),
    [
        ("s.json", "JSON", '{"type": "object", "properties": {"a": {"type": "string"}}}'),
        ("s.proto", "PROTOBUF", 'syntax = "proto3";\nmessage R {\n  string a = 1;\n}\n'),
        ("S.AVSC", "AVRO", '"string"'),
    ],
)
def test_the_name_of_a_file_says_what_it_is_written_in(
    cli: Cli, files: Files, subject: str, file: str, kind: str, text: str
) -> None:
    assert cli.json("schema", "register", subject, files.text(file, text))["type"] == kind
    assert cli.json("schema", "show", subject)["type"] == kind
    assert cli("schema", "show", subject).out.count("\n\n") >= 1
    name = files.text("schema.txt", text)
    assert "add --type avro, json or protobuf" in cli.fails("schema", "register", subject, name, code=2)
    assert not cli.json("schema", "register", subject, name, "--type", kind.lower())["registered"]


def test_a_schema_is_read_from_the_standard_input(cli: Cli, subject: str) -> None:
    text = '\ufeff{"type": "enum", "name": "e", "symbols": ["Ä"]}'.replace("Ä", "A")
    made = cli("schema", "register", subject, "-", "--type", "avro", given=text)
    assert made.out.startswith(f"registered {subject} version 1, id ")
    assert "the standard input does not say" in cli.fails("schema", "check", subject, "-", given=text, code=2)
    for given, reason in ((b"\xff", "not text in UTF-8"), (b" \n", "is empty")):
        said = cli.fails("schema", "check", subject, "-", "-t", "avro", given=given, code=2)
        assert reason in said


def test_a_schema_is_built_on_others(cli: Cli, files: Files, subject: str) -> None:
    used = f"{subject}:used"
    cli("schema", "register", used, files(A, name="inner"))
    outer = files({"name": "i", "type": "inner"}, name="outer")
    assert "(42201)" in cli.fails("schema", "register", subject, outer)
    cli("schema", "check", subject, outer, code=1)
    reference = f"inner={used}:1"
    cli("schema", "check", subject, outer, "--reference", reference)
    cli("schema", "register", subject, outer, "-r", reference)
    assert cli.json("schema", "show", subject)["references"] == [
        {"name": "inner", "subject": used, "version": 1}
    ]
    assert f"references: {reference}\n" in cli("schema", "show", subject).out
    assert "(42206); remove what refers to it first" in cli.fails("schema", "remove", used)
    for bad in ("inner", "inner=x", "=x:1", "inner=:1", "inner=x:first"):
        assert "NAME=SUBJECT:VERSION" in cli.fails("schema", "check", subject, outer, "-r", bad, code=2)


def test_what_would_not_be_taken_is_said_with_the_reasons(cli: Cli, files: Files, subject: str) -> None:
    anything = files(A)
    assert cli("schema", "check", subject, anything).out == f"{subject} would take it (BACKWARD)\n"
    cli("schema", "register", subject, anything)
    worse = files(A, B, file="worse.avsc")

    refused = cli("schema", "check", subject, worse, code=1)
    head, *reasons = refused.lines
    assert head == f"{subject} would not take it (BACKWARD):" and refused.err == ""
    assert any("READER_FIELD_MISSING_DEFAULT_VALUE" in each for each in reasons)
    said = json.loads(cli("schema", "check", subject, worse, "--json", code=1).out)
    assert (said["accepted"], said["level"], len(said["problems"])) == (False, "BACKWARD", len(reasons))
    assert "(40901); `ottla schema check` lists" in cli.fails("schema", "register", subject, worse)
    assert cli.json("schema", "check", subject, files(A, B_WITH_DEFAULT))["problems"] == []
    no_schema = files.text("none.avsc", "{")
    assert "would not take it" in cli("schema", "check", subject, no_schema, code=1).out
    assert "(42201)" in cli.fails("schema", "register", subject, no_schema)


def test_versions_and_subjects_are_removed_and_then_for_good(cli: Cli, files: Files, subject: str) -> None:
    name = f"r{subject[2:]}"
    first = cli.json("schema", "register", subject, files(A, name=name))["id"]
    cli("schema", "register", subject, files(A, B_WITH_DEFAULT, name=name))

    assert cli("schema", "remove", subject, "--version", "1").out == f"removed version 1 of {subject}\n"
    assert rows(cli("schema", "list"))[subject][0] == "2"
    assert "--permanent" in cli.fails("schema", "remove", subject, "-v", "1")
    assert "(40402); `ottla schema list`" in cli.fails("schema", "show", subject, "-v", "1")
    assert cli.json("schema", "show", subject, "-v", "1", "--deleted")["removed"] is True
    assert "removed: " in cli("schema", "show", subject, "-v", "1", "--deleted").out
    assert cli.json("schema", "show", "--id", str(first))["schema"], "what was written with it is still read"

    gone = cli.json("schema", "remove", subject, "--yes")
    assert gone == {"subject": subject, "versions": [2], "permanent": False}
    assert subject not in cli("schema", "list").out
    assert rows(cli("schema", "list", "--deleted"))[subject] == [
        "-",
        str(first + 1),
        "AVRO",
        "BACKWARD",
        "1-2",
    ]
    assert "(40401)" in cli.fails("schema", "show", subject)
    assert "with --permanent it is removed for good" in cli.fails("schema", "remove", subject)
    done = cli("schema", "remove", subject, "--permanent")
    assert done.out == f"removed versions 1-2 of {subject} for good\n"
    assert subject not in cli("schema", "list", "--deleted").out
    assert "(40403)" in cli.fails("schema", "show", "--id", str(first))
    assert "(40401)" in cli.fails("schema", "remove", subject, "--permanent")


def test_what_is_there_is_removed_for_good_at_once(cli: Cli, files: Files, subject: str) -> None:
    cli("schema", "register", subject, files(A))
    cli("schema", "register", subject, files(A, B_WITH_DEFAULT))
    done = cli.json("schema", "remove", subject, "--version", "latest", "--permanent")
    assert done == {"subject": subject, "versions": [2], "permanent": True}
    assert cli.json("schema", "remove", subject, "--permanent")["versions"] == [1]
    assert subject not in cli("schema", "list", "--deleted").out


def test_a_level_is_a_subjects_own_or_that_of_all(cli: Cli, files: Files, subject: str) -> None:
    cli("schema", "register", subject, files(A))
    inherited = f"{subject}: BACKWARD, as for all that have none of their own\n"
    assert cli("schema", "level", subject).out == inherited
    assert cli("schema", "level", subject, "--set", "full_transitive").out == f"{subject}: FULL_TRANSITIVE\n"
    assert rows(cli("schema", "list"))[subject][3] == "FULL_TRANSITIVE"
    assert cli.json("schema", "level", subject) == {
        "subject": subject,
        "level": "FULL_TRANSITIVE",
        "own": True,
    }
    assert cli("schema", "level").out == "BACKWARD, for all that have none of their own\n"
    for _ in range(2):  # what it has not does not keep it from having none
        assert cli("schema", "level", subject, "--reset").out == inherited
    try:
        assert cli.json("schema", "level", "--set", "NONE")["level"] == "NONE"
        assert cli.json("schema", "level", subject)["level"] == "NONE"
    finally:
        assert cli.json("schema", "level", "--reset")["level"] == "BACKWARD"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show"], "name a subject, or an id"),
        (["show", "a", "--id", "1"], "name a subject, or an id"),
        (["show", "--id", "1", "--version", "1"], "--version is for a subject"),
        (["show", "--id", "x"], "--id"),
        (["level", "", "--set", "NONE"], "a subject has a name"),
        (["remove", ""], "a subject has a name"),
        (["level", "--set", "SOMEWHAT"], "SOMEWHAT"),
        (["level", "--set", "NONE", "--reset"], "not both"),
        (["register", "a"], "FILE"),
        (["register", "a", "b.avsc", "--type", "xml"], "xml"),
        (["list", "--registry", "localhost:8081"], "it should look like http://host:port"),
        (["list", "-b", "host:x"], "it should look like localhost:9092"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_2(cli: Cli, arguments: list[str], said: str) -> None:
    assert said in cli.fails("schema", *arguments, code=2)


def test_what_is_not_there_is_one_line_and_1(cli: Cli, subject: str, tmp_path: Path) -> None:
    missing = tmp_path / "none.avsc"
    assert (
        cli.fails("schema", "register", subject, str(missing))
        == f"ottla: {missing}: No such file or directory\n"
    )
    assert str(tmp_path) in cli.fails("schema", "check", subject, str(tmp_path), "-t", "avro")
    assert "(42202)" in cli.fails("schema", "show", subject, "--version", "first")
    assert "`ottla schema list` shows the subjects there are" in cli.fails("schema", "show", subject)


def test_names_may_have_anything_in_them(cli: Cli, files: Files, subject: str) -> None:
    name = f"{subject}/a b:ü?#%"
    cli("schema", "register", name, files(A))
    assert cli.json("schema", "show", name)["subject"] == name
    cli("schema", "level", name, "--set", "FULL")
    assert cli.json("schema", "remove", name, "--permanent")["versions"] == [1]


def test_a_list_is_read_to_its_end(broker: Broker, cli: Cli, subject: str) -> None:
    with Exchange([parse_url(f"http://{broker.bootstrap}")]) as exchange:
        for number in range(101):
            Registry(exchange).register(f"{subject}-{number}", Schema(SchemaType.AVRO, '"string"'))
    found = [each["subject"] for each in cli.json("schema", "list") if each["subject"].startswith(subject)]
    assert len(found) == 101 and found == sorted(found)


def on_terminal(bootstrap: str, *arguments: str, typed: str) -> tuple[int, str]:
    """Exit code and everything shown, of a command whose input and outputs are a terminal."""
    source = str(Path(ottla.__file__).parents[1])
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments, "-b", bootstrap],
            env={**os.environ, "PYTHONPATH": source, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # what a terminal says when nobody is left on the other side
            while chunk := os.read(ours, 65_536):
                shown += chunk
        return process.wait(30), shown.decode()
    finally:
        os.close(ours)


def test_on_a_terminal_nothing_is_removed_without_asking(
    broker: Broker, cli: Cli, files: Files, subject: str
) -> None:
    cli("schema", "register", subject, files(A))
    remove = ("schema", "remove", subject, "--version", "1", "--permanent")
    code, shown = on_terminal(broker.bootstrap, *remove, typed="n\n")
    assert code == 1 and f"Remove version 1 of {subject} for good? [y/N]" in shown
    assert "nothing was changed" in shown and subject in cli("schema", "list").out
    code, shown = on_terminal(broker.bootstrap, *remove, typed="y\n")
    assert code == 0 and f"removed version 1 of {subject} for good" in shown
