"""What readers of committed records see, against a model that is recomputed from the raw log each time.

Producers write inside and outside of transactions, commit and abort them, in any order; the high watermark
lags behind; segments are rolled, the log is cut at both ends, stopped and killed. Whatever happened, at every
offset and for every size a fetch answers with whole batches below the last stable offset and with the aborted
transactions in them, so that a consumer is left with the committed records and nothing else.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.metadata.image import Image
from ottla.protocol.batch import TRANSACTIONAL, Record, iter_batches, read_records, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch, read_end_transaction
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.replication.fetch_session import FetchSessions
from ottla.replication.replicas import Replicas
from ottla.server.context import Context
from ottla.server.handlers.fetch import fetch
from ottla.storage.log import Log, Origin
from ottla.testing.disk import UnsyncedFiles

NOW = 1_700_000_000_000
NAME = TopicPartition("t", 0)
PRODUCERS = 3
SIZES = (1, 150, 400, 1 << 20)
READ_COMMITTED = 1


# --- the model -----------------------------------------------------------------------------------


class Ended(NamedTuple):
    producer_id: int
    first_offset: int
    marker_offset: int
    aborted: bool


@dataclass
class Truth:
    """What the batches of a log say, read from the first to the last by the definition of each thing."""

    last_stable_offset: int
    ended: list[Ended]
    committed: dict[int, bytes]  # the records that readers may see, of all the log

    def aborted_in(self, start_offset: int, end_offset: int) -> set[tuple[int, int]]:
        return {
            (one.producer_id, one.first_offset)
            for one in self.ended
            if one.aborted and one.first_offset < end_offset and one.marker_offset >= start_offset
        }


def truth_of(batches: list[tuple[Any, memoryview]], high_watermark: int, start_offset: int) -> Truth:
    opened: dict[int, int] = {}
    values: dict[int, dict[int, bytes]] = {}
    ended: list[Ended] = []
    committed: dict[int, bytes] = {}
    for header, batch in batches:
        producer_id = header.producer_id
        if header.is_control:
            marker = read_end_transaction(batch)
            assert marker is not None
            records = values.pop(producer_id, {})
            if producer_id in opened:
                first_offset = opened.pop(producer_id)
                ended.append(Ended(producer_id, first_offset, header.base_offset, not marker.commit))
            if marker.commit:
                committed.update(records)
            continue
        records = {record.offset: record.value or b"" for record in read_records(batch)}
        if header.is_transactional:
            opened.setdefault(producer_id, header.base_offset)
            values.setdefault(producer_id, {}).update(records)
        else:
            committed.update(records)
    unstable = [*opened.values(), *(one.first_offset for one in ended if one.marker_offset >= high_watermark)]
    return Truth(
        last_stable_offset=min([high_watermark, *(max(offset, start_offset) for offset in unstable)]),
        ended=ended,
        committed=committed,
    )


def seen_by_consumer(data: PartitionData, fetch_offset: int) -> dict[int, bytes]:
    """The records a consumer hands to its application, by Kafka's way of taking an answer apart."""
    to_come = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborted: set[int] = set()
    seen: dict[int, bytes] = {}
    for header, batch in iter_batches(data.records or b""):
        while to_come and to_come[0][0] <= header.last_offset:
            aborted.add(to_come.pop(0)[1])
        if header.is_control:
            marker = read_end_transaction(batch)
            if marker is not None and not marker.commit:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            seen |= {r.offset: r.value or b"" for r in read_records(batch) if r.offset >= fetch_offset}
    return seen


# --- the log under test --------------------------------------------------------------------------


class Tried:
    """A partition that this broker leads, with a high watermark that moves when it is told to."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._values = 0
        self.epochs = dict.fromkeys(range(PRODUCERS), 0)
        self.sequences = dict.fromkeys(range(PRODUCERS), 0)
        self.deleted: list[tuple[Any, memoryview]] = []  # batches that were at the start of the log
        self.log = self._open(clean=False)

    def _open(self, *, clean: bool, recovery_point: int = 0, start_offset: int = 0) -> Log:
        return Log.open(
            self._directory,
            NAME,
            TopicSettings(index_interval_bytes=200),
            files=UnsyncedFiles(),
            now_ms=NOW,
            topic_id=Uuid(b"t" * 16),
            clean_shutdown=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
        )

    def _records(self, count: int) -> list[Record]:
        self._values += count
        return [Record(timestamp=NOW, value=b"%d" % (self._values - number)) for number in range(count)]

    # What may happen

    def plain(self, count: int) -> None:
        self.log.append(write_batch(self._records(count)), 0, NOW)

    def write(self, producer: int, count: int) -> None:
        """In a transaction; it is open from then on."""
        sequence = self.sequences[producer]
        batch = write_batch(
            self._records(count),
            producer_id=producer,
            producer_epoch=self.epochs[producer],
            base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )
        self.log.append(batch, 0, NOW)
        self.sequences[producer] = sequence + count

    def end(self, producer: int, commit: bool, version_2: bool) -> None:
        if version_2:
            self.epochs[producer] += 1
            self.sequences[producer] = 0
        marker = EndTransactionMarker(producer, self.epochs[producer], 0, commit)
        self.log.append(
            end_transaction_batch(marker, timestamp=NOW),
            0,
            NOW,
            origin=Origin.COORDINATOR,
            transaction_version=2 if version_2 else 0,
        )

    def replicate(self, share: float) -> None:
        behind = self.log.end_offset - self.log.high_watermark
        self.log.advance_high_watermark(self.log.high_watermark + round(behind * share))

    def roll(self) -> None:
        self.log.roll(NOW)

    def delete_records(self, share: float) -> None:
        """Open transactions may lose their first records, and are open all the same."""
        batches = self.batches()
        allowed = [one for one in batches if one[0].last_offset < self.log.high_watermark]
        if allowed:
            gone = allowed[: 1 + int(share * (len(allowed) - 1))]
            self.deleted += [(header, memoryview(bytes(batch))) for header, batch in gone]
            self.log.delete_records(gone[-1][0].last_offset + 1)

    def truncate(self, share: float) -> None:
        """A new leader had less than we do: what was not replicated goes, and producers begin anew."""
        ends = [header.last_offset + 1 for header, _ in self.batches()]
        allowed = [end for end in ends if end >= self.log.high_watermark]
        if not allowed:
            return
        self.log.truncate_to(allowed[int(share * (len(allowed) - 1))])
        for producer in range(PRODUCERS):
            self.epochs[producer] += 5
            self.sequences[producer] = 0
            self.end(producer, commit=False, version_2=False)

    def restart(self, clean: bool) -> None:
        """The only replica there is: what is in the log is committed when it comes back."""
        start_offset = self.log.start_offset
        if clean:
            self.log.close(NOW)
        else:
            self.log.write()
            self.log.close_files()
        self.log = self._open(clean=clean, start_offset=start_offset)
        self.log.advance_high_watermark(self.log.end_offset)

    # What is seen

    def batches(self) -> list[tuple[Any, memoryview]]:
        """All of the log that is left, in the order of offsets."""
        found: list[tuple[Any, memoryview]] = []
        offset = self.log.start_offset
        while offset < self.log.end_offset:
            found += iter_batches(self.log.read(offset, 1 << 20, self.log.end_offset))
            offset = found[-1][0].last_offset + 1
        return found

    def fetch(self, offset: int, size: int) -> PartitionData:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
        request = FetchRequest(
            isolation_level=READ_COMMITTED, topics=[FetchTopic(topic="t", partitions=[partition])]
        )
        replicas = Replicas(1)
        led = replicas.add(NAME, Uuid(b"t" * 16), self.log, None)  # type: ignore[arg-type]
        led.is_leader = True
        node: Any = SimpleNamespace(
            authorizer=None,
            clock=SimpleNamespace(monotonic_ms=lambda: 0),
            fetch_sessions=FetchSessions(0),
            image=Image(),
            random_session_id=lambda: 1,
            replicas=replicas,
            settings=BrokerSettings(),
        )
        try:
            fetch(request, Context(12, "reader", None, node)).send(None)  # type: ignore[arg-type]
        except StopIteration as done:
            ((data,),) = [topic.partitions for topic in done.value.responses]
            return data  # type: ignore[no-any-return]
        raise AssertionError("a fetch that may not wait has waited")

    def check(self) -> None:
        log = self.log
        batches = self.batches()
        truth = truth_of([*self.deleted, *batches], log.high_watermark, log.start_offset)
        assert log.last_stable_offset == truth.last_stable_offset
        stable = [header for header, _ in batches if header.last_offset < truth.last_stable_offset]
        for offset in range(log.start_offset, log.end_offset + 1):
            for size in SIZES:
                self._check_fetch(offset, size, truth, [h for h in stable if h.last_offset >= offset])

    def _check_fetch(self, offset: int, size: int, truth: Truth, readable: list[Any]) -> None:
        data = self.fetch(offset, size)
        assert data.error_code == 0
        assert data.last_stable_offset == truth.last_stable_offset
        returned = [header for header, _ in iter_batches(data.records or b"")]
        assert returned == readable[: len(returned)]
        assert bool(returned) == bool(readable)
        assert len(data.records or b"") <= size or len(returned) == 1
        end_offset = returned[-1].last_offset + 1 if returned else offset
        named = {(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()}
        assert named == (truth.aborted_in(offset, end_offset) if returned else set())
        assert seen_by_consumer(data, offset) == {
            at: value for at, value in truth.committed.items() if offset <= at < end_offset
        }


producers = st.integers(0, PRODUCERS - 1)
counts = st.integers(1, 3)
shares = st.floats(0, 1)
writes = st.one_of(
    st.tuples(st.just("plain"), counts),
    st.tuples(st.just("write"), producers, counts),
    st.tuples(st.just("write"), producers, counts),
    st.tuples(st.just("end"), producers, st.booleans(), st.booleans()),
    st.tuples(st.just("end"), producers, st.booleans(), st.booleans()),
    st.tuples(st.just("replicate"), shares),
)
rare = st.one_of(
    st.tuples(st.just("roll")),
    st.tuples(st.just("roll")),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("delete_records"), shares),
    st.tuples(st.just("truncate"), shares),
)
stories = st.lists(st.one_of(writes, writes, writes, rare), min_size=1, max_size=30)


def tell(parts: list[list[tuple[Any, ...]]]) -> None:
    directory = tempfile.mkdtemp()
    try:
        tried = Tried(f"{directory}/t-0")
        for story in parts:
            for what, *how in story:
                getattr(tried, what)(*how)
            tried.check()
            tried.replicate(1.0)
            tried.check()
        tried.log.close_files()
    finally:
        shutil.rmtree(directory)


@settings(deadline=None, max_examples=40)
@given(st.lists(stories, min_size=1, max_size=3))
@example(
    [[("write", 0, 1)], [("end", 0, False, False), ("roll",), ("plain", 1), ("truncate", 0.5)]]
)  # the only snapshot is of after the marker, which is not replicated
def test_readers_see_committed_records_and_nothing_else(parts: list[list[tuple[Any, ...]]]) -> None:
    tell(parts)


@pytest.mark.parametrize("seed", range(12))
def test_so_they_do_at_the_end_of_a_long_story(seed: int) -> None:
    """What hypothesis tells is short and easy to shrink; much of what may go wrong takes longer."""
    chance = random.Random(seed)

    def event() -> tuple[Any, ...]:
        match chance.randrange(30):
            case 0:
                return ("restart", chance.random() < 0.5)
            case 1:
                return ("truncate", chance.random())
            case 2:
                return ("delete_records", chance.random() / 2)
            case 3 | 4:
                return ("roll",)
            case 5 | 6 | 7 | 8:
                return ("plain", chance.randint(1, 3))
            case 9 | 10 | 11 | 12:
                return ("replicate", chance.random())
            case kind if kind < 23:
                return ("write", chance.randrange(PRODUCERS), chance.randint(1, 3))
        return ("end", chance.randrange(PRODUCERS), chance.random() < 0.4, chance.random() < 0.5)

    tell([[event() for _ in range(30)] for _ in range(3)])
