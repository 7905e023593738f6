"""What `ottla serve --processes` tells each of its nodes, before it starts them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ottla.cli.given import Given
from ottla.cli.processes import MOST, prepare
from ottla.config.properties import parse_properties
from ottla.config.settings import ConfigError
from ottla.storage.meta_properties import read_meta_properties


def node_properties(root: Path, id: int) -> dict[str, str]:
    return parse_properties((root / f"node-{id}" / "server.properties").read_text())


def test_every_node_has_its_own_port_directory_and_number(tmp_path: Path) -> None:
    plans = prepare(3, Given(port=19_092, data_dir=tmp_path))

    assert [plan.address for plan in plans] == [f"127.0.0.1:{port}" for port in (19_092, 19_093, 19_094)]
    found = [node_properties(tmp_path, id) for id in (1, 2, 3)]
    assert [each["node.id"] for each in found] == ["1", "2", "3"]
    assert [each["log.dirs"] for each in found] == [str(tmp_path / f"node-{id}") for id in (1, 2, 3)]


def test_all_nodes_name_the_same_cluster_and_voters(tmp_path: Path) -> None:
    prepare(3, Given(port=0, data_dir=tmp_path))

    assert len({node_properties(tmp_path, id)["controller.quorum.voters"] for id in (1, 2, 3)}) == 1
    metas = [read_meta_properties(str(tmp_path / f"node-{id}")) for id in (1, 2, 3)]
    assert len({meta.cluster_id for meta in metas if meta}) == 1
    assert [meta.node_id for meta in metas if meta] == [1, 2, 3]
    assert len({meta.directory_id for meta in metas if meta}) == 3


def test_a_second_start_is_the_same_cluster(tmp_path: Path) -> None:
    prepare(3, Given(port=0, data_dir=tmp_path))
    before = (tmp_path / "cluster.properties").read_text()
    first = read_meta_properties(str(tmp_path / "node-1"))

    prepare(3, Given(port=0, data_dir=tmp_path))

    assert (tmp_path / "cluster.properties").read_text() == before
    assert read_meta_properties(str(tmp_path / "node-1")) == first


def test_another_number_of_nodes_is_refused(tmp_path: Path) -> None:
    prepare(3, Given(port=0, data_dir=tmp_path))

    with pytest.raises(ConfigError, match="is the data of 3 nodes; say --processes 3"):
        prepare(5, Given(port=0, data_dir=tmp_path))


@pytest.mark.parametrize(
    ("count", "copies", "floor"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_there_are_as_many_copies_as_make_sense(tmp_path: Path, count: int, copies: str, floor: str) -> None:
    prepare(count, Given(port=0, data_dir=tmp_path))

    found = node_properties(tmp_path, 1)
    assert (found["default.replication.factor"], found["min.insync.replicas"]) == (copies, floor)
    assert found["offsets.topic.replication.factor"] == copies
    assert found["transaction.state.log.min.isr"] == floor


def test_what_somebody_says_about_copies_stays(tmp_path: Path) -> None:
    prepare(3, Given(port=0, data_dir=tmp_path, assignments=("min.insync.replicas=1",)))

    assert node_properties(tmp_path, 2)["min.insync.replicas"] == "1"


def test_properties_are_for_their_owner_alone(tmp_path: Path) -> None:
    prepare(1, Given(port=0, data_dir=tmp_path))

    assert stat.S_IMODE((tmp_path / "node-1" / "server.properties").stat().st_mode) == 0o600


@pytest.mark.parametrize("count", [0, -1, MOST + 1])
def test_a_number_that_makes_no_sense_is_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(ConfigError, match=f"--processes {count}"):
        prepare(count, Given(port=0, data_dir=tmp_path))


@pytest.mark.parametrize(
    "assignment",
    [
        "controller.quorum.voters=1@a:1",
        "advertised.listeners=PLAINTEXT://a:1",
        "listeners=PLAINTEXT://127.0.0.1:1,OTHER://127.0.0.1:2",
        "log.dirs=/a,/b",
    ],
)
def test_what_cannot_be_the_same_for_all_nodes_is_refused(tmp_path: Path, assignment: str) -> None:
    data_dir = None if assignment.startswith("log.dirs") else tmp_path
    with pytest.raises(ConfigError, match="--processes"):
        prepare(3, Given(data_dir=data_dir, assignments=(assignment,)))
