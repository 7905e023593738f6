"""Every door of every node: what another node leads is asked of that one."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

from ottla.testing.cluster import TestCluster, TestNode
from tests.interop.topics import eventually

SECONDS = 30.0
PARTITIONS = 6
JSON = "application/vnd.schemaregistry.v1+json"


@pytest.fixture(autouse=True)
def of_our_own(referee: bool) -> None:
    if referee:
        pytest.skip("Kafka has one door")


def typed(node: TestNode, *lines: str) -> list[str]:
    """What the text door of a node answers to these lines."""
    host, _, port = node.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall("".join(line + "\n" for line in (*lines, "QUIT")).encode())
        with connection.makefile("rb") as answer:
            return [line.decode().rstrip("\n") for line in answer]


def asked(node: TestNode, path: str, value: Any = None, method: str | None = None) -> Any:
    """What the registry of a node answers."""
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(
        f"http://{node.bootstrap}{path}", body, {"Content-Type": JSON}, method=method
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.loads(answer.read())


def schema(number: int) -> dict[str, str]:
    """All of them get along with each other."""
    field = {"name": f"f{number}", "type": "int", "default": 0}
    text = json.dumps({"type": "record", "name": "r", "fields": [field]}, separators=(",", ":"))
    return {"schema": text}


def test_what_is_written_at_one_node_is_read_at_every_other(cluster: TestCluster) -> None:
    topic = cluster.topic(partitions=PARTITIONS)
    written = []
    for number in range(4 * PARTITIONS):
        node = cluster.nodes[number % len(cluster.nodes)]
        answer = typed(node, f"PRODUCE {topic} key-{number} value-{number}")[0]
        assert answer.startswith("OK"), answer
        written.append(f"value-{number}")
    for node in cluster.nodes:
        found = []
        for partition in range(PARTITIONS):
            lines = typed(node, f"CONSUME {topic} {partition} 0")
            assert not lines[0].startswith("ERR"), lines
            found += [line.split()[-1] for line in lines if "value-" in line]
        assert sorted(found) == sorted(written)


def test_offsets_of_a_group_are_known_at_every_node(cluster: TestCluster) -> None:
    topic = cluster.topic(partitions=PARTITIONS)
    for number in range(PARTITIONS):
        typed(cluster.nodes[0], f"PRODUCE {topic} key-{number} value-{number}")
    answers = {tuple(typed(node, f"OFFSETS {topic} {topic}-group")) for node in cluster.nodes}
    assert len(answers) == 1, answers
    assert "ERR" not in next(iter(answers))[0]


@pytest.mark.heavy
def test_doors_stay_open_when_a_leader_is_killed(cluster: TestCluster) -> None:
    topic = cluster.topic(partitions=1, min_insync_replicas=2)
    typed(cluster.nodes[0], f"PRODUCE {topic} key value-0")
    dead = cluster.leader(topic)
    others = [node for node in cluster.nodes if node is not dead]
    dead.kill()

    def goes_on() -> bool:
        return all(typed(node, f"PRODUCE {topic} key value-1")[0].startswith("OK") for node in others)

    eventually(goes_on)
    for node in others:
        assert any("value-0" in line for line in typed(node, f"CONSUME {topic} 0 0"))


def test_schemas_have_one_registry(cluster: TestCluster) -> None:
    subject = cluster.unique("subject")
    ids = [
        asked(node, f"/subjects/{subject}-{index}/versions", schema(100 * index + number))["id"]
        for number in range(5)
        for index, node in enumerate(cluster.nodes)
    ]
    assert len(set(ids)) == len(ids)
    for node in cluster.nodes:
        for index in range(len(cluster.nodes)):
            assert asked(node, f"/subjects/{subject}-{index}/versions") == [1, 2, 3, 4, 5]
        assert asked(node, f"/schemas/ids/{ids[0]}") == schema(0)
    with pytest.raises(urllib.error.HTTPError) as refused:
        asked(cluster.nodes[1], f"/subjects/{subject}-none", method="DELETE")
    assert json.loads(refused.value.read())["error_code"] == 40401


@pytest.mark.heavy
def test_a_registry_goes_on_when_the_broker_that_writes_is_killed(cluster: TestCluster) -> None:
    subject = cluster.unique("subject")
    first = asked(cluster.nodes[0], f"/subjects/{subject}/versions", schema(1))["id"]
    dead = cluster.leader("_schemas")
    others = [node for node in cluster.nodes if node is not dead]
    dead.kill()
    made: list[int] = []

    def registers() -> bool:
        try:
            made.append(asked(others[0], f"/subjects/{subject}/versions", schema(2))["id"])
        except (OSError, urllib.error.HTTPError):
            return False
        return True

    eventually(registers)
    assert made[0] > first
    for node in others:
        assert asked(node, f"/subjects/{subject}/versions") == [1, 2]
    dead.start()
    cluster.wait_until_stable()
    assert asked(dead, f"/subjects/{subject}/versions") == [1, 2]
    assert asked(dead, f"/subjects/{subject}/versions", schema(1))["id"] == first
