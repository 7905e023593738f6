"""`ottla node` as a process: the examples people have of it, word for word, and what other clients then see."""

# The samples are kept as they are.
# ruff: noqa: E501

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer

COMMAND = [sys.executable, "-m", "ottla", "node"]

APPEND = (
    """\
{"src":"c0","dest":"n1","body":{"type":"init","msg_id":1,"node_id":"n1","node_ids":["n1"]}}
{"src":"c1","dest":"n1","body":{"type":"partition_append","msg_id":2,"topic":"orders","partition":0,"message":"msg-1"}}
{"src":"c1","dest":"n1","body":{"type":"partition_append","msg_id":3,"topic":"orders","partition":0,"message":"msg-2"}}
""",
    """\
{"src": "n1", "dest": "c0", "body": {"type": "init_ok", "in_reply_to": 1, "msg_id": 0}}
{"src": "n1", "dest": "c1", "body": {"type": "partition_append_ok", "in_reply_to": 2, "offset": 0, "msg_id": 1}}
{"src": "n1", "dest": "c1", "body": {"type": "partition_append_ok", "in_reply_to": 3, "offset": 1, "msg_id": 2}}
""",
)
READ = (
    """\
{"src":"c0","dest":"n1","body":{"type":"init","msg_id":1,"node_id":"n1","node_ids":["n1"]}}
{"src":"c1","dest":"n1","body":{"type":"partition_append","msg_id":2,"topic":"t","partition":0,"message":"hello"}}
{"src":"c1","dest":"n1","body":{"type":"partition_read","msg_id":3,"topic":"t","partition":0,"offset":0}}
""",
    """\
{"src": "n1", "dest": "c0", "body": {"type": "init_ok", "in_reply_to": 1, "msg_id": 0}}
{"src": "n1", "dest": "c1", "body": {"type": "partition_append_ok", "in_reply_to": 2, "offset": 0, "msg_id": 1}}
{"src": "n1", "dest": "c1", "body": {"type": "partition_read_ok", "in_reply_to": 3, "message": "hello", "offset": 0, "msg_id": 2}}
""",
)
# Without envelopes, and with the timestamp left to the moment.
BARE = (
    """\
{"type": "partition_append", "msg_id": 1, "topic": "orders", "partition": 0, "message": "order-1234"}
{"type": "partition_read", "msg_id": 2, "topic": "orders", "partition": 0, "offset": 0}
""",
    """\
{"type": "partition_append_ok", "in_reply_to": 1, "offset": 0, "segment": "00000000.log", "timestamp": 1700000000}
{"type": "partition_read_ok", "in_reply_to": 2, "message": "order-1234", "offset": 0, "next_offset": 1}
""",
)


def converse(lines: str, *options: str) -> str:
    done = subprocess.run([*COMMAND, *options], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("asked", "expected"), [APPEND, READ, BARE], ids=["append", "read", "bare"])
def test_the_samples_are_answered_word_for_word(asked: str, expected: str) -> None:
    assert re.sub(r'"timestamp": \d+', '"timestamp": 1700000000', converse(asked)) == expected


def test_a_file_can_be_its_input(tmp_path: Path) -> None:
    (tmp_path / "messages").write_text(READ[0])
    with (tmp_path / "messages").open() as file:
        done = subprocess.run(COMMAND, stdin=file, capture_output=True, text=True, timeout=60)
    assert done.stdout == READ[1]


def test_what_it_stores_outlives_it_and_is_counted(tmp_path: Path) -> None:
    converse(APPEND[0], "--data-dir", str(tmp_path / "data"))
    info = '{"type": "partition_info", "msg_id": 3, "topic": "orders", "partition": 0}\n'
    answer = json.loads(converse(info, "--data-dir", str(tmp_path / "data")))
    assert list(answer) == ["type", "in_reply_to", "start_offset", "end_offset", "segments", "total_bytes"]
    assert (answer["in_reply_to"], answer["start_offset"], answer["end_offset"]) == (3, 0, 2)
    (log,) = (tmp_path / "data" / "orders-0").glob("*.log")
    assert (answer["segments"], answer["total_bytes"]) == (1, log.stat().st_size)


def test_kafka_clients_read_what_it_was_told() -> None:
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as node:
        assert node.stdin and node.stdout and node.stderr
        try:
            bootstrap = re.search(r"on (\S+) as well", node.stderr.readline())
            assert bootstrap is not None
            node.stdin.write(APPEND[0])
            node.stdin.flush()
            assert "".join(node.stdout.readline() for _ in range(3)) == APPEND[1]
            consumer = Consumer(
                {"bootstrap.servers": bootstrap[1], "group.id": "g", "auto.offset.reset": "earliest"}
            )
            consumer.subscribe(["orders"])
            messages = consumer.consume(2, timeout=30)
            assert [message.value() for message in messages] == [b"msg-1", b"msg-2"]
            consumer.close()
        finally:
            node.stdin.close()
            node.wait(60)
