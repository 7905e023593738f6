"""Fetch (key 1, versions 0-18): read batches from partitions, waiting for some if asked to.

Kafka 4 dropped versions 0 to 3; we serve them, and turn batches into the message sets they know.
Answers hold whole batches: where Kafka may cut the last one at the byte limit, we leave it out.

Who may read what is asked whenever partitions are read, also for a session that was opened long ago. Kafka
asks when the request is made; here one that waits does not get what was appended after its right went.

A follower's fetch says how much the follower has, and that counts before anything is read: the answer has the
high watermark that follows from it. It is also answered when the high watermark has moved past the one that
the follower knows, where Kafka lets it wait for records.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.core.acl import Operation
from ottla.core.files import Buffer
from ottla.protocol.batch import iter_batches
from ottla.protocol.errors import (
    KafkaError,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnsupportedCompressionType,
)
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.replication.fetch_session import Fetch, SessionPartition
from ottla.replication.following import Asked
from ottla.replication.partition import Partition
from ottla.server.authorization import AllowedTopics
from ottla.server.context import Context
from ottla.server.hosting import hosted

if TYPE_CHECKING:
    from ottla.storage.log import Log

READ_COMMITTED: Final = 1
CONSUMER: Final = -1
# From this version on a consumer may read from a follower (KIP-392); tools may always.
FROM_FOLLOWERS_SINCE: Final = 11
# Batches of magic 2 came with version 4; versions 2 and 3 know timestamps (magic 1), older ones do not.
MAGIC_OF_OLD_VERSIONS: Final = {0: 0, 1: 0, 2: 1, 3: 1}
ZSTD_SINCE: Final = 10

Answers = list[tuple[SessionPartition, PartitionData]]


async def fetch(request: FetchRequest, ctx: Context) -> FetchResponse:
    node = ctx.node
    try:
        wanted = node.fetch_sessions.begin(
            request, ctx.version, node.clock.monotonic_ms(), node.random_session_id()
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    reading = _Reading(request, ctx, wanted)
    answers = reading.read()
    # With nothing asked for there is nothing to wait for: this is how a client closes its session.
    if answers and not reading.is_satisfied and request.max_wait_ms > 0:
        answers = await _wait(reading, request.max_wait_ms)
    for partition, size in reading.sent:
        partition.bytes_out += size
    return _response(ctx, wanted, wanted.changed(answers))


class _Reading:
    """One pass over the partitions of a fetch; may be repeated after a wait."""

    def __init__(self, request: FetchRequest, ctx: Context, wanted: Fetch) -> None:
        self.ctx = ctx
        self.wanted = wanted
        self.read_committed = request.isolation_level == READ_COMMITTED
        if ctx.version >= 15:
            self.replica_id = request.replica_state.replica_id
            self._replica_epoch = request.replica_state.replica_epoch
        else:
            self.replica_id, self._replica_epoch = request.replica_id, -1
        self.is_follower = self.replica_id > CONSUMER
        if self.is_follower:
            self._now_ms = ctx.node.clock.monotonic_ms()
            self._is_current = self._replica_epoch >= ctx.node.standing_of(self.replica_id).epoch
        self._is_repeated = False
        self.max_bytes = min(request.max_bytes, ctx.node.settings.fetch_max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.bytes = 0
        self.sent: list[tuple[Partition, int]] = []
        self.must_answer = False
        self._is_refused = False
        self._readable: AllowedTopics | None = None

    @property
    def is_satisfied(self) -> bool:
        """Enough was read, or something came up that the client should hear of at once."""
        return self.must_answer or self.bytes >= self.min_bytes

    def read(self) -> Answers:
        self.bytes = 0
        self.sent.clear()
        if self.ctx.node.authorizer is not None:
            self._ask_rights()
        answers = []
        left = self.max_bytes
        for wanted in self.wanted.wanted():
            answer = self._read_partition(wanted, left)
            size = len(answer.records or b"")
            left = max(0, left - size)
            self.bytes += size
            answers.append((wanted, answer))
        self._is_repeated = True
        return answers

    def _ask_rights(self) -> None:
        if self.is_follower:
            # A follower reads past the high watermark, and its fetches count as replication.
            self._is_refused = not self.ctx.allows_on_cluster(Operation.CLUSTER_ACTION)
        else:
            self._readable = AllowedTopics(self.ctx, Operation.READ)

    def partitions(self) -> list[Partition]:
        """The partitions that a wait is for."""
        found = []
        for wanted in self.wanted.wanted():
            with suppress(KafkaError):
                found.append(self._partition(wanted))
        return found

    def _partition(self, wanted: SessionPartition) -> Partition:
        if self._is_refused:
            raise TopicAuthorizationFailed
        node = self.ctx.node
        name = wanted.topic
        if self.ctx.version >= 13:
            topic = node.image.topic_by_id.get(wanted.topic_id)
            if topic is None:
                raise UnknownTopicId
            name = topic.name
        if self._readable is not None and not self._readable[name]:
            raise TopicAuthorizationFailed
        return hosted(node, name, wanted.partition)

    def _read_partition(self, wanted: SessionPartition, left: int) -> PartitionData:
        try:
            partition = self._partition(wanted)
            try:
                return self._read_log(partition, wanted, left)
            except OSError as error:
                raise partition.directory.fail(error) from error
        except KafkaError as error:
            self.must_answer = True
            return PartitionData(
                partition_index=wanted.partition,
                error_code=error.code,
                high_watermark=-1,
                aborted_transactions=None,
                records=b"",
            )

    def _read_log(self, partition: Partition, wanted: SessionPartition, left: int) -> PartitionData:
        asked = wanted.asked
        version = self.ctx.version
        if self.is_follower or (self.replica_id == CONSUMER and version < FROM_FOLLOWERS_SINCE):
            partition.check_leader(asked.current_leader_epoch)
        else:
            partition.check_epoch(asked.current_leader_epoch)
        log = partition.log
        quiet = wanted.quiet
        if quiet is not None:
            if self.is_follower and self._is_quiet(partition, asked, quiet):
                return quiet
            wanted.quiet = None
        diverging = partition.diverges(asked.last_fetched_epoch, asked.fetch_offset)
        if self.is_follower and diverging is None and not self._is_repeated:
            self._follower_fetched(partition, asked)
        if version < ZSTD_SINCE and log.settings.compression_type == "zstd":
            raise UnsupportedCompressionType
        answer = PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            aborted_transactions=[] if self.read_committed else None,
            records=b"",
        )
        if diverging is not None:
            self.must_answer = True
            answer.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
            return answer
        if self.is_follower:
            end_offset = log.end_offset
            if log.high_watermark > asked.high_watermark:
                self.must_answer = True
        else:
            end_offset = log.last_stable_offset if self.read_committed else log.high_watermark
        if asked.fetch_offset < log.segments.active.base_offset < end_offset:
            # One read ends with its segment: waiting brings no more to a reader of an older one.
            self.must_answer = True
        limit = min(asked.partition_max_bytes, left)
        # The first partition with data may go over the limits, so that a client always gets on (KIP-74).
        first = self.bytes == 0 and version >= 3
        records = log.read(asked.fetch_offset, limit, end_offset, min_one_batch=first)
        if len(records):
            if self.read_committed:
                answer.aborted_transactions = _aborted(log, asked.fetch_offset, records)
            if version in MAGIC_OF_OLD_VERSIONS:
                records = _as_message_set(records, MAGIC_OF_OLD_VERSIONS[version], asked.fetch_offset)
            answer.records = records
            self.sent.append((partition, len(records)))
        elif self.is_follower and log.end_offset == asked.fetch_offset:
            wanted.quiet = answer
        return answer

    def _is_quiet(self, partition: Partition, asked: FetchPartition, answer: PartitionData) -> bool:
        """Whether a follower that asks the same again is to be answered the same: it has all that there is.

        It asks for all its partitions at once, and most of them are quiet most of the time.
        """
        log = partition.log
        if not (
            asked.fetch_offset == log.end_offset
            and asked.high_watermark == answer.high_watermark == log.high_watermark
            and answer.log_start_offset == log.start_offset
        ):
            return False
        if self._is_repeated:
            return True
        return self._is_current and partition.follower_idles(
            self.replica_id, self._replica_epoch, self._now_ms
        )

    def _follower_fetched(self, partition: Partition, asked: FetchPartition) -> None:
        """Take note of what a follower has, which may move the high watermark or the in-sync set."""
        node = self.ctx.node
        proposal = partition.follower_fetched(
            self.replica_id,
            self._replica_epoch,
            Asked(
                asked.current_leader_epoch,
                asked.fetch_offset,
                asked.last_fetched_epoch,
                asked.log_start_offset,
                asked.high_watermark,
            ),
            self._now_ms,
            node.settings.replica_lag_time_max_ms,
            node.standing_of,
        )
        if proposal is not None:
            node.in_sync_sets.propose(partition)


class _Waiter:
    """A waiting fetch: one small object that its partitions tell about new bytes."""

    __slots__ = ("_missing", "future")

    def __init__(self, missing: int, future: asyncio.Future[bool]) -> None:
        self._missing = missing
        self.future = future

    def readable(self, size: int) -> None:
        self._missing -= size
        if (self._missing <= 0 or size == 0) and not self.future.done():
            self.future.set_result(True)

    def expire(self) -> None:
        if not self.future.done():
            self.future.set_result(False)


async def _wait(reading: _Reading, max_wait_ms: int) -> Answers:
    """Read again whenever enough has come in, until it suffices or the time is up."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + max_wait_ms / 1000
    partitions = reading.partitions()
    while True:
        waiter = _Waiter(reading.min_bytes - reading.bytes, loop.create_future())
        timer = loop.call_at(deadline, waiter.expire)
        for partition in partitions:
            if reading.is_follower:
                partition.add_follower_waiter(waiter)
            else:
                partition.add_waiter(waiter)
        try:
            in_time = await waiter.future
        finally:
            timer.cancel()
            for partition in partitions:
                if reading.is_follower:
                    partition.remove_follower_waiter(waiter)
                else:
                    partition.remove_waiter(waiter)
        answers = reading.read()
        if reading.is_satisfied or not in_time:
            return answers


def _aborted(log: Log, fetch_offset: int, records: Buffer) -> list[AbortedTransaction]:
    aborted = log.aborted_transactions(fetch_offset, log.last_stable_offset)
    if not aborted:
        return []
    end_offset = fetch_offset
    for header, _ in iter_batches(records):
        end_offset = header.last_offset + 1
    return [
        AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in aborted
        if one.first_offset < end_offset
    ]


def _as_message_set(records: Buffer, magic: int, fetch_offset: int) -> Buffer:
    from ottla.protocol.message_set import down_convert  # only for clients of before 2017

    return down_convert(records, magic, fetch_offset)


def _response(ctx: Context, wanted: Fetch, answers: Answers) -> FetchResponse:
    response = FetchResponse(session_id=wanted.session_id)
    topics: dict[object, FetchableTopicResponse] = {}
    for partition, answer in answers:
        key = partition.topic_id if ctx.version >= 13 else partition.topic
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(
                topic=partition.topic, topic_id=partition.topic_id, partitions=[]
            )
        topic.partitions.append(answer)
        if answer.error_code == NotLeaderOrFollower.code and ctx.version >= 12:
            _point_to_leader(ctx, response, partition, answer)
    response.responses = list(topics.values())
    return response


def _point_to_leader(
    ctx: Context, response: FetchResponse, wanted: SessionPartition, answer: PartitionData
) -> None:
    """Tell a client that came to the wrong broker where to go (KIP-951)."""
    image = ctx.node.image
    by_id = ctx.version >= 13
    topic = image.topic_by_id.get(wanted.topic_id) if by_id else image.topics.get(wanted.topic)
    partition = None if topic is None else topic.partitions.get(wanted.partition)
    if partition is None or partition.leader < 0:
        return
    answer.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    broker = image.brokers.get(partition.leader)
    if broker is not None and all(known.node_id != broker.id for known in response.node_endpoints):
        host, port = ctx.node.broker_endpoint(broker, ctx.connection)
        response.node_endpoints.append(
            NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
        )
