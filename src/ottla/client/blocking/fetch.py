"""Reading a range of one partition: raw record batches, the next request under way while the last is decoded.

There are no fetch sessions and no records here: what comes out are whole batches as the broker has them, and
what a reader has to know to skip aborted transactions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.client.blocking.cluster import CREATION_SECONDS, FIRST_PAUSE, LONGEST_PAUSE, BlockingCluster
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.blocking.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.errors import ClientError, NoAnswer, check, is_retriable
from ottla.core.types import TopicPartition
from ottla.protocol._columns_py import ENDED
from ottla.protocol.columns import walk
from ottla.protocol.errors import CorruptMessage, KafkaError, UnknownTopicId, UnknownTopicOrPartition
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

MAX_BYTES: Final = 4 * 1024 * 1024
"""What one request asks for. A batch that is larger comes whole."""
MOST_BYTES: Final = 1 << 30
BATCH_BYTES: Final = 1024 * 1024
"""A batch has no more, as brokers are set up. The last request of a range asks for so much more than it
should need, as batches come whole; where that is too little, another one follows."""
WAIT_MS: Final = 500
"""How long a broker may hold a request for which it has nothing."""
FETCH_SECONDS: Final = 120.0
"""How long records that should be there are waited for, as in Spark's Kafka connector."""

_HEAD: Final = Struct(">qi4xb").unpack_from
"""Of a batch, or of an entry of an older message set: its offset, its length and its magic."""
_HEAD_BYTES: Final = 17
_LAST_OFFSET_DELTA: Final = Struct(">i").unpack_from
_OVERHEAD: Final = 12
_GONE: Final = (UnknownTopicOrPartition, UnknownTopicId)


class Fetched(NamedTuple):
    """What one request brought: whole batches, as views into a buffer that is theirs alone."""

    records: memoryview
    aborted: list[tuple[int, int]]
    """Producer id and first offset of the aborted transactions that reach into these records."""
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    next_offset: int
    """Where the next request goes on: after the last batch, which may reach past the end asked for."""


def fetch(
    cluster: BlockingCluster,
    partition: TopicPartition,
    start: int,
    end: int,
    *,
    isolation_level: int = READ_UNCOMMITTED,
    max_bytes: int = MAX_BYTES,
    timeout: float = FETCH_SECONDS,
) -> Iterator[Fetched]:
    """The batches that hold the offsets from `start` up to, but without, `end`.

    The first one may begin before `start` and the last one may reach past `end`; what lies outside is for
    the decoder to leave out. Offsets that compaction or control batches have taken are passed over. Raises
    OffsetOutOfRange when records are gone, NoAnswer when they do not come within `timeout`.
    """
    range_ = _Range(cluster, partition, end, isolation_level, max_bytes, timeout)
    try:
        position = start
        if position < end:
            range_.send(position)
        while position < end:
            fetched = range_.receive(position)
            position = fetched.next_offset
            if position < end:
                range_.send(position)
            if fetched.records:
                yield fetched
    finally:
        range_.close()


class _Range:
    """The requests for one range, and their repetition."""

    def __init__(
        self,
        cluster: BlockingCluster,
        partition: TopicPartition,
        end: int,
        isolation_level: int,
        max_bytes: int,
        timeout: float,
    ) -> None:
        self.cluster, self.partition, self.end = cluster, partition, end
        self.isolation_level, self.max_bytes, self.timeout = isolation_level, max_bytes, timeout
        self._connection: BlockingConnection | None = None
        self._failed: Exception | None = None
        self._bytes_per_offset: float | None = None

    def close(self) -> None:
        if self._connection is not None:
            self.cluster.give_back(self._connection)
            self._connection = None

    def send(self, position: int) -> None:
        """Ask for what follows. What goes wrong is told by `receive`, which tries again."""
        try:
            self._send(position)
        except (KafkaError, ClientError) as error:
            self._failed = error

    def receive(self, position: int) -> Fetched:
        """The answer to the request for this position."""
        started, pause = time.monotonic(), FIRST_PAUSE
        while True:
            patience = self.timeout
            try:
                if self._failed is not None:
                    failed, self._failed = self._failed, None
                    raise failed
                data = self._receive()
                fetched = None if data is None else self._read(data, position)
                if fetched is not None:
                    return fetched
                if time.monotonic() - started > patience:
                    raise NoAnswer(self._missing(data, position))
            except (KafkaError, ClientError) as error:
                if isinstance(error, _GONE):
                    # Brokers learn of a topic one after the other, but soon; a deleted one stays deleted.
                    patience = min(patience, CREATION_SECONDS)
                if not is_retriable(error) or time.monotonic() - started + pause > patience:
                    raise
                self._give_up_connection()
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            self.send(position)

    def _give_up_connection(self) -> None:
        self.close()
        self.cluster.forget()

    def _send(self, position: int) -> None:
        cluster, partition = self.cluster, self.partition
        topic = cluster.topic(partition.topic)
        if self._connection is None:
            self._connection = cluster.take(topic.leader(partition.partition))
        max_bytes = self._bytes_from(position)
        wanted = FetchPartition(
            partition=partition.partition, fetch_offset=position, partition_max_bytes=max_bytes
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=self.isolation_level,
            topics=[FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[wanted])],
        )
        self._connection.send(request)

    def _bytes_from(self, position: int) -> int:
        """What to ask for: no more than is left, going by what there was so far."""
        if self._bytes_per_offset is None:
            return self.max_bytes
        return min(self.max_bytes, round(self._bytes_per_offset * (self.end - position)) + BATCH_BYTES)

    def _receive(self) -> PartitionData | None:
        """What was said of the partition; None of a broker that only says that its quota is used up. It
        reads nothing more from us until that is over, so the next request may be sent at once."""
        assert self._connection is not None
        response = self._connection.receive(FetchResponse)
        check(response.error_code, f"partition {self.partition}")
        if not response.responses:
            return None
        ((data,),) = [each.partitions for each in response.responses]
        check(data.error_code, f"partition {self.partition}")
        return data

    def _read(self, data: PartitionData, position: int) -> Fetched | None:
        """What was answered; None if it is nothing, and something may still come."""
        end = self.end
        records = memoryview(data.records if data.records is not None else b"")
        size, next_offset = whole_batches(records, position, end)
        if not size and next_offset < end:
            if len(records):
                # An old broker, which cuts off even the first batch.
                self.max_bytes = min(2 * self.max_bytes, MOST_BYTES)
                self._bytes_per_offset = None
                return None
            # Nothing between here and what the broker may show: compaction has taken it all, else there
            # would be a batch, since the first one comes whatever its size.
            visible = (
                data.last_stable_offset if self.isolation_level == READ_COMMITTED else data.high_watermark
            )
            if visible < end:
                return None
            next_offset = end
        self._bytes_per_offset = size / max(next_offset - position, 1)
        return Fetched(
            records[:size],
            [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()],
            data.log_start_offset,
            data.high_watermark,
            data.last_stable_offset,
            next_offset,
        )

    def _missing(self, data: PartitionData | None, position: int) -> str:
        why = "the client's quota is used up"
        if data is not None:
            stable = f", last stable offset {data.last_stable_offset}" if self.isolation_level else ""
            why = f"high watermark {data.high_watermark}{stable}"
        return (
            f"partition {self.partition}: the records from {position} up to {self.end} did not come within "
            f"{self.timeout:g} s ({why})"
        )


def whole_batches(records: memoryview, position: int, end: int) -> tuple[int, int]:
    """How many bytes are whole batches that begin before `end`, and the offset after the last of them."""
    reason, at, next_offset = walk(records, 0, 0, end, 0, False)
    if reason == ENDED and next_offset <= end:
        return at, max(position, next_offset)
    # Past the end, or of an older format: one after the other.
    at, size = 0, len(records)
    while size - at >= _HEAD_BYTES and position < end:
        offset, length, magic = _HEAD(records, at)
        after = at + _OVERHEAD + length
        if length <= 0 or magic > 2:
            raise CorruptMessage(f"what follows offset {position} is not a record batch")
        if magic == 2 and offset >= end:
            return at, end
        if after > size:
            break
        # The entries of older message sets have the offset of their last message.
        last_offset = offset + _LAST_OFFSET_DELTA(records, at + 23)[0] if magic == 2 else offset
        position = max(position, last_offset + 1)
        at = after
    return at, position
