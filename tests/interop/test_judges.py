"""Every judge of `make interop` can say no: to programs that only talk, or that do something else."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.partitioner import partition_of_key
from tools.interop.aged import NEWEST, as_kafka_2_1
from tools.interop.brokers import kafka_behind_a_wire, ottla_behind_a_wire
from tools.interop.cell import run_cell
from tools.interop.features import FEATURES
from tools.interop.judges.acls import rules
from tools.interop.judges.groups import assigned_partitions
from tools.interop.toolchains import SOURCES
from tools.interop.wire import Wire

HONEST = SOURCES / "confluent-kafka" / "main.py"
FIRST_TIME = 1_600_000_000_000


@pytest.fixture(scope="module")
def broker(referee: bool) -> Iterator[Wire]:
    with kafka_behind_a_wire() if referee else ottla_behind_a_wire() as wire:
        yield wire


def record(partition: int, offset: int, value: str | None, **more: Any) -> dict[str, Any]:
    return {"p": partition, "o": offset, "k": None, "v": value, "h": [], "t": 0} | more


def numbered(suffix: str = "") -> list[dict[str, Any]]:
    return [record(n % 4, n // 4, f"value-{n}{suffix}", k=f"key-{n}") for n in range(100)]


def keyed() -> list[dict[str, Any]]:
    partitions = [partition_of_key(b"key-%d" % n, 4) for n in range(50)]
    return [
        record(at, partitions[:n].count(at), f"value-{n}" if n < 49 else None, k=f"key-{n}")
        for n, at in enumerate(partitions)
    ]


def of_transactions(*words: str) -> list[dict[str, Any]]:
    return [record(n, at, f"{word}-{n}") for at, word in enumerate(words) for n in range(4)]


HEADERS = [["a", "1"], ["a", "2"], ["empty", ""], ["näme", "wért"], ["null", None]]
TIMES = [record(0, n, str(n), t=FIRST_TIME + 1000 * n) for n in range(10)]
NOW = [record(0, n, str(n), t=FIRST_TIME * 2) for n in range(10)]
GROUP = {
    "assigned": [[0, 1], [2, 3]],
    "records": numbered(),
    "committed": {"0": 25, "1": 25, "2": 25, "3": 25},
}

RULES = rules("<name>")

# What a program that does everything right reports, for every feature.
PERFECT: dict[str, dict[str, Any]] = {
    "produce": {"records": numbered()},
    **{codec: {"records": numbered(" compressible" * 20)} for codec in ("gzip", "snappy", "lz4", "zstd")},
    "headers": {"records": [record(0, 0, "with", h=HEADERS), record(0, 1, "out")]},
    "keys": {"records": keyed()},
    "timestamps": {"records": TIMES, "appended": NOW, "offset": 5},
    "idempotence": {"records": numbered()},
    "transactions": {
        "records": of_transactions("first", "third"),
        "all": of_transactions("first", "second", "third"),
        "committed": 7,
    },
    "read-committed": {
        "records": [
            record(0, at, f"{w}-{n}", k=w)
            for w, b in (("first", 0), ("third", 10))
            for n in range(4)
            for at in [b + n]
        ],
        "all": [
            record(0, 5 * number + n, f"{word}-{n}", k=word)
            for number, word in enumerate(("first", "second", "third", "fourth"))
            for n in range(4)
        ],
    },
    "group-classic": GROUP,
    "group-consumer": GROUP,
    "group-share": {"records": numbered(), "deliveries": 2},
    "static": {"before": [0, 1], "other": [2, 3], "after": [0, 1], "rebalances": 0},
    "admin-topics": {"partitions": 3, "retention": "100000", "listed": True, "gone": True},
    "admin-configs": {"before": "1048588", "set": "77777", "after": "1048588"},
    "admin-partitions": {"partitions": 6},
    "admin-groups": {"listed": True, "state": "EMPTY", "gone": True},
    "admin-offsets": {"earliest": 0, "latest": 25, "committed": 5, "altered": 10, "deleted": True},
    "admin-records": {"earliest": 10},
    "admin-acls": {
        "listed": sorted(RULES.made),
        "matching": sorted(RULES.matching),
        "deleted": sorted(RULES.deleted),
        "left": sorted(RULES.made - RULES.deleted),
    },
    "old-versions": {"records": numbered(), "committed": 25},
}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_perfect_report_of_nothing_done_is_not_believed(broker: Wire, tmp_path: Path, feature: str) -> None:
    file = tmp_path / "program.py"
    report = json.dumps(PERFECT[feature])
    file.write_text(f"import sys\nprint({report!r}.replace('<name>', sys.argv[3]))\n")
    problems, _ = run_cell([sys.executable, str(file)], FEATURES[feature], broker)
    assert any("on the wire" in problem or "fetches" in problem for problem in problems), problems


# Each changes the honest program of confluent-kafka in one place; most then report as if they had not.
SABOTAGE = {
    "another codec": ("gzip", {"compression_type=FEATURE": "compression_type='lz4'"}, "codecs in the log"),
    "a header less": (
        "headers",
        {
            ', ("null", None)]': "]",
            'return {"records": read(2)}': "found = read(2); found[0]['h'].append(['null', None])\n"
            "    return {'records': found}",
        },
        "headers in the log",
    ),
    "no question for a time": (
        "timestamps",
        {"at = reader.offsets_for_times(": "at = (lambda given, timeout: [TopicPartition(NAME, 0, 5)])("},
        "nobody asked for the offset at a time",
    ),
    "no producer id": (
        "idempotence",
        {"enable_idempotence=True": "enable_idempotence=False"},
        "batches without a producer id",
    ),
    "offsets outside of the transaction": (
        "transactions",
        {
            "writer.send_offsets_to_transaction([at], reader.consumer_group_metadata(), PATIENCE)": (
                "reader.commit(offsets=[at], asynchronous=False)"
            )
        },
        "no request on the wire: txn_offset_commit",
    ),
    "filtered by itself": (
        "read-committed",
        {
            'read(8, isolation_level="read_committed")': (
                "[r for r in read(16) if r['v'].startswith(('first', 'third'))]"
            )
        },
        "isolation levels of fetches",
    ),
    "the classic protocol": (
        "group-consumer",
        {'group("consumer")': 'group("classic")'},
        "type of the group",
    ),
    "the consumer protocol": (
        "group-classic",
        {'group("classic")': 'group("consumer")'},
        "type of the group",
    ),
    "nothing committed": (
        "group-classic",
        {
            "member.commit(": "(lambda **_: None)(",
            '"committed": committed_offsets()': '"committed": dict.fromkeys(range(4), 25)',
        },
        "offsets at the broker",
    ),
    "dynamic members": (
        "static",
        {
            'group_instance_id=f"{NAME}-{suffix}", ': "",
            "after = settle(first)[0]\n    settle(first, other)": "after = before",
            "len(changes)": "0",
        },
        "instance ids that joined",
    ),
    "another instance id when it comes back": (
        "static",
        {
            'changes.clear()\n    first = join("a")': 'changes.clear()\n    first = join("b-again")',
            "after = settle(first)[0]\n    settle(first, other)": "after = before",
        },
        "connections by which `a` joined",
    ),
    "an offset that was not altered": (
        "admin-offsets",
        {
            "client.alter_consumer_group_offsets([wanted])[NAME].result(PATIENCE)": "",
            '"altered": committed_offsets()[0]': '"altered": 10',
        },
        "offsets at the broker",
    ),
    "a topic that is left": (
        "admin-topics",
        {
            "client.delete_topics([name])[name].result(PATIENCE)": "",
            "gone = until(lambda: name not in client.list_topics(timeout=30).topics)": "gone = True",
        },
        "partitions of the deleted topic",
    ),
    "a rule that allows instead of denying": (
        "admin-acls",
        {
            "may.WRITE, rule.DENY)": "may.WRITE, rule.ALLOW)",
            "one.permission_type.value,": "2 if one.operation == may.WRITE else 3,",
        },
        "rules as asked for",
    ),
    "rules matched by itself": (
        "admin-acls",
        {
            "described(AclBindingFilter(kind.TOPIC, topic, by.MATCH, None, None, may.ANY, rule.ANY))": (
                "[one for one in listed if one[0] == kind.TOPIC.value]"
            )
        },
        "filters by name",
    ),
    "rules that are left": (
        "admin-acls",
        {
            "client.delete_acls(gone)": "{one: client.describe_acls(one) for one in gone}",
            "until(lambda: len(described(of_user)) == 3)": "",
            '"left": described(of_user)': '"left": [one for one in listed if one not in deleted]',
        },
        "rules at the broker",
    ),
}


@pytest.mark.parametrize("how", SABOTAGE)
def test_a_program_that_does_something_else_fails(broker: Wire, tmp_path: Path, how: str) -> None:
    feature, changes, words = SABOTAGE[how]
    text = HONEST.read_text()
    for there, instead in changes.items():
        assert there in text, "the honest program reads otherwise by now"
        text = text.replace(there, instead)
    file = tmp_path / "program.py"
    file.write_text(text)
    problems, _ = run_cell([sys.executable, str(file)], FEATURES[feature], broker)
    assert any(words in problem for problem in problems), problems


def test_a_client_that_speaks_newer_versions_than_kafka_2_1_fails(broker: Wire) -> None:
    words = [sys.executable, str(HONEST)]
    assert run_cell(words, FEATURES["old-versions"], broker) == ([], [])
    problems, _ = run_cell(words, FEATURES["old-versions"]._replace(aged=False), broker)
    assert any("was not known to Kafka 2.1" in problem for problem in problems)


def test_an_aged_broker_knows_no_newer_versions() -> None:
    # Produce, Fetch from a version on that was not there yet, and ConsumerGroupHeartbeat, which came later.
    newer = struct.pack(">ihi", 77, 0, 3) + struct.pack(">9h", 0, 3, 13, 1, 11, 18, 68, 0, 1)
    assert as_kafka_2_1(0, newer) == struct.pack(">ihi3h", 77, 0, 1, 0, 3, NEWEST["produce"])
    assert as_kafka_2_1(2, newer + bytes(4)) == struct.pack(">ihi3hi", 77, 0, 1, 0, 3, NEWEST["produce"], 0)
    assert as_kafka_2_1(4, newer) == struct.pack(">ihi", 77, 35, 0)


def test_the_partitions_in_a_classic_assignment() -> None:
    def topic(name: bytes, *numbers: int) -> bytes:
        return (
            struct.pack(">h", len(name)) + name + struct.pack(f">{1 + len(numbers)}i", len(numbers), *numbers)
        )

    assignment = struct.pack(">hi", 1, 2) + topic(b"other", 7) + topic(b"topic", 3, 1) + struct.pack(">i", -1)
    assert assigned_partitions(assignment, "topic") == [1, 3]
    assert assigned_partitions(b"", "topic") == []
