"""A broker's life in a log directory, drawn from a seed, on a disk that writes everything down.

Several partitions are appended to, rolled, flushed, cut by retention and DeleteRecords, deleted and made
again, in one run or in two with a clean stop between them. What is promised on the way ("synced up to here")
is noted among the disk's operations, so that at any of them it is known what a power loss may not take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ottla.config.settings import replace
from ottla.config.topic import TopicSettings
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.storage.log import Log, Origin
from ottla.storage.log_directory import LogDirectory, open_log_directories, remove_directory
from ottla.testing.disk import RecordingFiles

START_MS = 1_700_000_000_000
TRANSACTIONAL_PRODUCERS = 2000  # ids from here on write transactions


# --- what is noted ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Created:
    topic_id: Uuid


@dataclass(frozen=True)
class Synced:
    """Everything below `end_offset` was promised to survive."""

    topic_id: Uuid
    end_offset: int


@dataclass(frozen=True)
class MayStart:
    """Everything below `offset` was given up."""

    topic_id: Uuid
    offset: int


@dataclass(frozen=True)
class Deleting:
    topic_id: Uuid


# --- what was written ------------------------------------------------------------------------


@dataclass
class Producer:
    id: int
    epoch: int = 0
    next_sequence: int = 0
    is_in_transaction: bool = False

    @property
    def is_transactional(self) -> bool:
        return self.id >= TRANSACTIONAL_PRODUCERS


@dataclass
class Written:
    """Every batch that one partition ever got, by base offset. Offsets are never used twice."""

    partition: TopicPartition
    topic_id: Uuid
    batches: dict[int, bytes] = field(default_factory=dict)
    producers: list[Producer] = field(default_factory=list)


class FakeClock:
    def __init__(self) -> None:
        self.now_ms = START_MS

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class Workload:
    def __init__(self, root: str, seed: int, files: RecordingFiles) -> None:
        self.rng = Random(seed)
        # A clean stop in the middle, or none.
        self.lives = 1 + seed % 2
        segment_bytes = self.rng.choice((1400, 2500, 5000))
        self.settings = replace(
            TopicSettings(),
            segment_bytes=segment_bytes,
            index_interval_bytes=self.rng.choice((0, 300, 900)),
            retention_bytes=3 * segment_bytes,
        )
        self.root = root
        self.files = files
        self.clock = FakeClock()
        self.written: dict[Uuid, Written] = {}
        self.current: dict[TopicPartition, Written] = {}
        self.leader_epoch = 0
        self.directory = self._open()

    def run(self, steps: int) -> None:
        """The last life ends without a clean stop, of course."""
        for partition in (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("t", 0)):
            self._create(partition)
        for life in range(self.lives):
            if life:
                self._restart()
            for _ in range(steps // self.lives):
                self._step()
        for log in self.directory.logs.values():
            log.close_files()
        self.directory._lock.release()

    # --- lives ---------------------------------------------------------------------------

    def _open(self) -> LogDirectory:
        [directory] = open_log_directories([self.root], clock=self.clock, node_id=1, files=self.files)
        directory.load(lambda topic: self.settings)
        return directory

    def _restart(self) -> None:
        self.directory.close(broker_epoch=5)
        for partition, log in self.directory.logs.items():
            self.files.note(Synced(self.current[partition].topic_id, log.end_offset))
        self.directory = self._open()
        assert self.directory.was_clean

    def _create(self, partition: TopicPartition) -> None:
        topic_id = Uuid.from_random(self.rng.randbytes(16))
        self.directory.create_log(partition, topic_id, self.settings)
        producers = [Producer(1000 + n) for n in range(2)] + [Producer(TRANSACTIONAL_PRODUCERS)]
        self.current[partition] = self.written[topic_id] = Written(partition, topic_id, producers=producers)
        self.files.note(Created(topic_id))

    # --- steps ---------------------------------------------------------------------------

    def _step(self) -> None:
        rng = self.rng
        self.clock.now_ms += rng.randrange(1, 2000)
        partition = rng.choice(list(self.current))
        log, written = self.directory.logs[partition], self.current[partition]
        action = rng.random()
        if action < 0.55:
            for _ in range(rng.choice((1, 1, 2, 5))):
                self._append(log, written)
            self._write(log, written)
        elif action < 0.78:
            self._flush(log, written)
        elif action < 0.84:
            self._give_up(log, written, log.high_watermark, lambda: log.enforce_retention(self.clock.now_ms))
        elif action < 0.87:
            offset = rng.randint(log.start_offset, log.high_watermark)
            self._give_up(log, written, offset, lambda: log.delete_records(offset))
        elif action < 0.90:
            self.leader_epoch += 1
            log.epochs.assign(self.leader_epoch, log.end_offset)
        elif action < 0.95:
            self.directory.write_checkpoints()
        elif action < 0.98:
            self.clock.now_ms += 120_000
            for each in self.directory.logs.values():
                each.reap(self.clock.now_ms)
            for path in self.directory.take_doomed():
                remove_directory(self.files, path)
        else:
            self.files.note(Deleting(written.topic_id))
            self.directory.delete_log(partition)
            self._create(partition)

    def _append(self, log: Log, written: Written) -> None:
        rng = self.rng
        producer = rng.choice([None, *written.producers])
        now_ms = self.clock.now_ms
        origin = Origin.CLIENT
        if producer is not None and producer.is_in_transaction and rng.random() < 0.4:
            marker = EndTransactionMarker(producer.id, producer.epoch, 0, rng.random() < 0.5)
            data = end_transaction_batch(marker, timestamp=now_ms)
            producer.is_in_transaction = False
            origin = Origin.COORDINATOR
        else:
            records = [
                Record(
                    timestamp=now_ms - rng.randrange(500), key=b"k", value=rng.randbytes(rng.randrange(400))
                )
                for _ in range(rng.choice((1, 1, 3)))
            ]
            if producer is None:
                data = write_batch(records)
            else:
                if rng.random() < 0.05 and not producer.is_in_transaction:
                    producer.epoch += 1
                    producer.next_sequence = 0
                producer.is_in_transaction = producer.is_transactional
                data = write_batch(
                    records,
                    producer_id=producer.id,
                    producer_epoch=producer.epoch,
                    base_sequence=producer.next_sequence,
                    attributes=TRANSACTIONAL if producer.is_transactional else 0,
                )
                producer.next_sequence += len(records)
        log.append(data, self.leader_epoch, now_ms, origin=origin)

    def _write(self, log: Log, written: Written) -> None:
        """To the file, from where it is read back for the record. A leader alone commits at once."""
        first = log.high_watermark
        log.write()
        log.advance_high_watermark(log.end_offset)
        offset = max([first, log.start_offset])
        while offset < log.end_offset:
            batch = bytes(log.read(offset, 1, log.end_offset))
            written.batches[int.from_bytes(batch[:8], "big")] = batch
            offset = int.from_bytes(batch[:8], "big") + int.from_bytes(batch[23:27], "big") + 1

    def _flush(self, log: Log, written: Written) -> None:
        flush = log.flush_begin()
        if flush is not None:
            flush.sync()
            log.flush_done(flush)
        self.files.note(Synced(written.topic_id, log.recovery_point))

    def _give_up(self, log: Log, written: Written, most: int, act: object) -> None:
        assert callable(act)
        self.files.note(MayStart(written.topic_id, most))
        act()
        self.files.note(MayStart(written.topic_id, log.start_offset))
