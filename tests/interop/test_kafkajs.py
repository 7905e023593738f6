"""kafkajs, which writes its own protocol: a group of two, a transaction of each kind, and offsets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.topics import Names, create_topic
from tools.kafka.distribution import PROJECT

VERSION = "2.2.4"
HOME = PROJECT / ".kafka" / f"kafkajs-{VERSION}"
SCRIPT = Path(__file__).with_name("kafkajs.js")


@pytest.fixture(scope="session")
def node() -> str:
    """Node with kafkajs, fetched into `.kafka/` on first use. If they cannot be had, the test says why."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None:
        pytest.skip("no `node` on the PATH, so kafkajs is not tried")
    if not (HOME / "node_modules" / "kafkajs" / "package.json").exists():
        if npm is None:
            pytest.skip("no `npm` on the PATH to fetch kafkajs with")
        HOME.mkdir(parents=True, exist_ok=True)
        fetch = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(HOME), f"kafkajs@{VERSION}"]
        done = subprocess.run(fetch, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            pytest.skip(f"npm cannot fetch kafkajs: {done.stderr.strip()[-300:]}")
    return found


def test_a_group_of_two_and_two_transactions(node: str, quick: str, unique: Names) -> None:
    topic, group = unique("kafkajs"), unique("group")
    create_topic(quick, topic, 4)
    done = subprocess.run(
        [node, str(SCRIPT), quick, topic, group],
        env=os.environ | {"NODE_PATH": str(HOME / "node_modules"), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    committed = {f"commit-{number}" for number in range(4)}
    # It reads committed records only.
    assert set(result["seen"]) == {f"plain-{number}" for number in range(100)} | committed
    owned = [partition for partitions in result["owned"].values() for partition in partitions]
    assert sorted(owned) == [0, 1, 2, 3]
    # 25 plain records, one aborted and its marker, one committed; the last marker need not count.
    assert set(result["offsets"].values()) <= {28, 29}
    assert result["source"]["0"] == 3, "of the committed transaction, not of the aborted"
    assert result["state"] == "Empty"
