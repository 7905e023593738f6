"""Three controllers in one process: elections, commits by a majority, and those who were away."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker import broker_settings
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.principal import Principal
from ottla.metadata.delta import Delta
from ottla.protocol.errors import InconsistentClusterId, KafkaError, KafkaStorageError, NotController
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.raft.membership import VoterKey
from ottla.runtime import snapshotter
from ottla.runtime.quorum_start import _id_from, first_cluster_id, load
from ottla.runtime.snapshots import find_snapshots, write_snapshot
from tests.unit.raft.test_machine import vote_request
from tests.unit.runtime.quorums import (
    FIRST_PORT,
    PATIENCE_S,
    Cluster,
    Node,
    cluster,
    create,
    eventually,
    topics,
)

Story = Callable[[Cluster], Awaitable[None]]


def tell(root: Path, story: Story, controllers: int = 3, **properties: str) -> None:
    async def run() -> None:
        async with cluster(root, controllers, **properties) as made:
            await made.start()
            await story(made)

    asyncio.run(run())


def test_three_nodes_with_empty_directories_become_one_cluster(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        for node in made.living:
            await node.quorum.caught_up()
            assert node.quorum.controller_id == leader.id
        assert len({node.cluster_id for node in made.living}) == 1
        assert len(leader.cluster_id) == 22
        await eventually(lambda: set(leader.quorum.image.controllers) == {1, 2, 3}, "all have registered")
        await made.agree()
        assert leader.quorum.kraft_version == 0
        assert leader.quorum.image.features["metadata.version"] == 30
        assert sum(node.quorum.is_active for node in made.living) == 1

    tell(tmp_path, story)


def test_whoever_is_asked_the_controller_decides(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        for node in made.nodes.values():
            await node.join()
        for node in made.nodes.values():
            await create(node, f"by-{node.id}", replicas=3)
        await made.agree()
        image = (await made.leader()).quorum.image
        assert set(image.topics) == {"by-1", "by-2", "by-3"}
        assert not any(broker.fenced for broker in image.brokers.values())

    tell(tmp_path, story)


def test_a_clients_request_goes_to_the_controller_in_its_name(tmp_path: Path) -> None:
    class Client:
        principal = Principal("User", "ann")
        address = "10.1.2.3"

    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        follower = (await made.followers())[0]
        response = await follower.quorum.submit(topics("orders"), 7, Client())
        assert response.topics[0].error_code == 0
        assert made.network.forwarded == [(Principal("User", "ann"), "10.1.2.3")]

    tell(tmp_path, story)


def test_nothing_is_committed_without_a_majority(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        for follower in await made.followers():
            made.network.cut.add(follower.id)
        asked = asyncio.create_task(leader.quorum.submit(topics("orders"), 7, within=0.2))
        with pytest.raises(KafkaError) as failed:
            await asked
        assert isinstance(failed.value, NotController)
        assert not leader.quorum.is_active
        assert "orders" not in leader.quorum.image.topics
        made.network.cut.clear()
        await made.leader()
        await made.agree()

    tell(tmp_path, story)


def test_a_leader_that_dies_has_a_successor_who_knows_what_was_committed(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        for node in made.nodes.values():
            await node.join()
        for number in range(5):
            leader = await made.leader()
            await create(leader, f"t{number}", replicas=1)
            await leader.kill()
            successor = await made.leader(but=leader)
            assert f"t{number}" in successor.quorum.image.topics
            assert successor.quorum.leader_epoch > leader.quorum.leader_epoch
            await made.start(leader.id)
            await made.nodes[leader.id].quorum.caught_up()
            await made.nodes[leader.id].join()
        await made.agree()
        assert len(made.living[0].quorum.image.topics) == 5

    tell(tmp_path, story)


def test_a_leader_that_stops_hands_over_without_a_timeout(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        loop = asyncio.get_running_loop()
        await made.agree()
        began = loop.time()
        await leader.stop()
        await made.leader(but=leader)
        assert loop.time() - began < 2.0

    tell(tmp_path, story, controller_quorum_fetch_timeout_ms="5000")


def test_a_follower_that_was_away_reads_the_log(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        follower = (await made.followers())[0]
        deltas: list[Delta] = []
        await follower.quorum.caught_up()
        follower.quorum.subscribe(lambda image, delta: deltas.append(delta))
        made.network.cut.add(follower.id)
        for number in range(10):
            await create(leader, f"t{number}")
        assert not follower.quorum.image.topics
        made.network.cut.clear()
        await made.agree()
        assert {name for delta in deltas for name in delta.topics} == {f"t{number}" for number in range(10)}

    tell(tmp_path, story)


def test_a_follower_that_was_away_for_too_long_gets_a_snapshot(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        await create(leader, "gone", "kept")
        await made.agree()
        follower = (await made.followers())[0]
        deltas: list[Delta] = []
        follower.quorum.subscribe(lambda image, delta: deltas.append(delta))
        image = follower.quorum.image
        gone = image.topics["gone"].id
        made.network.cut.add(follower.id)

        from ottla.protocol.messages.delete_topics import DeleteTopicsRequest

        await leader.quorum.submit(DeleteTopicsRequest(topic_names=["gone"]), 5)
        await create(leader, "new")
        for node in made.living:
            await node.quorum.snapshot()
        leader = await made.leader()
        assert leader.quorum._log.start_offset > 0
        await create(leader, "newer")
        made.network.cut.clear()
        await made.agree()

        assert follower.quorum.image is image  # whoever holds it sees it change
        assert set(image.topics) == {"kept", "new", "newer"}
        assert {topic for delta in deltas for topic in delta.deleted_topics} == {gone}
        assert {"new", "newer"} <= {name for delta in deltas for name in delta.topics}
        assert follower.quorum._log.start_offset == find_snapshots(str(follower.metadata))[0].end_offset > 0
        # What it took over is what it starts from.
        await follower.kill()
        await made.start(follower.id)
        await made.nodes[follower.id].quorum.caught_up()
        assert set(made.nodes[follower.id].quorum.image.topics) == {"kept", "new", "newer"}

    tell(tmp_path, story, metadata_max_retention_bytes="1")


def test_a_node_with_an_empty_disk_learns_all_from_the_others(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        await create(leader, "orders")
        follower = (await made.followers())[0]
        await follower.kill()
        import shutil

        shutil.rmtree(tmp_path / f"node-{follower.id}")
        await made.start(follower.id)
        await made.nodes[follower.id].quorum.caught_up()
        assert set(made.nodes[follower.id].quorum.image.topics) == {"orders"}

    tell(tmp_path, story)


def test_a_whole_cluster_that_restarts_has_all_its_topics(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        await create(leader, "orders", "payments")
        for node in made.living:
            await node.kill()
        await made.start()
        for node in made.living:
            await node.quorum.caught_up()
            assert set(node.quorum.image.topics) == {"orders", "payments"}

    tell(tmp_path, story)


def test_a_broker_that_votes_not_follows_the_log_and_finds_the_controller(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        await made.start(7)
        broker = made.nodes[7]
        await broker.quorum.caught_up()
        await broker.join()
        await create(broker, "orders")
        await made.agree()
        assert set(broker.quorum.image.topics) == {"orders"}
        leader = await made.leader()
        await leader.kill()
        await made.leader(but=leader)
        await create(broker, "payments")
        await made.agree()
        assert not broker.quorum.is_active

    tell(tmp_path, story)


def test_the_leader_describes_the_quorum_whoever_is_asked(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await made.agree()
        request = DescribeQuorumRequest(
            topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
        )
        for node in made.living:
            response: Any = await node.quorum.submit(request, 2)
            partition = response.topics[0].partitions[0]
            assert partition.leader_id == leader.id
            assert {voter.replica_id for voter in partition.current_voters} == {1, 2, 3}

    tell(tmp_path, story)


def test_a_silent_broker_is_fenced_and_let_in_when_it_is_heard_again(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        for node in made.nodes.values():
            await node.join()
        leader = await made.leader()
        follower = (await made.followers())[0]
        await create(leader, "orders", replicas=3)
        made.network.cut.add(follower.id)

        def is_fenced() -> bool:
            return leader.quorum.image.brokers[follower.id].fenced

        await eventually(is_fenced, "the broker is fenced")
        states = [state for _, _, state in leader.quorum.image.partitions()]
        assert all(follower.id not in state.isr and state.leader != follower.id for state in states)
        made.network.cut.clear()
        await eventually(lambda: not is_fenced(), "the broker is back")

    tell(tmp_path, story, broker_session_timeout_ms="600")


def test_an_idle_cluster_of_several_nodes_writes_now_and_then(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        end = leader.quorum.high_watermark
        await eventually(lambda: leader.quorum.high_watermark >= end + 3, "no-ops are committed")

    tell(tmp_path, story, metadata_max_idle_interval_ms="50")


def test_the_name_that_a_cluster_gives_itself_is_one_of_kafkas() -> None:
    for number in range(300):
        made = _id_from(f"1@localhost:{number}")
        assert made == Uuid.parse(str(made)) == _id_from(f"1@localhost:{number}")
        assert len(str(made)) == 22 and made.is_usable


def test_what_a_crash_left_in_the_page_cache_is_synced_before_it_counts(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        await create(leader, "orders")
        await leader.kill()
        node = Node(made.network, tmp_path, leader.id, made.properties(leader.id))
        directory = node.log_directories[0]
        store = load(node, directory, VoterKey(node.id, directory.id), 0, ())
        assert store.log.recovery_point == store.log.end_offset > 10
        store.log.close_files()
        directory._lock.release()

    tell(tmp_path, story)


def test_a_vote_that_cannot_be_written_down_is_not_given(tmp_path: Path) -> None:
    async def run() -> None:
        made = Cluster(tmp_path)
        await made.start(1)
        node = made.nodes[1]

        def fail(path: str, flags: int, mode: int = 0o644) -> int:
            raise OSError(errno.EIO, "the disk is gone", path)

        node.log_directories[0].files.open = fail  # type: ignore[method-assign]
        with pytest.raises(KafkaStorageError):
            await node.quorum.vote(vote_request(5, candidate=2, cluster_id=node.cluster_id))
        assert len(node.deaths) == 1 and "the disk is gone" in node.deaths[0]
        # Nor is it given when it is asked for again.
        with pytest.raises(KafkaStorageError):
            await node.quorum.vote(vote_request(5, candidate=3, cluster_id=node.cluster_id))
        await made.close()

    asyncio.run(run())


def test_a_node_that_has_stopped_gives_no_votes(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        node = (await made.followers())[0]
        await node.quorum.close()
        with pytest.raises(KafkaStorageError):
            await node.quorum.vote(vote_request(50, candidate=2, cluster_id=node.cluster_id))

    tell(tmp_path, story)


def test_a_snapshot_that_the_leaders_has_overtaken_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        await create(leader, "first")
        await made.agree()
        follower = (await made.followers())[0]
        made.network.cut.add(follower.id)
        is_over = threading.Event()

        def slowly(files: Files, path: str, batches: Iterable[bytearray]) -> int:
            if path.startswith(str(follower.metadata)):
                is_over.wait(PATIENCE_S)
            return write_snapshot(files, path, batches)

        monkeypatch.setattr(snapshotter, "write_snapshot", slowly)
        writing = asyncio.create_task(follower.quorum.snapshot())
        await create(leader, "second")
        for node in made.living:
            if node is not follower:
                await node.quorum.snapshot()
        made.network.cut.clear()
        await made.agree()
        taken_over = follower.quorum._log.start_offset
        assert taken_over > 0
        is_over.set()
        await writing
        assert [each.end_offset for each in follower.quorum._store.snapshots] == [taken_over]
        assert [each.end_offset for each in find_snapshots(str(follower.metadata))] == [taken_over]

    tell(tmp_path, story, metadata_max_retention_bytes="1")


def test_a_broker_of_another_cluster_is_told_so(tmp_path: Path) -> None:
    async def run() -> None:
        made = Cluster(tmp_path)
        await made.start()
        await made.leader()
        properties = made.properties(7) | {"ottla.cluster.id": "another"}
        stranger = made.nodes[7] = Node(made.network, tmp_path, 7, properties)
        await stranger.start()
        with pytest.raises(InconsistentClusterId, match="is not of cluster another"):
            await asyncio.wait_for(stranger.quorum.caught_up(), PATIENCE_S)
        assert len(stranger.deaths) == 1 and "is not of cluster another" in stranger.deaths[0]
        await made.close()
        assert not any(made.nodes[id].deaths for id in (1, 2, 3))

    asyncio.run(run())


def test_a_voter_of_another_cluster_goes_and_the_others_elect_a_leader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        made = Cluster(tmp_path)
        stranger = made.nodes[1] = Node(
            made.network, tmp_path, 1, made.properties(1) | {"ottla.cluster.id": "another"}
        )
        await stranger.start()
        await made.start(2, 3)
        assert (await made.leader()).id in (2, 3)
        await eventually(lambda: bool(stranger.deaths), "the stranger goes")
        await made.close()
        assert not any(made.nodes[id].deaths for id in (2, 3))

    asyncio.run(run())
    told = [each for each in caplog.messages if "INCONSISTENT_CLUSTER_ID" in each]
    assert 1 <= len(told) <= 4  # of each once, however often it is asked


@pytest.mark.parametrize("key", ["controller.quorum.voters", "controller.quorum.bootstrap.servers"])
def test_a_lone_controller_and_its_brokers_come_to_the_same_cluster_id(tmp_path: Path, key: str) -> None:
    made = Cluster(tmp_path, 1).properties(1)
    del made["controller.quorum.voters"]
    made[key] = f"{'1@' if 'voters' in key else ''}localhost:{FIRST_PORT + 1}"

    def cluster_id(roles: str, listeners: str) -> str | None:
        properties = made | {"process.roles": roles, "listeners": listeners}
        return first_cluster_id(broker_settings(properties), properties)

    clients, controllers = "PLAINTEXT://localhost:0", f"CONTROLLER://localhost:{FIRST_PORT + 1}"
    lone = cluster_id("controller", controllers)
    assert lone is not None and lone == cluster_id("broker", clients)
    # One that is both may well be a cluster of its own.
    assert cluster_id("broker,controller", f"{clients},{controllers}") is None


def test_a_node_alone_answers_what_is_under_way_before_it_stops(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        node = made.nodes[1]
        assert node.quorum._registering is not None
        asked = asyncio.create_task(node.quorum.submit(node.quorum._registering.request(), 0))
        await asyncio.sleep(0)
        await node.quorum.close()
        assert not (await asyncio.wait_for(asked, 5)).error_code
        with pytest.raises(NotController):
            await node.quorum.submit(node.quorum._registering.request(), 0, within=0.1)

    tell(tmp_path, story, controllers=1)


def test_what_was_sent_to_a_controller_is_not_passed_on_to_the_next(tmp_path: Path) -> None:
    async def story(made: Cluster) -> None:
        leader = await made.leader()
        await leader.join()
        for follower in await made.followers():
            made.network.cut.add(follower.id)
        asked = asyncio.create_task(leader.quorum.submit_here(topics("orders"), 7))
        # The others are back as soon as it does not lead any more: it could ask them.
        await eventually(lambda: not leader.quorum.is_active, "the leader resigns")
        made.network.cut.clear()
        with pytest.raises(NotController):
            await asked
        with pytest.raises(NotController):
            await (await made.followers())[0].quorum.submit_here(topics("orders"), 7)

    tell(tmp_path, story)
