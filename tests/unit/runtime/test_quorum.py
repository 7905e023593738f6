"""The metadata quorum of one voter, on real files."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.config.broker import broker_settings, development_defaults
from ottla.config.listeners import Listeners
from ottla.core.files import Files
from ottla.metadata import framing
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image
from ottla.protocol.batch import iter_batches, read_records
from ottla.protocol.control import ControlRecordType, read_control_records
from ottla.protocol.errors import KafkaStorageError
from ottla.protocol.messages.broker_registration import Listener
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.runtime import snapshotter
from ottla.runtime.channels import Channels
from ottla.runtime.flusher import Flusher
from ottla.runtime.lifecycle import Lifecycle
from ottla.runtime.quorum import Quorum
from ottla.runtime.snapshots import find_snapshots, read_snapshot
from ottla.storage.log_directory import open_log_directories
from ottla.testing.disk import FaultyFiles, Note, RecordingFiles, UnsyncedFiles, crash_images, write_image

LONG_S = 30


class ManualClock:
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    monotonic_ms = wall_ms


class Home:
    """A node with nothing but log directories and a quorum."""

    def __init__(self, path: Path, files: Files | None = None, **properties: str) -> None:
        given = {"log.dirs": str(path)} | {key.replace("_", "."): value for key, value in properties.items()}
        self.static_properties = development_defaults(given) | given
        self.settings = broker_settings(self.static_properties)
        self.listeners = Listeners.parse(self.settings)
        self.clock = ManualClock()
        self.node_id = self.settings.node_id
        self.log_directories = open_log_directories(
            self.settings.data_dirs, clock=self.clock, node_id=self.node_id, files=files or UnsyncedFiles()
        )
        self.cluster_id = self.log_directories[0].cluster_id
        self.deaths: list[str] = []
        self.image = Image()
        self.channels = Channels(self)
        self.flushers = {directory: Flusher(directory) for directory in self.log_directories}
        self.metadata = Path(self.settings.metadata_dir, "__cluster_metadata-0")

    def die(self, reason: str) -> None:
        self.deaths.append(reason)

    async def broker(self, quorum: Quorum) -> Lifecycle:
        """Registers this node's broker and lets it serve."""
        life = Lifecycle(
            quorum,
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            rack=None,
            heartbeat_interval_ms=0,
            metadata_offset=lambda: quorum.image.offset,
        )
        await life.register(
            [Listener(name="PLAINTEXT", host="localhost", port=9092)],
            [directory.id for directory in self.log_directories],
            self.log_directories[0].previous_broker_epoch,
        )
        while (await life._heartbeat()).is_fenced:
            pass
        return life

    def load(self) -> None:
        for directory in self.log_directories:
            directory.load(lambda topic: self.settings)  # type: ignore[arg-type,return-value]

    async def stop(self, quorum: Quorum, life: Lifecycle | None = None) -> None:
        if life is not None:
            await life.leave()
        for flusher in self.flushers.values():
            await flusher.close()
        await quorum.close()
        self.load()
        for directory in self.log_directories:
            directory.close(-1 if life is None else life.broker_epoch)

    async def crash(self, quorum: Quorum) -> None:
        """Lets go of everything as a dead process does, without a last word."""
        quorum.abandon()
        for flusher in self.flushers.values():
            await flusher.close()
        quorum._log.close_files()
        for directory in self.log_directories:
            directory._lock.release()


Story = Callable[[Quorum, Home], Awaitable[None]]


def run(
    path: Path, story: Story, files: Files | None = None, *, crash: bool = False, **properties: str
) -> None:
    async def tell() -> None:
        home = Home(path, files, **properties)
        quorum = await Quorum.open(home)
        try:
            await story(quorum, home)
        finally:
            if crash or quorum.failure is not None:
                await home.crash(quorum)
            else:
                await home.stop(quorum)

    asyncio.run(tell())


async def create(quorum: Quorum, *names: str) -> None:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    response = await quorum.submit(CreateTopicsRequest(topics=topics), 7)
    assert [topic.error_code for topic in response.topics] == [0] * len(names)


def records_of(path: Path) -> list[tuple[int, str]]:
    """What the log on disk holds, as offsets and kinds."""
    found = []
    for header, batch in iter_batches(path.read_bytes()):
        if header.is_control:
            found += [(record.offset, record.type.name) for record in read_control_records(batch)]
        else:
            kinds = (framing.decode(record.value or b"") for record in read_records(batch))
            found += [(header.base_offset + n, type(kind).__name__) for n, kind in enumerate(kinds)]
    return found


# --- the first start -------------------------------------------------------------------------


def test_a_new_directory_becomes_what_kafka_would_have_formatted(tmp_path: Path) -> None:
    async def story(quorum: Quorum, home: Home) -> None:
        assert quorum.finalized_features() == {
            "metadata.version": 30,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 1,
            "streams.version": 1,
            "transaction.version": 2,
            "kraft.version": 1,
        }
        assert quorum.image.config(4, "") == {"min.insync.replicas": "1"}
        assert set(quorum.image.controllers) == {home.node_id}

    run(tmp_path, story)

    # The sizes are those of the files that Apache Kafka 4.3 makes.
    assert (tmp_path / "bootstrap.checkpoint").stat().st_size == 411
    metadata = tmp_path / "__cluster_metadata-0"
    first = read_snapshot(str(metadata / "00000000000000000000-0000000000.checkpoint"))
    assert [record.type for record in first.control] == [
        ControlRecordType.SNAPSHOT_HEADER,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
        ControlRecordType.SNAPSHOT_FOOTER,
    ]
    assert (metadata / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    state = json.loads((metadata / "quorum-state").read_bytes())
    assert (state["leaderId"], state["leaderEpoch"], state["data_version"]) == (1, 1, 1)
    assert [kind for _, kind in records_of(metadata / "00000000000000000000.log")] == [
        "LEADER_CHANGE",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
        "BeginTransactionRecord",
        *["FeatureLevelRecord"] * 6,
        "ConfigRecord",
        "EndTransactionRecord",
        "RegisterControllerRecord",
    ]


def test_every_log_directory_gets_the_bootstrap_snapshot(tmp_path: Path) -> None:
    dirs = f"{tmp_path}/a,{tmp_path}/b"

    async def story(quorum: Quorum, home: Home) -> None:
        assert home.metadata == tmp_path / "a" / "__cluster_metadata-0"

    run(tmp_path, story, log_dirs=dirs)
    for name in "ab":
        assert (tmp_path / name / "bootstrap.checkpoint").exists()
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()


def test_the_metadata_log_may_have_a_directory_of_its_own(tmp_path: Path) -> None:
    properties = {"log_dirs": f"{tmp_path}/data", "metadata_log_dir": f"{tmp_path}/metadata"}
    seen: list[Image] = []

    async def first(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        await create(quorum, "orders")

    async def second(quorum: Quorum, home: Home) -> None:
        seen.append(quorum.image)

    run(tmp_path, first, **properties)
    assert (tmp_path / "metadata" / "__cluster_metadata-0").exists()
    assert not (tmp_path / "data" / "__cluster_metadata-0").exists()
    run(tmp_path, second, **properties)
    assert set(seen[0].topics) == {"orders"}


# --- requests --------------------------------------------------------------------------------


def test_a_request_is_answered_when_its_records_are_committed_and_published(tmp_path: Path) -> None:
    deltas: list[tuple[int, Delta]] = []

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        quorum.subscribe(lambda image, delta: deltas.append((image.offset, delta)))
        await create(quorum, "orders")
        assert set(quorum.image.topics) == {"orders"}
        assert quorum.image.offset == quorum.high_watermark - 1

    run(tmp_path, story, crash=True)
    assert [delta.topics for _, delta in deltas] == [{"orders": {0, 1}}]


class GatedFiles(UnsyncedFiles):
    """Syncs of the metadata log are counted, and wait while the gate is closed."""

    def __init__(self) -> None:
        self.syncs = 0
        self.arrived = threading.Semaphore(0)
        self.open_gate = threading.Event()
        self.open_gate.set()
        self.logs: set[object] = set()

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = super().open(path, flags, mode)
        self.logs.discard(fd)
        if path.endswith(".log"):
            self.logs.add(fd)
        return fd

    def fdatasync(self, fd: object) -> None:
        if fd in self.logs:
            self.syncs += 1
            self.arrived.release()
            assert self.open_gate.wait(LONG_S)


def test_nothing_is_seen_or_answered_before_it_is_synced(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        while files.arrived.acquire(blocking=False):
            pass
        files.open_gate.clear()
        asked = asyncio.create_task(create(quorum, "orders"))
        again = asyncio.create_task(
            quorum.submit(CreateTopicsRequest(topics=[CreatableTopic(name="orders")]), 7)
        )
        assert await asyncio.to_thread(files.arrived.acquire, timeout=LONG_S)
        assert "orders" not in quorum.image.topics
        assert not asked.done()
        # An error that rests on what is not committed yet has to wait as well.
        assert not again.done()
        files.open_gate.set()
        await asked
        assert (await again).topics[0].error_code == 36

    run(tmp_path, story, files)


def test_requests_in_flight_share_a_sync(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        before = files.syncs
        await asyncio.gather(*(create(quorum, f"t{number}") for number in range(50)))
        assert len(quorum.image.topics) == 50
        assert files.syncs - before <= 2

    run(tmp_path, story, files)


def test_a_failed_sync_ends_the_quorum_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        files.fail("fsync", "*__cluster_metadata-0/*.log")
        with pytest.raises(KafkaStorageError):
            await create(quorum, "orders")
        assert "orders" not in quorum.image.topics
        assert quorum.failure is not None
        with pytest.raises(KafkaStorageError):
            await create(quorum, "others")

    run(tmp_path, story, files)


def test_a_failed_write_ends_the_quorum(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        files.fail("write", "*__cluster_metadata-0/*.log")
        with pytest.raises(KafkaStorageError):
            await create(quorum, "orders")
        assert quorum.failure is not None and len(home.deaths) == 1

    run(tmp_path, story, files)


@pytest.mark.parametrize("moment", ["append", "write", "sync"])
def test_a_quorum_that_can_open_no_more_files_goes_on_when_it_can(moment: str, tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        log = quorum._log
        path = f"{log.directory}/*.log" if moment != "sync" else log.directory
        if moment == "sync":
            log.sync_with_next_flush(f"{log.directory}/quorum-state")
        elif moment == "append":
            log.segments.close_files()
        else:
            append = log.append

            def append_and_lose_the_file(*arguments: Any, **named: Any) -> Any:
                appended = append(*arguments, **named)
                log.segments.close_files()
                return appended

            log.append = append_and_lose_the_file  # type: ignore[method-assign]
        fault = files.fail(
            "sync_directory" if moment == "sync" else "open", path, error=errno.EMFILE, times=3
        )
        if moment == "append":
            fault.times = 1 << 30
            with pytest.raises(KafkaStorageError, match="Too many open files"):
                await create(quorum, "refused")
            files.faults.remove(fault)
        await create(quorum, "orders")
        assert list(quorum.image.topics) == ["orders"]
        assert quorum.failure is None
        assert home.deaths == []

    run(tmp_path, story, files)


def test_the_quorum_describes_itself(tmp_path: Path) -> None:
    def about(topic: str) -> DescribeQuorumRequest:
        return DescribeQuorumRequest(
            topics=[TopicData(topic_name=topic, partitions=[PartitionData(partition_index=0)])]
        )

    async def story(quorum: Quorum, home: Home) -> None:
        response = await quorum.submit(about("__cluster_metadata"), 2)
        partition = response.topics[0].partitions[0]
        assert (partition.leader_id, partition.leader_epoch) == (1, 1)
        assert partition.high_watermark == quorum.high_watermark == 13
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, 13)
        assert voter.replica_directory_id == home.log_directories[0].id
        assert [node.node_id for node in response.nodes] == [1]
        old = await quorum.submit(about("__cluster_metadata"), 0)
        assert old.nodes == []
        other = await quorum.submit(about("orders"), 2)
        assert other.topics[0].partitions[0].error_code == 3
        assert (await quorum.submit(DescribeQuorumRequest(), 2)).error_code == 42

    run(tmp_path, story)


# --- time ------------------------------------------------------------------------------------


def test_a_silent_broker_is_fenced(tmp_path: Path) -> None:
    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        await create(quorum, "orders")
        assert quorum.step() <= 2_000
        home.clock.now_ms += 9_001
        quorum.step()
        await quorum.submit(DescribeQuorumRequest(), 2)
        await create_nothing(quorum)
        assert quorum.image.brokers[1].fenced
        assert {state.leader for _, _, state in quorum.image.partitions()} == {-1}

    run(tmp_path, story)


async def create_nothing(quorum: Quorum) -> None:
    """Waits for whatever is under way."""
    await quorum.submit(CreateTopicsRequest(), 7)


def test_an_idle_quorum_of_one_leaves_the_disk_alone_unless_asked_not_to(tmp_path: Path) -> None:
    async def quiet(quorum: Quorum, home: Home) -> None:
        end = quorum.high_watermark
        for _ in range(5):
            home.clock.now_ms += 1_000
            quorum.step()
        await create_nothing(quorum)
        assert quorum.high_watermark == end

    async def chatty(quorum: Quorum, home: Home) -> None:
        end = quorum.high_watermark
        for _ in range(5):
            home.clock.now_ms += 1_000
            assert quorum.step() <= 500
        await create_nothing(quorum)
        assert quorum.high_watermark == end + 5

    run(tmp_path / "a", quiet)
    run(tmp_path / "b", chatty, metadata_max_idle_interval_ms="500")


# --- starting again --------------------------------------------------------------------------


def test_a_clean_stop_leaves_no_leader_and_the_next_start_brings_all_back(tmp_path: Path) -> None:
    async def story() -> None:
        for epoch in (1, 2, 3):
            home = Home(tmp_path)
            quorum = await Quorum.open(home)
            assert quorum.leader_epoch == epoch
            life = await home.broker(quorum)
            if epoch == 1:
                await create(quorum, "orders")
            for _, _, state in quorum.image.partitions():
                assert (state.leader, state.isr, state.elr) == (1, (1,), ())
                assert (state.leader_epoch, state.leader_recovery_state) == (2 * (epoch - 1), 0)
            await home.stop(quorum, life)

    asyncio.run(story())


def test_after_a_crash_every_partition_has_its_leader_again_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        for start in range(3):
            home = Home(tmp_path)
            quorum = await Quorum.open(home)
            await home.broker(quorum)
            if start == 0:
                await create(quorum, "orders")
            for _, _, state in quorum.image.partitions():
                assert (state.leader, state.isr, state.elr, state.last_known_elr) == (1, (1,), (), ())
                assert state.leader_epoch == 2 * start
                # Whoever crashed may have lost the tail of its log, and has to say when it recovered.
                assert state.leader_recovery_state == (1 if start else 0)
            await home.crash(quorum)

    asyncio.run(story())


def test_every_start_leads_in_a_new_epoch_and_says_so_once(tmp_path: Path) -> None:
    async def story(quorum: Quorum, home: Home) -> None:
        await create_nothing(quorum)

    for _ in range(3):
        run(tmp_path, story, crash=True)
    found = records_of(tmp_path / "__cluster_metadata-0" / "00000000000000000000.log")
    assert [kind for _, kind in found if kind.isupper()] == [
        "LEADER_CHANGE",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
        "LEADER_CHANGE",
        "LEADER_CHANGE",
    ]
    assert [offset for offset, _ in found] == list(range(len(found)))


# --- snapshots -------------------------------------------------------------------------------


def test_a_start_from_a_snapshot_sees_what_a_start_from_the_log_sees(tmp_path: Path) -> None:
    images: list[Image] = []

    async def first(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        await create(quorum, "before")
        await quorum.snapshot()
        await create(quorum, "after")
        images.append(quorum.image)

    async def second(quorum: Quorum, home: Home) -> None:
        images.append(quorum.image)

    run(tmp_path, first, crash=True)
    (formatted, taken) = find_snapshots(str(tmp_path / "__cluster_metadata-0"))
    assert (formatted, taken.epoch) == ((0, 0), 1)
    run(tmp_path, second, crash=True)
    images[0].controllers = images[1].controllers  # the controller registers at every start
    assert images[0] == images[1]


def test_a_damaged_snapshot_is_passed_over_while_the_log_has_it_all(tmp_path: Path) -> None:
    async def first(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        await create(quorum, "orders")
        await quorum.snapshot()

    async def second(quorum: Quorum, home: Home) -> None:
        assert set(quorum.image.topics) == {"orders"}

    run(tmp_path, first)
    taken = find_snapshots(str(tmp_path / "__cluster_metadata-0"))[-1]
    path = tmp_path / "__cluster_metadata-0" / taken.file_name
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-20])
    run(tmp_path, second)


def test_snapshots_come_by_size_and_the_old_ones_go(tmp_path: Path) -> None:
    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        for number in range(4):
            await create(quorum, f"t{number}")
            quorum.step()
            assert quorum._snapshotter._writing is not None
            await quorum._snapshotter._writing
        quorum.step()
        assert len(find_snapshots(str(home.metadata))) == 1
        assert quorum._log.start_offset == find_snapshots(str(home.metadata))[0].end_offset

    async def again(quorum: Quorum, home: Home) -> None:
        assert len(quorum.image.topics) == 4

    properties = {
        "metadata_log_max_record_bytes_between_snapshots": "1",
        "metadata_max_retention_bytes": "1",
    }
    run(tmp_path, story, **properties)
    run(tmp_path, again)


def test_a_start_that_read_a_long_log_is_followed_by_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshotter, "LONG_REPLAY_BYTES", 4_500)

    async def first(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        await create(quorum, *(f"t{number}" for number in range(20)))
        quorum.step()
        assert quorum._snapshotter._writing is None

    async def second(quorum: Quorum, home: Home) -> None:
        quorum.step()
        assert quorum._snapshotter._writing is not None
        await quorum._snapshotter._writing
        assert len(find_snapshots(str(home.metadata))) == 2

    async def third(quorum: Quorum, home: Home) -> None:
        quorum.step()
        assert quorum._snapshotter._writing is None

    for story in (first, second, third):
        run(tmp_path, story)


def test_snapshots_come_by_the_clock_if_there_is_anything_new(tmp_path: Path) -> None:
    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        home.clock.now_ms += 3_599_999
        quorum._active.controller.state.sessions.forgive(3_599_999)
        quorum.step()
        assert quorum._snapshotter._writing is None
        home.clock.now_ms += 1
        quorum.step()
        first = quorum._snapshotter._writing
        assert first is not None
        await first
        home.clock.now_ms += 3_600_000
        quorum._active.controller.state.sessions.forgive(3_600_000)
        quorum.step()
        assert quorum._snapshotter._writing is first

    run(tmp_path, story)


# --- power loss ------------------------------------------------------------------------------


def test_whatever_a_power_loss_leaves_every_acknowledged_topic_is_there(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    disk = RecordingFiles(str(live))

    async def story(quorum: Quorum, home: Home) -> None:
        await home.broker(quorum)
        for number in range(4):
            await create(quorum, f"t{number}")
            disk.note(f"t{number}")
            if number == 1:
                await quorum.snapshot()

    with suppress(OSError):
        run(live, story, disk, crash=True)
    rng = Random(2)
    operations = list(disk.operations)
    attempt = 0
    for upto in rng.sample(range(len(operations) + 1), 25):
        promised = {op.what for op in operations[:upto] if isinstance(op, Note)}
        for image in crash_images(operations, upto, rng, 4):
            attempt += 1
            root = tmp_path / f"image{attempt}"
            root.mkdir()
            write_image(image, str(root))
            found: list[Any] = []

            async def look(quorum: Quorum, home: Home, found: list[Any] = found) -> None:
                await home.broker(quorum)
                found += quorum.image.topics
                assert {state.leader for _, _, state in quorum.image.partitions()} <= {1}

            run(root, look, crash=True)
            assert promised <= set(found), f"after {upto} operations"
