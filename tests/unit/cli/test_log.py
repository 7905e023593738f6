"""`ottla log`: what a reader is told, and what a script gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ottla.cli.log import app
from ottla.config.topic import TopicSettings
from ottla.core.types import TopicPartition
from ottla.groups.records import record, tombstone
from ottla.metadata import framing
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.protocol.stored.groups import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.stored.metadata import ConfigRecord
from ottla.storage.files import OS_FILES
from ottla.storage.log import Log, Origin

NOW = 1_700_000_000_000


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def as_json(*arguments: object) -> Any:
    code, output = run(*arguments, "--json")
    assert code == 0, output
    return json.loads(output)


def new_log(directory: Path, **settings: Any) -> Log:
    topic, _, number = directory.name.rpartition("-")
    partition = TopicPartition(topic, int(number))
    return Log.open(str(directory), partition, TopicSettings(**settings), files=OS_FILES, now_ms=NOW)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    log = new_log(path, segment_bytes=10_000, index_interval_bytes=1500)
    for number in range(25):
        value = Record(
            timestamp=NOW + 1000 * number, key=b"order", value=b"number %d " % number + bytes(1000)
        )
        log.append(write_batch([value]), 0, NOW)
    log.write()
    log.close(NOW)
    return path


@pytest.fixture
def bookmarks(tmp_path: Path) -> Path:
    """Offsets as consumers commit them: overwritten, taken back, and in transactions that end both ways."""
    path = tmp_path / "__consumer_offsets-7"
    log = new_log(path)

    def commit(group: str, offset: int | None, producer_id: int = -1, sequence: int = -1) -> None:
        key = OffsetCommitKey(group=group, topic="orders", partition=0)
        entry = (
            tombstone(key)
            if offset is None
            else record(key, OffsetCommitValue(offset=offset, metadata="m"), 3)
        )
        batch = write_batch(
            [Record(timestamp=NOW, key=entry.key, value=entry.value)],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            attributes=TRANSACTIONAL if producer_id >= 0 else 0,
        )
        log.append(batch, 0, NOW, origin=Origin.COORDINATOR)

    def end(producer_id: int, is_commit: bool) -> None:
        marker = EndTransactionMarker(producer_id, 0, 0, is_commit)
        log.append(end_transaction_batch(marker, timestamp=NOW), 0, NOW, origin=Origin.COORDINATOR)

    commit("readers", 3)
    commit("readers", 5)
    commit("gone", 9)
    commit("gone", None)
    commit("moved", 40, producer_id=1, sequence=0)
    commit("readers", 99, producer_id=2, sequence=0)
    end(1, True)
    end(2, False)
    log.write()
    log.close(NOW)
    return path


def test_inspect_explains_every_file_of_a_partition(orders: Path) -> None:
    code, output = run("inspect", orders)
    assert code == 0
    for path in orders.iterdir():
        assert path.name in output
    assert "25 records" in output
    assert "only ever appended to" in output and "It is sparse" in output


def test_inspect_gives_scripts_the_figures(orders: Path) -> None:
    found = as_json("inspect", orders)
    assert (found["topic"], found["partition"]) == ("orders", 0)
    assert sum(each["records"] for each in found["segments"]) == 25
    assert found["segments"][-1]["last_offset"] == 24
    (index,) = [each for each in found["files"] if each["name"] == f"{0:020d}.index"]
    assert index["entries"][0].keys() == {"offset", "position"}
    assert "sound" not in found


def test_bookmarks_are_what_the_records_of_consumer_offsets_add_up_to(bookmarks: Path) -> None:
    (found,) = as_json("inspect", bookmarks)["contents"]
    assert found["title"] == "Bookmarks"
    rows = [row[:4] for row in found["rows"]]
    assert rows == [["moved", "orders", 0, 40], ["readers", "orders", 0, 5]]
    assert "bookmark" in run("inspect", bookmarks)[1]


def test_a_lookup_is_told_step_by_step(orders: Path) -> None:
    code, output = run("inspect", orders, "--find-offset", 17)
    assert code == 0
    assert "binary search" in output and "Found: offset 17" in output and "number 17" in output
    (found,) = as_json("inspect", orders, "--find-offset", 17)
    assert found["record"]["offset"] == 17 and found["offset_index"]["looks"]


def test_a_lookup_by_time_takes_times_as_people_write_them(orders: Path) -> None:
    for text in (str(NOW + 3000), "2023-11-14T22:13:23Z"):
        (found,) = as_json("inspect", orders, "--find-time", text)
        assert found["record"]["offset"] == 3
    assert "No segment has a record as young" in run("inspect", orders, "--find-time", "1 hour ago")[1]
    assert run("inspect", orders, "--find-time", "soon")[0] == 2


def test_verify_says_by_its_exit_code_whether_all_is_well(orders: Path) -> None:
    code, output = run("inspect", orders, "--verify")
    assert code == 0 and "is right" in output
    log = orders / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:200] + b"?" + log.read_bytes()[201:])
    code, output = run("inspect", orders, "--verify")
    assert code == 1 and "checksum" in output
    code, output = run("inspect", orders.parent, "--verify", "--json")
    assert code == 1
    (problem,) = json.loads(output)["problems"]
    assert problem["file"] == f"orders-0/{log.name}"


def test_a_lookup_and_a_verification_go_together(orders: Path) -> None:
    code, output = run("inspect", orders, "--find-offset", 3, "--verify")
    assert code == 0 and "Found: offset 3" in output and "is right" in output
    log = orders / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:61] + b"\xff" + log.read_bytes()[62:])
    code, output = run("inspect", orders, "--find-offset", 0)
    assert code == 1 and "The search ends here: the batch at byte 0 is damaged" in output
    code, output = run("inspect", orders, "--find-offset", 0, "--verify", "--json")
    found = json.loads(output)
    assert code == 1 and not found["sound"] and found["lookups"][0]["problem"]


def test_scripts_are_told_of_the_same_damage_as_people(orders: Path) -> None:
    (orders / "quorum-state").write_text("{")
    code, output = run("inspect", orders, "--verify", "--json")
    found = json.loads(output)
    assert (code, found["sound"], [each["file"] for each in found["problems"]]) == (
        1,
        False,
        ["quorum-state"],
    )


def test_an_index_that_is_still_in_memory_is_not_called_needless(tmp_path: Path) -> None:
    path = tmp_path / "live-0"
    log = new_log(path)
    for _ in range(8):
        log.append(write_batch([Record(timestamp=NOW, value=bytes(3000))]), 0, NOW)
    log.write()
    assert "a running broker keeps the entries" in run("inspect", path)[1]
    log.close(NOW)
    assert "entries of 8 bytes.\nOn average one for every" in run("inspect", path)[1]


def test_a_log_directory_lists_its_partitions(orders: Path, bookmarks: Path) -> None:
    (orders.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 25\n")
    found = as_json("inspect", orders.parent)
    assert {each["directory"]: each["end offset"] for each in found["partitions"]} == {
        "orders-0": 25,
        "__consumer_offsets-7": 8,
    }
    assert found["files"][0]["entries"] == [{"topic": "orders", "partition": 0, "offset": 25}]
    assert "high watermark" in run("inspect", orders.parent)[1]


def test_a_damaged_checkpoint_is_reported_and_not_the_end(orders: Path) -> None:
    (orders.parent / "replication-offset-checkpoint").write_text("0\n7\norders 0 25\n")
    assert "7 entries announced, 1 found" in run("inspect", orders.parent)[1]
    assert run("inspect", orders.parent, "--verify")[0] == 1


def test_dump_prints_batches_and_records(orders: Path, bookmarks: Path) -> None:
    code, output = run("dump", orders / f"{0:020d}.log", "--from", 2, "--count", 1)
    assert code == 0
    assert "offsets 2 to 2" in output and "number 2" in output and "number 3" not in output
    code, output = run("dump", bookmarks / f"{0:020d}.log")
    assert "group=readers topic=orders partition=0  offset=5" in output
    assert "(taken back)" in output and "COMMIT (control)" in output


def test_dump_shows_no_secret_that_was_altered(tmp_path: Path) -> None:
    path = tmp_path / "__cluster_metadata-0"
    log = new_log(path)
    secret = "hunter2"
    for kind, name, value in (
        (4, "listener.name.ssl.ssl.keystore.password", secret),
        (4, "listener.name.outer.plain.sasl.jaas.config", f'x required user_ada="{secret}";'),
        (4, "password.of.a.plug.in", secret),
        (4, "message.max.bytes", "4711"),
        (2, "retention.ms", "4712"),
    ):
        altered = ConfigRecord(resource_type=kind, resource_name="1", name=name, value=value)
        log.append(write_batch([Record(timestamp=NOW, key=None, value=framing.encode(altered, 29))]), 0, NOW)
    log.write()
    log.close(NOW)

    for told in (run("dump", path / f"{0:020}.log")[1], run("dump", path / f"{0:020}.log", "--json")[1]):
        assert secret not in told
        assert told.count("[hidden]") == 3
        assert "4711" in told and "4712" in told


def test_dump_gives_scripts_a_line_for_each_entry(orders: Path) -> None:
    code, output = run("dump", orders / f"{0:020d}.index", "--json")
    assert code == 0
    entries = [json.loads(line) for line in output.splitlines()]
    assert entries == sorted(entries, key=lambda each: each["position"]) and entries
    lines = [json.loads(line) for line in run("dump", orders / f"{0:020d}.log", "--json")[1].splitlines()]
    assert [line["offset"] for line in lines if "offset" in line][:3] == [0, 1, 2]


def test_dump_of_a_damaged_file_shows_what_is_left_and_exits_with_1(orders: Path) -> None:
    log = orders / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-10])
    code, output = run("dump", log)
    assert code == 1 and "number 0" in output and "cut short" in output


def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for arguments in (["inspect", tmp_path], ["inspect", tmp_path / "no"], ["dump", tmp_path / "notes.txt"]):
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 1
        assert result.stderr.startswith("ottla: ") and result.stderr.count("\n") == 1


def test_nothing_is_ever_written(orders: Path, bookmarks: Path) -> None:
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in orders.parent.rglob("*")
        if path.is_file()
    }
    for arguments in (["--verify"], ["--find-offset", "3"], ["--json"], []):
        run("inspect", orders, *arguments)
        run("inspect", bookmarks, *(arguments if arguments != ["--find-offset", "3"] else []))
    run("dump", orders / f"{0:020d}.log")
    after = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in orders.parent.rglob("*")
        if path.is_file()
    }
    assert after == before
