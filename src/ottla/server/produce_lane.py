"""The short way for the request a broker sees most: one batch for one partition, like the one before it.

A producer repeats itself. Everything in its request but the correlation id and the records (client id, acks,
timeout, topic, partition) is the same bytes every time, and so is everything in the answer but a few numbers.
A connection learns these bytes from a request that went the ordinary way (`handlers/produce.py`) and then
recognises the next one by comparing them, which saves decoding it, handling it and encoding the answer.

What it cannot append goes the ordinary way, where nothing has happened yet, and is answered there. What it
can is answered with the same bytes as the ordinary way, which a test checks. A sync or a replication that
fails afterwards is told as the handler tells it.

Where there are access rules, lanes are learned from requests that were allowed, and are forgotten when any
rule changes: the next request goes the ordinary way and is asked about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ottla.core.acl import Operation, ResourceType
from ottla.core.types import INTERNAL_TOPICS
from ottla.protocol import codec
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.replication.partition import Partition
from ottla.server.context import Context
from ottla.server.handlers.produce import take_outcome
from ottla.server.waiting import settled

if TYPE_CHECKING:
    from ottla.metadata.authorizer import Authorizer
    from ottla.runtime.node import Node
    from ottla.server.routes import Route

# Versions from 7 on take every codec and have all the numbers in the answer that later ones have.
FIRST_VERSION: Final = 7
FLEXIBLE_SINCE: Final = 9

# A request header up to the client id: api key, version, correlation id.
BEFORE_CLIENT_ID: Final = 8
TRANSACTIONAL: Final = 0x10
ATTRIBUTES: Final = 22
BATCH_HEADER: Final = 61
# Of the last of the five bytes that a length may have.
LONGEST_SHIFT: Final = 28
# Where a version's answer has its numbers, told by values that cannot be there by chance.
BASE_OFFSET: Final = 0x5EED_0001_5EED_0001
APPEND_TIME: Final = 0x5EED_0002_5EED_0002
START_OFFSET: Final = 0x5EED_0003_5EED_0003

_LENGTH: Final = Struct(">i").unpack_from
_NUMBER: Final = Struct(">q")


class ProduceLane:
    """What was learned from one request. A partition that is no longer led here refuses the append."""

    __slots__ = (
        "_acks",
        "_node",
        "_pack",
        "_parts",
        "_size",
        "_tail",
        "_timeout_ms",
        "partition",
        "prefix",
        "route",
        "version",
    )

    def __init__(
        self,
        node: Node,
        route: Route,
        prefix: bytes,
        request: ProduceRequest,
        partition: Partition,
        answer: bytes,
    ) -> None:
        self._node = node
        self.route = route
        self.version = route.version
        self.prefix = prefix
        self.partition = partition
        self._acks = request.acks
        self._timeout_ms = request.timeout_ms
        self._tail = b"\0\0\0" if self.version >= FLEXIBLE_SINCE else b""
        # The answer as constant stretches around the correlation id and the three numbers.
        places = [answer.index(_NUMBER.pack(mark)) for mark in (BASE_OFFSET, APPEND_TIME, START_OFFSET)]
        starts = [8, *(place + 8 for place in places)]
        self._parts = [answer[a:b] for a, b in zip(starts, [*places, len(answer)], strict=True)]
        self._pack = Struct(">ii" + "q".join(f"{len(part)}s" for part in self._parts)).pack
        self._size = len(answer) - 4

    def append(
        self, buffer: bytearray, position: int, end: int, correlation_id: int
    ) -> bytes | Coroutine[Any, Any, Any] | None:
        """Append the batch of a request that has our prefix.

        Gives the whole answer, now or once the batch is replicated and synced, or None to go the long way.
        """
        position += BEFORE_CLIENT_ID + len(self.prefix)
        if self.version >= FLEXIBLE_SINCE:
            size = shift = 0
            while True:
                if position >= end or shift > LONGEST_SHIFT:
                    return None  # not a length; the long way says so
                byte = buffer[position]
                position += 1
                size |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            size -= 1
        else:
            if position + 4 > end:
                return None
            (size,) = _LENGTH(buffer, position)
            position += 4
        stop = position + size
        tail = self._tail
        if size < BATCH_HEADER or stop + len(tail) != end or not buffer.startswith(tail, stop):
            return None
        partition = self.partition
        if buffer[position + ATTRIBUTES] & TRANSACTIONAL:
            return None
        node = self._node
        try:
            appended = partition.append(memoryview(buffer)[position:stop], node.clock.wall_ms(), self._acks)
        except KafkaError:
            return None
        first, second, third, last = self._parts
        answer = self._pack(
            self._size,
            correlation_id,
            first,
            appended.base_offset,
            second,
            appended.log_append_time_ms,
            third,
            partition.log.start_offset,
            last,
        )
        if self._acks == -1:
            synced = node.synced(partition, appended.last_offset)
            if not partition.isr.is_leader_alone:
                committed = partition.committed(appended.last_offset)
                if committed is not None:
                    return self._when_done(answer, (committed,) if synced is None else (committed, synced))
            if synced is not None:
                return self._when_done(answer, (synced,))
        return answer

    async def _when_done(self, answer: bytes, waits: tuple[asyncio.Future[None], ...]) -> Any:
        await settled(waits, self._timeout_ms)
        failed = [wait for wait in waits if wait.exception() is not None]
        if not failed:
            return answer
        head = 9 if self.route.tagged_reply else 8
        response = codec.decode(ProduceResponse, self.version, answer, head)
        take_outcome(response.responses[0].partition_responses[0], failed[0])
        return response


class ProduceLanes:
    """The lanes of one connection: a producer has one for each partition it writes to."""

    __slots__ = ("_authorizer", "_lanes", "_last", "_lengths", "_rules_version")

    LANES_MAX: Final = 256
    LENGTHS_MAX: Final = 8

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer
        self._rules_version = 0 if authorizer is None else authorizer.version
        self._last: ProduceLane | None = None
        self._lanes: dict[tuple[int, bytes], ProduceLane] = {}
        self._lengths: list[int] = []

    def find(self, buffer: bytearray, position: int, version: int) -> ProduceLane | None:
        """The lane for the request whose header starts at `position`."""
        authorizer = self._authorizer
        if authorizer is not None and authorizer.version != self._rules_version:
            self._rules_version = authorizer.version
            self._last = None
            self._lanes.clear()
            return None
        start = position + BEFORE_CLIENT_ID
        lane = self._last
        if lane is not None and lane.version == version and buffer.startswith(lane.prefix, start):
            return lane
        for length in self._lengths:
            lane = self._lanes.get((version, bytes(buffer[start : start + length])))
            if lane is not None:
                self._last = lane
                return lane
        return None

    def learn(
        self, ctx: Context, route: Route, request: ProduceRequest, buffer: bytearray, position: int, end: int
    ) -> None:
        """Remember a request that has gone the ordinary way, if it is of the common kind."""
        if len(self._lanes) >= self.LANES_MAX:
            return
        lane = _lane_for(ctx, route, request, buffer, position, end)
        if lane is None:
            return
        length = len(lane.prefix)
        if length not in self._lengths:
            if len(self._lengths) >= self.LENGTHS_MAX:
                return
            self._lengths.append(length)
        self._lanes[lane.version, lane.prefix] = self._last = lane


def _lane_for(
    ctx: Context, route: Route, request: ProduceRequest, buffer: bytearray, position: int, end: int
) -> ProduceLane | None:
    node, version = ctx.node, route.version
    if version < FIRST_VERSION or request.acks not in (-1, 1) or request.transactional_id is not None:
        return None
    if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
        return None
    topic = request.topic_data[0]
    (data,) = topic.partition_data
    name = topic.name
    if version >= 13:
        known = node.image.topic_by_id.get(topic.topic_id)
        name = "" if known is None else known.name
    partition = node.replicas.find(name, data.index)
    records = data.records
    if name in INTERNAL_TOPICS or partition is None or not records or len(records) < BATCH_HEADER:
        return None
    if not ctx.allows(Operation.WRITE, ResourceType.TOPIC, name):
        return None
    # The records and three empty sets of tagged fields are the last things in a request.
    flexible = version >= FLEXIBLE_SINCE
    start = end - len(records) - (3 if flexible else 0)
    if buffer[start : start + BATCH_HEADER] != records[:BATCH_HEADER]:
        return None  # more than that follows
    width = ((len(records) + 1).bit_length() + 6) // 7 if flexible else 4
    prefix = bytes(buffer[position + BEFORE_CLIENT_ID : start - width])
    answer = bytearray(9 if flexible else 8)
    marked = PartitionProduceResponse(
        index=data.index,
        base_offset=BASE_OFFSET,
        log_append_time_ms=APPEND_TIME,
        log_start_offset=START_OFFSET,
    )
    response = TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=[marked])
    route.write(ProduceResponse(responses=[response]), answer)
    return ProduceLane(node, route, prefix, request, partition, bytes(answer))
