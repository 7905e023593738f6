"""The markers that end transactions, as the coordinator has them written.

`Markers` carries out what a machine of transactions asks for: it sends each marker to the leader of its
partition (where `write_markers` writes it), tries again until every one is written, and then tells the
machine that the transaction is over. Nothing is kept: after a restart the machine asks again for what it has
no end of in its log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from ottla.core.outcome import Now, Outcome
from ottla.core.types import TRANSACTION_STATE, TopicPartition
from ottla.protocol.errors import (
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
    error_name,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.runtime.write_markers import write_markers
from ottla.transactions.effects import WriteMarkers

if TYPE_CHECKING:
    from ottla.runtime.node import Node
    from ottla.transactions.machine import TransactionMachine

logger = logging.getLogger("ottla.markers")

# Between two tries to write a marker, doubling up to the most.
BACKOFF_MS: Final = 5
BACKOFF_MAX_MS: Final = 1_000
# Markers wait for no other requests to their broker, and hold up none.
PURPOSE: Final = "markers"

# What a leader may answer that another try can mend.
RETRIED: Final = {
    error.code
    for error in (
        UnknownTopicOrPartition,
        NotLeaderOrFollower,
        NotEnoughReplicas,
        NotEnoughReplicasAfterAppend,
        RequestTimedOut,
        KafkaStorageError,
    )
}
# What says that a partition needs no marker: nothing of this transaction can be there, or the producer has
# gone on. Kafka gives up on the whole transaction for the last of these, whose id then stays unusable until
# its coordinator moves; we leave out the partition.
LEFT_OUT: Final = {
    UnsupportedForMessageFormat.code,
    UnsupportedVersion.code,
    InvalidProducerEpoch.code,
}

Send = Callable[[int, WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]]


class _Pending:
    """A transaction that waits for its markers."""

    __slots__ = ("attempts", "in_flight", "is_fenced", "markers", "remaining", "timer", "waiters")

    def __init__(self, markers: WriteMarkers) -> None:
        self.markers = markers
        self.remaining = set(markers.partitions)
        self.in_flight = 0  # requests without an answer
        self.is_fenced = False
        self.attempts = 0
        self.timer: asyncio.TimerHandle | None = None
        # Producers that want to begin their next one: at most as many as there are unanswered requests,
        # since one that no longer waits is not in it.
        self.waiters: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        for waiter in list(self.waiters):
            if not waiter.done():
                waiter.set_result(None)


class Markers:
    """`send` brings a request to the broker of that id; by itself it is this one or the one of that id.

    As many transactions wait here as are prepared, which is at most one for each transactional id.
    """

    def __init__(self, node: Node, send: Send | None = None) -> None:
        self._node = node
        self._send_to = send or self._send_there
        # Of each transactional id what was asked for last: a coordinator that has begun anew asks again, and
        # what it asked for before must not write any more markers when this is done.
        self._current: dict[str, _Pending] = {}
        self._queue: list[_Pending] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: set[_Pending] = set()
        self._is_closed = False

    def write(self, markers: WriteMarkers) -> None:
        """Have the markers written, however long it takes, as long as we are the coordinator."""
        before = self._current.get(markers.transactional_id)
        pending = self._current[markers.transactional_id] = _Pending(markers)
        if before is not None:
            before.wake()
        self._enqueue(pending)

    def over(self, transactional_id: str) -> asyncio.Future[None] | None:
        """Done when there is reason to ask again whether this id may begin a transaction; None if there is
        no transaction of it that waits for markers."""
        pending = self._current.get(transactional_id)
        if pending is None:
            return None
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pending.waiters.add(waiter)
        waiter.add_done_callback(pending.waiters.discard)
        return waiter

    async def close(self) -> None:
        """Leave the rest to whoever is coordinator next."""
        self._is_closed = True
        for pending in self._paused:
            if pending.timer is not None:
                pending.timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _enqueue(self, pending: _Pending) -> None:
        # All that comes in one turn of the loop goes out together, one request for each leader.
        if not self._queue and not self._is_closed:
            asyncio.get_running_loop().call_soon(self._flush)
        self._queue.append(pending)

    def _flush(self) -> None:
        queue, self._queue = self._queue, []
        by_leader: dict[int, list[tuple[_Pending, set[TopicPartition]]]] = {}
        for pending in queue:
            if self._is_closed or not self._is_current(pending):
                continue
            if not self._is_coordinator(pending.markers):
                self._forget(pending)
                continue
            leaders: dict[int, set[TopicPartition]] = {}
            for partition in list(pending.remaining):
                leader = self._leader_of(partition)
                if leader is None:
                    pending.remaining.discard(partition)  # its topic is deleted
                elif leader >= 0:
                    leaders.setdefault(leader, set()).add(partition)
            if not pending.remaining:
                self._start(self._complete(pending))
            elif not leaders:
                self._try_again(pending)
            pending.in_flight = len(leaders)
            for leader, partitions in leaders.items():
                by_leader.setdefault(leader, []).append((pending, partitions))
        for leader, batch in by_leader.items():
            self._start(self._send(leader, batch))

    def _leader_of(self, partition: TopicPartition) -> int | None:
        """The leader, -1 if there is none at the moment, None if there is no such partition any more."""
        topic = self._node.image.topics.get(partition.topic)
        state = None if topic is None else topic.partitions.get(partition.partition)
        return None if state is None else state.leader

    def _is_coordinator(self, markers: WriteMarkers) -> bool:
        node = self._node
        own = node.replicas.find(TRANSACTION_STATE, node.transactions.partition_for(markers.transactional_id))
        return own is not None and own.is_leader and own.leader_epoch == markers.coordinator_epoch

    async def _send(self, leader: int, batch: list[tuple[_Pending, set[TopicPartition]]]) -> None:
        request = WriteTxnMarkersRequest(
            markers=[_writable(pending.markers, partitions) for pending, partitions in batch]
        )
        errors: dict[tuple[int, str, int], int] = {}
        try:
            response = await self._send_to(leader, request)
        except (KafkaError, OSError) as error:
            logger.info("markers could not be sent leader=%d error=%s", leader, error)
        else:
            errors = {
                (result.producer_id, topic.name, partition.partition_index): partition.error_code
                for result in response.markers
                for topic in result.topics
                for partition in topic.partitions
            }
        for pending, partitions in batch:
            self._take(pending, partitions, errors)

    def _take(
        self,
        pending: _Pending,
        partitions: set[TopicPartition],
        errors: dict[tuple[int, str, int], int],
    ) -> None:
        """What a leader said about the partitions of one transaction; those it is silent about are to be
        tried again."""
        markers = pending.markers
        for partition in partitions:
            error = errors.get((markers.producer_id, *partition))
            if error == 0 or error in LEFT_OUT:
                pending.remaining.discard(partition)
            elif error == TransactionCoordinatorFenced.code:
                pending.is_fenced = True
            if error:
                logger.log(
                    logging.INFO if error in RETRIED else logging.WARNING,
                    "a marker was not written transactional_id=%r partition=%s error=%s",
                    markers.transactional_id,
                    partition,
                    error_name(error),
                )
        pending.in_flight -= 1
        if pending.in_flight or not self._is_current(pending):
            return
        if pending.is_fenced:
            self._forget(pending)  # a later coordinator has been there, and sees to it
        elif pending.remaining:
            self._try_again(pending)
        else:
            self._start(self._complete(pending))

    async def _complete(self, pending: _Pending) -> None:
        markers = pending.markers
        if not self._is_current(pending):
            return

        def written(machine: TransactionMachine, now: Now, ticket: object) -> Outcome:
            # In time for the next transaction's first record to be synced together with this one's last.
            pending.wake()
            return machine.markers_written(markers, now)

        try:
            await self._node.transactions.call(markers.transactional_id, written)
        except CoordinatorNotAvailable:
            self._try_again(pending)
        except KafkaError as error:
            # We are not the coordinator any more, or begin anew from the log, and then it is asked for again.
            logger.info("transaction not completed transactional_id=%r: %s", markers.transactional_id, error)
            self._forget(pending)
        else:
            self._forget(pending)

    def _is_current(self, pending: _Pending) -> bool:
        return self._current.get(pending.markers.transactional_id) is pending

    def _forget(self, pending: _Pending) -> None:
        if self._is_current(pending):
            del self._current[pending.markers.transactional_id]
        pending.wake()

    def _try_again(self, pending: _Pending) -> None:
        if self._is_closed:
            return
        wait_ms = min(BACKOFF_MS << min(pending.attempts, 16), BACKOFF_MAX_MS)
        pending.attempts += 1
        pending.timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._resume, pending)
        self._paused.add(pending)

    def _resume(self, pending: _Pending) -> None:
        self._paused.discard(pending)
        self._enqueue(pending)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("writing markers failed", exc_info=error)

    async def _send_there(self, leader: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        node = self._node
        if leader == node.node_id:
            return await write_markers(request, node)
        partitions = {
            TopicPartition(topic.name, index)
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        }
        return await node.coordinators.elsewhere.ask(
            leader,
            request,
            WriteTxnMarkersResponse,
            purpose=PURPOSE,
            within=node.settings.request_timeout_ms / 1000,
            still_leads=lambda: all(self._leader_of(partition) == leader for partition in partitions),
        )


def _writable(markers: WriteMarkers, partitions: set[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        producer_id=markers.producer_id,
        producer_epoch=markers.producer_epoch,
        transaction_result=markers.committed,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()
        ],
        coordinator_epoch=markers.coordinator_epoch,
        transaction_version=markers.transaction_version,
    )
