"""Sending record batches: several requests under way, each batch stored once and in order.

A batch comes in encoded; it gets the producer's id and its sequence number here. When something goes wrong,
everything that is under way is waited for, and what was not acknowledged is sent again, in order and with the
same sequence numbers: a batch that is there already is recognised by the broker.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any, Final, Self

from ottla.client.blocking.cluster import FIRST_PAUSE, LONGEST_PAUSE, BlockingCluster
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.errors import ClientError, NotKafka, check, is_retriable
from ottla.core.files import Buffer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import add_to_sequence, read_header, write_crc
from ottla.protocol.errors import DuplicateSequenceNumber, KafkaError, OutOfOrderSequenceNumber
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

IN_FLIGHT: Final = 5
"""Requests under way to one broker: it remembers as many batches of a producer, to know a repetition."""
ACKS_ALL: Final = -1
TRANSACTIONAL: Final = 0x10

_ATTRIBUTES: Final = Struct(">h")
_PRODUCER: Final = Struct(">qhi")
_ATTRIBUTES_AT: Final = 21
_PRODUCER_AT: Final = 43


def stamp(
    batch: bytearray | memoryview,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    transactional: bool = False,
) -> None:
    """Makes an encoded batch this producer's, in place, and its CRC right again."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    attributes = attributes | TRANSACTIONAL if transactional else attributes & ~TRANSACTIONAL
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    write_crc(batch)


class _Batch:
    """A batch on its way, and what has become of it so far."""

    __slots__ = ("count", "error", "is_behind", "may_be_there", "partition", "records", "serial")

    def __init__(self, partition: TopicPartition, records: bytearray, count: int, serial: int) -> None:
        self.partition, self.records, self.count, self.serial = partition, records, count, serial
        self.error: Exception | None = None
        self.may_be_there = False  # it was sent on a connection that broke
        self.is_behind = False  # it was refused because one before it was


class _Lane:
    """The requests under way to one broker, each with its batches by topic and partition."""

    def __init__(self, connection: BlockingConnection) -> None:
        self.connection = connection
        self.under_way: deque[dict[tuple[Any, int], _Batch]] = deque()


class IdempotentProducer:
    """`IdempotentProducer.start(cluster)`, `produce({partition: batch})` as often as needed, `flush()`.

    What fails for good is raised by the call during which it is noticed; the producer is of no use then.
    """

    transactional_id: str | None = None
    at_most: int | None = None  # the newest version of Produce that may be used

    def __init__(self, cluster: BlockingCluster, producer_id: int, producer_epoch: int) -> None:
        self.cluster = cluster
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.end_offsets: dict[TopicPartition, int] = {}
        """Where each partition went on after the last batch that was acknowledged."""
        self._sequences: dict[TopicPartition, int] = {}
        self._serial = 0
        self._lanes: dict[int, _Lane] = {}
        self._unsent: list[_Batch] = []
        self._error: Exception | None = None

    @classmethod
    def start(cls, cluster: BlockingCluster) -> Self:
        """A producer with an id of its own."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)

        def once() -> InitProducerIdResponse:
            response = cluster.any().ask(request, InitProducerIdResponse)
            check(response.error_code, "asking for a producer id")
            return response

        response = cluster.persist(once)
        return cls(cluster, response.producer_id, response.producer_epoch)

    def produce(self, batches: Mapping[TopicPartition, Buffer]) -> None:
        """Put one batch for each of these partitions on its way. A bytearray is stamped in place, and must be
        left alone until `flush`; other buffers are copied. Waits only when too much is on its way already."""
        self._check_usable()
        sending = [self._prepare(partition, records) for partition, records in batches.items()]
        try:
            self._before_sending(batches)
            for leader, mine in self._by_leader(sending).items():
                self._send(leader, mine)
            if self._unsent:
                self._recover()
        except BaseException as error:
            self._give_up(error)
            raise

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        self._check_usable()
        try:
            self._drain()
            if self._unsent:
                self._recover()
        except BaseException as error:
            self._give_up(error)
            raise

    def close(self) -> None:
        """Give the connections back. What is under way may arrive or not."""
        for lane in self._lanes.values():
            self.cluster.give_back(lane.connection)
        self._lanes.clear()

    def _before_sending(self, partitions: Iterable[TopicPartition]) -> None:
        """What a transaction needs before records go to partitions that are new to it."""

    def _check_usable(self) -> None:
        if self._error is not None:
            raise self._error

    def _give_up(self, error: BaseException) -> None:
        self._error = error if isinstance(error, Exception) else ClientError("the producer was interrupted")
        self.close()

    def _prepare(self, partition: TopicPartition, records: Buffer) -> _Batch:
        batch = records if isinstance(records, bytearray) else bytearray(records)
        count = read_header(batch).record_count
        sequence = self._sequences.get(partition, 0)
        stamp(
            batch,
            self.producer_id,
            self.producer_epoch,
            sequence,
            transactional=self.transactional_id is not None,
        )
        self._sequences[partition] = add_to_sequence(sequence, count)
        self._serial += 1
        return _Batch(partition, batch, count, self._serial)

    def _by_leader(self, batches: Iterable[_Batch]) -> dict[int, list[_Batch]]:
        """Those that have a leader now; the others join the unsent."""
        found: dict[int, list[_Batch]] = {}
        for batch in batches:
            topic = self.cluster.topic(batch.partition.topic, create=True)
            try:
                found.setdefault(topic.leader(batch.partition.partition), []).append(batch)
            except KafkaError as error:
                self._missed(batch, error)
        return found

    def _send(self, leader: int, batches: list[_Batch]) -> None:
        try:
            lane = self._lane(leader)
            while len(lane.under_way) >= IN_FLIGHT or (lane.under_way and lane.connection.session_is_ending):
                self._receive(lane)
            request, waiting = self._request(batches, lane.connection)
            lane.connection.send(request, at_most=self.at_most)
        except ClientError as error:
            for batch in batches:
                self._missed(batch, error)
            self._lost(leader, error)
        else:
            lane.under_way.append(waiting)

    def _request(
        self, batches: list[_Batch], connection: BlockingConnection
    ) -> tuple[ProduceRequest, dict[tuple[Any, int], _Batch]]:
        """One request with all of these, and by what its response will call them."""
        by_id = connection.version_of(ProduceRequest, self.at_most) >= 13
        by_topic: dict[str, TopicProduceData] = {}
        waiting: dict[tuple[Any, int], _Batch] = {}
        for batch in batches:
            name, number = batch.partition
            topic = by_topic.get(name)
            if topic is None:
                topic_id = self.cluster.topic(name, create=True).id
                topic = by_topic[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=number, records=batch.records))
            waiting[topic.topic_id if by_id else name, number] = batch
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=ACKS_ALL,
            timeout_ms=int(self.cluster.timeout * 1000),
            topic_data=list(by_topic.values()),
        )
        return request, waiting

    def _lane(self, leader: int) -> _Lane:
        lane = self._lanes.get(leader)
        if lane is None:
            lane = self._lanes[leader] = _Lane(self.cluster.take(leader))
        return lane

    def _drain(self) -> None:
        for leader, lane in list(self._lanes.items()):
            try:
                while lane.under_way:
                    self._receive(lane)
            except ClientError as error:
                self._lost(leader, error)

    def _lost(self, leader: int, error: Exception) -> None:
        """A connection broke: whether what was under way is there is not known."""
        lane = self._lanes.pop(leader, None)
        if lane is not None:
            lane.connection.close()
            self.cluster.give_back(lane.connection)
            for waiting in lane.under_way:
                for batch in waiting.values():
                    batch.may_be_there = True
                    self._missed(batch, error)

    def _missed(self, batch: _Batch, error: Exception) -> None:
        batch.error = error
        self._unsent.append(batch)

    def _receive(self, lane: _Lane) -> None:
        """Take the next response of a broker: what it acknowledges is done, the rest joins the unsent."""
        response = lane.connection.receive(ProduceResponse)
        waiting = dict(lane.under_way[0])
        for topic in response.responses:
            for answer in topic.partition_responses:
                batch = waiting.pop((topic.name or topic.topic_id, answer.index), None)
                if batch is None:
                    raise NotKafka(f"{lane.connection.address} acknowledged what it was not sent")
                try:
                    if answer.error_code != DuplicateSequenceNumber.code:  # else it is there already
                        check(answer.error_code, f"partition {batch.partition}", answer.error_message)
                except KafkaError as error:
                    self._missed(batch, error)
                else:
                    if answer.base_offset >= 0:
                        self.end_offsets[batch.partition] = answer.base_offset + batch.count
        if waiting:
            raise NotKafka(f"{lane.connection.address} left out some of what it was sent")
        lane.under_way.popleft()

    # --- again ---------------------------------------------------------------------------

    def _recover(self) -> None:
        """Send what was not acknowledged again, one batch of a partition at a time, until all is there."""
        self._drain()
        deadline, pause = time.monotonic() + self.cluster.timeout, FIRST_PAUSE
        skipped: dict[TopicPartition, Exception] = {}
        while self._unsent:
            first = self._first_of_each(skipped)
            for batch in first:
                assert batch.error is not None
                passes = is_retriable(batch.error) or batch.is_behind
                if not passes or time.monotonic() + pause > deadline:
                    raise batch.error
                batch.is_behind = False
            time.sleep(pause)
            self.cluster.forget()
            before = len(self._unsent)
            self._unsent = [batch for batch in self._unsent if batch not in first]
            for leader, mine in self._by_leader(first).items():
                self._send(leader, mine)
            self._drain()
            for batch in first:
                if batch not in self._unsent:
                    skipped.pop(batch.partition, None)
            if len(self._unsent) < before:
                deadline, pause = time.monotonic() + self.cluster.timeout, FIRST_PAUSE
            else:
                pause = min(2 * pause, LONGEST_PAUSE)
        for error in skipped.values():
            raise error

    def _first_of_each(self, skipped: dict[TopicPartition, Exception]) -> list[_Batch]:
        """The oldest unsent batch of each partition. Those behind it wait for their turn.

        A batch whose connection broke may be there and still be out of order when it is sent again: a broker
        that restarted knows only the last batch of a producer. Then the next one is tried in its place,
        since a broker takes, or recognises, a batch only if it has all before it.
        """
        first: dict[TopicPartition, _Batch] = {}
        kept: list[_Batch] = []
        for batch in sorted(self._unsent, key=lambda batch: batch.serial):
            if isinstance(batch.error, OutOfOrderSequenceNumber):
                if batch.partition in first:
                    batch.is_behind = True
                elif batch.may_be_there and not batch.is_behind:
                    skipped[batch.partition] = batch.error
                    continue
            first.setdefault(batch.partition, batch)
            kept.append(batch)
        self._unsent = kept
        return list(first.values())
