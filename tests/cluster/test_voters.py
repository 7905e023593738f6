"""Controllers that come and go (KIP-853), as processes: one becomes three, and the first one leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.core.ids import Uuid
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.storage.meta_properties import read_meta_properties
from ottla.testing import cluster_state
from ottla.testing.asking import ask
from ottla.testing.cluster import _free_ports

pytestmark = pytest.mark.heavy

ADD_RAFT_VOTER, REMOVE_RAFT_VOTER = 80, 81
CLUSTER = "5L6g3nShT-eMCtK--X86sw"
DIRECTORIES = {1: "aRjrKUcjSdi7yMFYKm_5IQ", 2: "zWjb3Ix2StqK4H2ZfBBMdA", 3: "QSGAQDU6QCCa-S_sm-zGPQ"}
SECONDS = 60.0


class Nodes:
    """Three nodes with property files as in Kafka's documentation, of which none knows who votes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ports = _free_ports(6)
        self.clients = dict(enumerate(ports[:3], 1))
        self.controllers = dict(enumerate(ports[3:], 1))
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        for id in self.clients:
            (root / f"{id}.properties").write_text(self.properties(id))

    def properties(self, id: int) -> str:
        servers = ",".join(f"127.0.0.1:{port}" for port in self.controllers.values())
        lines = {
            "process.roles": "broker,controller",
            "node.id": id,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.clients[id]},CONTROLLER://127.0.0.1:{self.controllers[id]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": servers,
            "log.dirs": self.root / f"data-{id}",
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def format(self, id: int, *options: str) -> None:
        config = str(self.root / f"{id}.properties")
        command = [sys.executable, "-m", "ottla", "format", "--config", config, "--cluster-id", CLUSTER]
        subprocess.run([*command, *options], check=True, timeout=SECONDS)

    def start(self, id: int, *options: str) -> None:
        config = str(self.root / f"{id}.properties")
        command = [sys.executable, "-m", "ottla", "serve", "--config", config, *options]
        with (self.root / f"said-{id}").open("wb") as output:
            self.running[id] = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def stop(self, id: int) -> None:
        process = self.running.pop(id)
        process.terminate()
        process.wait(SECONDS)

    def bootstrap(self, id: int) -> str:
        return f"127.0.0.1:{self.clients[id]}"

    def quorum(self, id: int) -> cluster_state.Quorum:
        return cluster_state.quorum(self.bootstrap(id))

    def directory_id(self, id: int) -> Uuid:
        meta = read_meta_properties(str(self.root / f"data-{id}"))
        assert meta is not None
        assert meta.directory_id is not None
        return meta.directory_id


@pytest.fixture
def nodes(tmp_path: Path, referee: bool) -> Iterator[Nodes]:
    if referee:
        pytest.skip("about Ottla's own command line")
    made = Nodes(tmp_path)
    yield made
    for process in made.running.values():
        process.terminate()  # all of them first: one that is left alone looks for the others
    for id in list(made.running):
        made.stop(id)


def test_one_controller_becomes_three_and_the_first_leaves(nodes: Nodes) -> None:
    nodes.format(1, "--standalone")
    nodes.format(2)
    nodes.format(3)
    for id in (1, 2, 3):
        nodes.start(id)
    cluster_state.eventually(
        "all follow the first", lambda: set(nodes.quorum(1).observers) == {2, 3}, SECONDS
    )
    for id in (2, 3):
        cluster_state.eventually("it serves", lambda id=id: set(nodes.quorum(id).voters) == {1}, SECONDS)
    for id in (2, 3):
        listener = Listener(name="CONTROLLER", host="127.0.0.1", port=nodes.controllers[id])
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER,
            timeout_ms=30_000,
            voter_id=id,
            voter_directory_id=nodes.directory_id(id),
            listeners=[listener],
        )
        answer = ask(nodes.bootstrap(3), ADD_RAFT_VOTER, 0, request, timeout=SECONDS)
        assert answer.error_code == 0, answer.error_message
    assert set(nodes.quorum(2).voters) == {1, 2, 3}
    leave = RemoveRaftVoterRequest(cluster_id=CLUSTER, voter_id=1, voter_directory_id=nodes.directory_id(1))
    answer = ask(nodes.bootstrap(2), REMOVE_RAFT_VOTER, 0, leave, timeout=SECONDS)
    assert answer.error_code == 0, answer.error_message
    cluster_state.eventually("another leads", lambda: nodes.quorum(2).leader in (2, 3), SECONDS)
    nodes.stop(1)
    cluster_state.eventually("it has left", lambda: set(nodes.quorum(2).voters) == {2, 3}, SECONDS)


@pytest.mark.heavy
def test_three_controllers_begin_together(nodes: Nodes) -> None:
    voters = ",".join(f"{id}@127.0.0.1:{nodes.controllers[id]}:{DIRECTORIES[id]}" for id in DIRECTORIES)
    for id in (1, 2, 3):
        nodes.format(id, "--initial-controllers", voters)
        nodes.start(id)
    cluster_state.eventually("they elect one", lambda: nodes.quorum(2).leader in (1, 2, 3), SECONDS)
    cluster_state.eventually("all vote", lambda: set(nodes.quorum(3).voters) == {1, 2, 3}, SECONDS)
    assert str(nodes.directory_id(2)) == DIRECTORIES[2]


def test_a_node_can_be_a_controller_and_nothing_else(nodes: Nodes) -> None:
    nodes.format(1, "--standalone", "--set", "process.roles=controller", "--set", f"listeners={at(nodes)}")
    nodes.start(1, "--set", "process.roles=controller", "--set", f"listeners={at(nodes)}")
    said = nodes.root / "said-1"
    cluster_state.eventually("it is there", lambda: "stop with" in said.read_text(), SECONDS)
    assert f"controller on 127.0.0.1:{nodes.controllers[1]}" in said.read_text()


def at(nodes: Nodes) -> str:
    return f"CONTROLLER://127.0.0.1:{nodes.controllers[1]}"
