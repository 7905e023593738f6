"""A log directory as a whole: its logs, its checkpoints, its end, and being offline."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.config.settings import replace
from ottla.config.topic import TopicSettings
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import InconsistentTopicId, InvalidTopic, KafkaStorageError
from ottla.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, START_OFFSETS, read_offsets
from ottla.storage.directory_names import Kind, parse_name, partition_name, suffixed_name
from ottla.storage.lock import DirectoryInUse
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, open_log_directories, remove_directory
from ottla.storage.meta_properties import MetaPropertiesError, read_meta_properties
from ottla.storage.partition_metadata import PARTITION_METADATA
from ottla.testing.disk import FaultyFiles, UnsyncedFiles

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")
OTHER_ID = Uuid.parse("Jf0C_LujQU2U1zwnFyXYjQ")
SETTINGS = TopicSettings()
UNIQUE = "0123456789abcdef0123456789abcdef"


class FakeClock:
    now_ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


def open_one(path: Path, files: Files | None = None, clock: FakeClock | None = None) -> LogDirectory:
    [directory] = open_log_directories(
        [str(path)], clock=clock or FakeClock(), node_id=1, files=files or UnsyncedFiles()
    )
    return directory


def load_one(
    path: Path,
    files: Files | None = None,
    is_stray: Callable[[TopicPartition, Uuid | None], bool] = lambda partition, topic_id: False,
) -> LogDirectory:
    directory = open_one(path, files)
    directory.load(lambda topic: SETTINGS, is_stray)
    return directory


def crash(directory: LogDirectory) -> None:
    """The process ends without a word."""
    for log in directory.logs.values():
        log.close_files()
    directory._lock.release()


def append(log: Log, count: int = 1) -> None:
    for _ in range(count):
        log.append(write_batch([Record(timestamp=FakeClock.now_ms, value=b"v")]), 0, FakeClock.now_ms)
    log.write()
    log.advance_high_watermark(log.end_offset)


# --- opening ---------------------------------------------------------------------------------


def test_a_new_directory_is_made_and_gets_an_identity_that_stays(tmp_path: Path) -> None:
    first = open_one(tmp_path / "deep" / "data")
    meta = read_meta_properties(str(tmp_path / "deep" / "data"))
    assert meta is not None
    assert (first.id, first.cluster_id, first.node_id) == (meta.directory_id, meta.cluster_id, 1)
    assert not first.was_clean
    first.load(lambda topic: SETTINGS)
    first.close(broker_epoch=9)
    second = open_one(tmp_path / "deep" / "data")
    assert (second.id, second.cluster_id) == (first.id, first.cluster_id)
    assert second.was_clean
    assert second.previous_broker_epoch == 9
    second.close()


def test_a_directory_in_use_is_refused_and_nothing_stays_locked(tmp_path: Path) -> None:
    held = open_one(tmp_path / "a")
    with pytest.raises(DirectoryInUse, match="/a is in use"):
        open_log_directories([str(tmp_path / "b"), str(tmp_path / "a")], clock=FakeClock(), node_id=1)
    open_one(tmp_path / "b").close()
    held.close()


def test_directories_of_different_clusters_are_refused_and_nothing_stays_locked(tmp_path: Path) -> None:
    open_one(tmp_path / "a").close()
    open_one(tmp_path / "b").close()
    with pytest.raises(MetaPropertiesError, match="belongs to cluster"):
        open_log_directories([str(tmp_path / "a"), str(tmp_path / "b")], clock=FakeClock(), node_id=1)
    open_one(tmp_path / "a").close()


def test_partitions_without_an_identity_are_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(MetaPropertiesError, match=r"has partitions \(orders-0\) but no meta\.properties"):
        open_one(tmp_path)


def test_a_start_that_fails_before_loading_leaves_a_clean_stop_clean_and_a_crash_a_crash(
    tmp_path: Path,
) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS), 3)
    directory.close(broker_epoch=4)
    open_one(tmp_path).close(broker_epoch=-1)
    directory = load_one(tmp_path)
    assert directory.was_clean
    assert directory.previous_broker_epoch == 4
    assert directory.logs[ORDERS_0].high_watermark == 3
    crash(directory)
    open_one(tmp_path).close()
    assert not load_one(tmp_path).was_clean


def test_a_broker_that_was_never_registered_leaves_the_epoch_of_the_one_before(tmp_path: Path) -> None:
    load_one(tmp_path).close(broker_epoch=4)
    load_one(tmp_path).close()  # it loaded its logs, and found no controller
    third = load_one(tmp_path)
    assert third.was_clean
    assert third.previous_broker_epoch == 4
    crash(third)
    load_one(tmp_path).close()
    assert load_one(tmp_path).previous_broker_epoch == -1


# --- loading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_clean", [True, False])
def test_logs_come_back_with_their_offsets_and_topic_ids(is_clean: bool, tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS), 5)
    append(directory.create_log(ORDERS_1, TOPIC_ID, SETTINGS), 2)
    directory.logs[ORDERS_0].delete_records(3)
    directory.write_checkpoints()
    if is_clean:
        directory.close()
    else:
        crash(directory)
    again = load_one(tmp_path)
    assert again.was_clean is is_clean
    log = again.logs[ORDERS_0]
    assert (log.start_offset, log.high_watermark, log.end_offset, log.topic_id) == (3, 5, 5, TOPIC_ID)
    assert again.logs[ORDERS_1].end_offset == 2
    again.close()


def test_a_hundred_crashed_logs_load_in_threads(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    for number in range(100):
        append(directory.create_log(TopicPartition("many", number), TOPIC_ID, SETTINGS), number % 7)
    crash(directory)
    again = load_one(tmp_path)
    assert {p.partition: log.end_offset for p, log in again.logs.items()} == {n: n % 7 for n in range(100)}
    again.close()


def test_a_log_that_cannot_be_loaded_is_reported_and_the_others_are_served(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    append(directory.create_log(ORDERS_1, TOPIC_ID, SETTINGS), 2)
    directory.close()
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(b"something else")
    again = load_one(tmp_path)
    assert list(again.unloadable) == [ORDERS_0]
    assert again.logs[ORDERS_1].end_offset == 2
    with pytest.raises(KafkaStorageError, match="something else"):
        again.log(ORDERS_0)
    with pytest.raises(KafkaStorageError):
        again.create_log(ORDERS_0, TOPIC_ID, SETTINGS)
    again.close()
    # What is known of it is kept, and no clean stop is claimed for a log that nobody looked at.
    assert read_offsets(str(tmp_path / HIGH_WATERMARKS)) == {ORDERS_0: 1, ORDERS_1: 2}
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    others = [
        "lost+found",
        "__cluster_metadata-0",
        "remote-log-index-cache",
        "orders-01",
        "orders",
        "-1",
        ".git",
    ]
    others += [f"orders-0.{UNIQUE}-future", f"orders-0.{UNIQUE}-stray", "a b-0"]
    open_one(tmp_path).close()
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / "notes-1").write_text("a file")
    directory = load_one(tmp_path)
    assert not directory.logs
    assert directory.take_doomed() == []
    directory.close()
    assert {path.name for path in tmp_path.iterdir()} >= {*others, "notes-1"}


def test_a_link_in_the_place_of_a_partition_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    open_one(tmp_path / "data").close()
    (tmp_path / "data" / "orders-0").symlink_to(tmp_path / "elsewhere")
    directory = load_one(tmp_path / "data")
    assert list(directory.unloadable) == [ORDERS_0]
    assert not list((tmp_path / "elsewhere").iterdir())
    directory.close()


def test_a_partition_that_no_topic_claims_is_put_aside_and_kept(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    append(directory.create_log(ORDERS_1, OTHER_ID, SETTINGS))
    directory.close()
    again = load_one(tmp_path, is_stray=lambda partition, topic_id: topic_id == TOPIC_ID)
    assert list(again.logs) == [ORDERS_1]
    [stray] = tmp_path.glob("orders-0.*")
    assert parse_name(stray.name) == (Kind.STRAY, ORDERS_0)
    assert (stray / "00000000000000000000.log").stat().st_size
    append(again.create_log(ORDERS_0, OTHER_ID, SETTINGS))
    again.close()


def test_damaged_checkpoints_cost_no_record(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS), 5)
    directory.write_checkpoints()
    crash(directory)
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS, START_OFFSETS):
        (tmp_path / name).write_bytes(b"\0" * 20)
    log = load_one(tmp_path).logs[ORDERS_0]
    assert (log.start_offset, log.high_watermark, log.end_offset) == (0, 0, 5)


def two_segments(tmp_path: Path, settings: TopicSettings) -> LogDirectory:
    """Four records and three, the first four synced and checkpointed, then a crash."""
    directory = load_one(tmp_path)
    log = directory.create_log(ORDERS_0, TOPIC_ID, settings)
    append(log, 4)
    log.flush()
    directory.write_checkpoints()
    log.roll(FakeClock.now_ms)
    append(log, 3)
    assert log.segment_count == 2
    crash(directory)
    return directory


def test_records_after_lost_ones_are_lost_too(tmp_path: Path) -> None:
    """A power cut may take whole batches from the end of a segment and leave the next segment alone."""
    two_segments(tmp_path, SETTINGS)
    first = tmp_path / "orders-0" / "00000000000000000000.log"
    with first.open("r+b") as file:
        file.truncate(first.stat().st_size // 4 * 3)
    (tmp_path / RECOVERY_POINTS).write_bytes(b"0\n1\norders 0 2\n")
    directory = load_one(tmp_path)
    assert directory.logs[ORDERS_0].end_offset == 3
    assert not list((tmp_path / "orders-0").glob("*4.*"))
    directory.close()


@pytest.mark.parametrize("why", ["compacted", "no recovery points"])
def test_a_gap_that_compaction_may_have_made_is_kept(why: str, tmp_path: Path) -> None:
    two_segments(tmp_path, SETTINGS)
    first = tmp_path / "orders-0" / "00000000000000000000.log"
    with first.open("r+b") as file:
        file.truncate(first.stat().st_size // 4 * 3)
    settings = SETTINGS
    if why == "compacted":
        (tmp_path / RECOVERY_POINTS).write_bytes(b"0\n1\norders 0 2\n")
        settings = replace(SETTINGS, cleanup_policy=frozenset({"compact"}))
    else:
        (tmp_path / RECOVERY_POINTS).unlink()
    directory = open_one(tmp_path)
    directory.load(lambda topic: settings)
    assert directory.logs[ORDERS_0].end_offset == 7
    directory.close()


def test_indexes_of_the_last_synced_segment_are_made_anew_after_a_crash(tmp_path: Path) -> None:
    """It was active when it was synced, and a sync leaves the indexes of the active segment out."""
    two_segments(tmp_path, replace(SETTINGS, index_interval_bytes=0))
    assert read_offsets(str(tmp_path / RECOVERY_POINTS)) == {ORDERS_0: 4}
    index = tmp_path / "orders-0" / "00000000000000000000.index"
    before = index.read_bytes()
    assert before
    index.write_bytes(b"")
    directory = open_one(tmp_path)
    directory.load(lambda topic: replace(SETTINGS, index_interval_bytes=0))
    directory.close()
    assert index.read_bytes() == before


# --- creating and deleting -------------------------------------------------------------------


def test_creating_again_finds_the_log_and_another_topic_s_is_refused(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    log = directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS)
    assert directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS) is log
    assert directory.log(ORDERS_0) is log
    assert directory.log(ORDERS_1) is None
    with pytest.raises(InconsistentTopicId):
        directory.create_log(ORDERS_0, OTHER_ID, SETTINGS)
    assert (tmp_path / "orders-0" / "partition.metadata").read_bytes().endswith(str(TOPIC_ID).encode())
    directory.close()


@pytest.mark.parametrize("topic", ["..", ".", "", "a/b", "../x", "a\0b", "ä", "x" * 250, "x" * 249])
def test_a_name_that_is_none_reaches_no_file(topic: str, tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    with pytest.raises(InvalidTopic):
        directory.create_log(TopicPartition(topic, 1_000_000), TOPIC_ID, SETTINGS)
    assert directory.error is None
    directory.close()


def test_a_deleted_partition_is_gone_at_once_and_its_files_after_the_delay(tmp_path: Path) -> None:
    clock = FakeClock()
    directory = open_one(tmp_path, clock=clock)
    directory.load(lambda topic: SETTINGS)
    append(directory.create_log(ORDERS_0, TOPIC_ID, replace(SETTINGS, file_delete_delay_ms=60_000)))
    directory.delete_log(ORDERS_0)
    assert directory.log(ORDERS_0) is None
    [doomed] = tmp_path.glob("orders-0.*")
    assert parse_name(doomed.name) == (Kind.DELETED, ORDERS_0)
    assert directory.take_doomed() == []
    assert directory.create_log(ORDERS_0, OTHER_ID, SETTINGS).end_offset == 0
    clock.now_ms += 60_000
    assert directory.take_doomed() == [str(doomed)]
    assert directory.take_doomed() == []
    (doomed / "somebody").mkdir()
    (doomed / "somebody" / "else").symlink_to(tmp_path / "meta.properties")
    remove_directory(directory.files, str(doomed))
    assert not doomed.exists()
    assert (tmp_path / "meta.properties").exists()
    remove_directory(directory.files, str(doomed))
    directory.delete_log(ORDERS_1)  # nothing there, nothing to do
    directory.close()
    assert read_offsets(str(tmp_path / RECOVERY_POINTS)) == {ORDERS_0: 0}


def test_a_topic_that_is_made_again_is_not_taken_for_synced(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    log = directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS)
    append(log, 4)
    log.flush()
    directory.write_checkpoints()
    directory.delete_log(ORDERS_0)
    directory.create_log(ORDERS_0, OTHER_ID, SETTINGS)
    assert read_offsets(str(tmp_path / RECOVERY_POINTS)) == {}
    assert read_offsets(str(tmp_path / HIGH_WATERMARKS)) == {}
    directory.close()


def test_what_was_deleted_before_a_restart_is_removed_after_it(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    directory.delete_log(ORDERS_0)
    crash(directory)
    again = load_one(tmp_path)
    assert not again.logs
    [doomed] = again.take_doomed()
    remove_directory(again.files, doomed)
    assert not list(tmp_path.glob("orders*"))
    again.close()


def test_a_partition_that_could_not_be_loaded_can_be_deleted(tmp_path: Path) -> None:
    open_one(tmp_path).close()
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(b"something else")
    directory = load_one(tmp_path)
    directory.delete_log(ORDERS_0)
    assert not directory.unloadable
    assert directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS).end_offset == 0
    directory.close()


# --- names -----------------------------------------------------------------------------------


def test_a_deleted_name_is_cut_to_what_a_file_system_takes() -> None:
    name = suffixed_name(TopicPartition("x" * 249, 12345), Kind.DELETED, UNIQUE)
    assert len(name) == 255
    assert name.endswith(f"x-12345.{UNIQUE}-delete")
    assert parse_name(name)[0] is Kind.DELETED


@pytest.mark.parametrize(
    ("name", "kind", "partition"),
    [
        ("orders-0", Kind.PARTITION, ORDERS_0),
        ("a-b.c_d-12", Kind.PARTITION, TopicPartition("a-b.c_d", 12)),
        (f"orders-1.{UNIQUE}-delete", Kind.DELETED, ORDERS_1),
        ("orders-1.delete-0", Kind.PARTITION, TopicPartition("orders-1.delete", 0)),
        (f"orders-1.{UNIQUE}-delete-0", Kind.PARTITION, TopicPartition(f"orders-1.{UNIQUE}-delete", 0)),
        ("orders-2147483648", Kind.OTHER, None),
        ("orders-00", Kind.OTHER, None),
        ("..-0", Kind.OTHER, None),
        ("-0", Kind.OTHER, None),
    ],
)
def test_what_a_directory_s_name_says(name: str, kind: Kind, partition: TopicPartition | None) -> None:
    assert parse_name(name) == (kind, partition)
    if kind is Kind.PARTITION and partition is not None:
        assert partition_name(partition) == name


# --- checkpoints -----------------------------------------------------------------------------


def test_checkpoints_say_what_the_logs_say(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    log = directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS)
    append(log, 4)
    flush = log.flush_begin()
    assert flush is not None
    flush.sync()
    log.flush_done(flush)
    append(log, 2)
    log.delete_records(1)
    directory.create_log(ORDERS_1, TOPIC_ID, SETTINGS)
    directory.write_checkpoints()
    assert read_offsets(str(tmp_path / RECOVERY_POINTS)) == {ORDERS_0: 4, ORDERS_1: 0}
    assert read_offsets(str(tmp_path / HIGH_WATERMARKS)) == {ORDERS_0: 6, ORDERS_1: 0}
    assert read_offsets(str(tmp_path / START_OFFSETS)) == {ORDERS_0: 1}
    directory.close()
    assert read_offsets(str(tmp_path / RECOVERY_POINTS)) == {ORDERS_0: 6, ORDERS_1: 0}


def test_space_on_the_volume_is_told(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    assert 0 < directory.usable_bytes() <= directory.total_bytes()
    directory.close()


# --- offline ---------------------------------------------------------------------------------


def test_an_offline_directory_says_so_once_and_refuses_everything(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    heard: list[Exception] = []
    directory.on_offline(heard.append)
    error = OSError(errno.EIO, "Input/output error")
    assert isinstance(directory.fail(error), KafkaStorageError)
    directory.fail(OSError(errno.EROFS, "another"))
    assert heard == [error] == [directory.error]
    for refused in (
        lambda: directory.log(ORDERS_0),
        lambda: directory.create_log(ORDERS_1, TOPIC_ID, SETTINGS),
        lambda: directory.delete_log(ORDERS_0),
        directory.write_checkpoints,
    ):
        with pytest.raises(KafkaStorageError, match="Input/output error"):
            refused()
    with pytest.raises(DirectoryInUse):
        open_one(tmp_path)
    directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("on", ["mkdir", "open", "write"])
def test_a_partition_that_cannot_be_made_takes_the_directory_offline(on: str, tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())
    directory = load_one(tmp_path, files)
    files.fail(on=on, path="*orders-0*", error=errno.ENOSPC)
    with pytest.raises(KafkaStorageError, match="No space left"):
        directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS)
    assert directory.error is not None
    directory.close()


def test_too_many_open_files_is_not_the_disk_s_fault(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())
    directory = load_one(tmp_path, files)
    # In the middle of it, and with nothing that could be closed to make room.
    files.fail(on="open", path=f"*orders-0/{PARTITION_METADATA}", error=errno.EMFILE, times=1 << 30)
    with pytest.raises(KafkaStorageError, match="Too many open files"):
        directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS)
    assert directory.error is None
    files.faults.clear()
    assert directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS).end_offset == 0
    directory.close()
    again = load_one(tmp_path)
    assert again.logs[ORDERS_0].topic_id == TOPIC_ID
    again.close()


def test_room_is_made_for_the_files_of_a_new_partition(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())
    directory = load_one(tmp_path, files)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    files.fail(on="open", path=f"*orders-1/{PARTITION_METADATA}", error=errno.EMFILE)
    assert directory.create_log(ORDERS_1, TOPIC_ID, SETTINGS).end_offset == 0
    directory.close()


def test_a_start_that_can_open_no_more_files_fails_and_no_partition_with_it(tmp_path: Path) -> None:
    directory = load_one(tmp_path)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    crash(directory)
    files = FaultyFiles(UnsyncedFiles())
    files.fail(on="open", path="*orders-0*", error=errno.EMFILE, times=1 << 30)
    short = open_one(tmp_path, files)
    with pytest.raises(OSError, match="Too many open files"):
        short.load(lambda topic: SETTINGS)
    assert short.unloadable == {}
    short.close()
    again = load_one(tmp_path)
    assert again.logs[ORDERS_0].end_offset == 1
    again.close()


def test_a_stop_that_has_too_few_files_for_all_its_logs_at_once_is_clean(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())
    directory = load_one(tmp_path, files)
    for partition in (ORDERS_0, ORDERS_1):
        append(directory.create_log(partition, TOPIC_ID, SETTINGS))
    files.fail(on="open", path=f"*/{PARTITION_METADATA}", error=errno.EMFILE, times=3)
    directory.close()
    assert directory.error is None
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_stop_that_cannot_sync_is_not_called_clean(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())
    directory = load_one(tmp_path, files)
    append(directory.create_log(ORDERS_0, TOPIC_ID, SETTINGS))
    files.fail(on="fsync", path="*.log")
    with pytest.raises(KafkaStorageError):
        directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again = load_one(tmp_path)
    assert again.logs[ORDERS_0].end_offset == 1
    again.close()
