"""Followers' fetches: one task for each broker that leads partitions we follow.

A fetcher asks for all its partitions in one long poll, in a fetch session, so that a request names only what
has changed since the last one. What comes back is appended a partition at a time, and the next request says
so: a fetch offset is what we have. With `ottla.durability=durable` it is what we have *synced*, since the
leader takes our word for it when it acknowledges.

A partition that comes to a fetcher while its long poll is under way is fetched on a second connection until
the poll is over: after an election somebody is waiting for us to have what the new leader has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.client.errors import ClientError
from ottla.core.ids import Uuid
from ottla.protocol.errors import KafkaError, KafkaStorageError, error_name
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.replication.following import Answered, Asked, Backoff, Reaction, reaction, reset
from ottla.replication.partition import NO_LEADER, Partition
from ottla.storage.checkpoints import RECOVERY_POINTS
from ottla.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from ottla.runtime.node import Node

logger = logging.getLogger("ottla.replication")

FULL: Final = 0  # the epoch of a fetch that names all its partitions and opens a session
SESSIONLESS: Final = -1
LAST_EPOCH: Final = 2**31 - 1
LATEST: Final = -1
EARLIEST: Final = -2
# How long a fetch for newcomers waits: until the long poll is over there are several of them.
NEWCOMERS_WAIT_MS: Final = 50
# Bytes appended before other work of the loop gets its turn.
SLICE_BYTES: Final = 1024 * 1024
SLICE: Final = 50

Key = tuple[Uuid, int]


class Followed:
    """One partition of a fetcher."""

    __slots__ = ("asked", "backoff", "is_stopped", "key", "leader_epoch", "not_before_ms", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: Key = (partition.topic_id, partition.partition.partition)
        self.leader_epoch = partition.leader_epoch
        self.backoff = Backoff()
        self.not_before_ms = 0
        self.is_stopped = False  # until there is a newer leader epoch
        self.asked: Asked | None = None  # what the session knows


class ReplicaFetchers:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._fetchers: dict[int, Fetcher] = {}
        self._is_closed = False

    def follow(self, partition: Partition) -> None:
        """The partition's leader may have changed: fetch it from there, or not at all."""
        followed = not partition.is_leader and not partition.offline and partition.leader != NO_LEADER
        if partition is not self._node.replicas.find(*partition.partition):
            followed = False  # removed
        for leader, fetcher in self._fetchers.items():
            if leader != partition.leader or not followed:
                fetcher.remove(partition)
        if followed and not self._is_closed:
            if partition.leader not in self._fetchers:
                self._fetchers[partition.leader] = Fetcher(self._node, partition.leader)
            self._fetchers[partition.leader].add(partition)

    async def close(self) -> None:
        self._is_closed = True
        for fetcher in self._fetchers.values():
            await fetcher.close()


class Fetcher:
    """Fetches everything that one broker leads and we follow."""

    def __init__(self, node: Node, leader: int) -> None:
        self._node = node
        self.leader = leader
        self._followed: dict[Key, Followed] = {}
        # Those that the long poll does not know yet, while there is one under way.
        self._newcomers: dict[Key, Followed] = {}
        self._forgotten: set[Key] = set()
        self._session_id = 0
        self._session_epoch = FULL
        self._backoff = Backoff()
        self._changed = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._second: asyncio.Task[None] | None = None

    def add(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.partition.partition)
        known = self._followed.get(key)
        if (
            known is not None
            and known.partition is partition
            and known.leader_epoch == partition.leader_epoch
        ):
            return
        followed = self._followed[key] = Followed(partition)
        if known is not None:
            followed.asked = known.asked
        self._forgotten.discard(key)
        self._newcomers[key] = followed
        self._changed.set()
        if self._second is None or self._second.done():
            self._second = asyncio.get_running_loop().create_task(self._fetch_newcomers())

    def remove(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.partition.partition)
        known = self._followed.pop(key, None)
        self._newcomers.pop(key, None)
        if known is not None and known.asked is not None:
            self._forgotten.add(key)

    async def close(self) -> None:
        for task in (self._task, self._second):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    # --- the two lines ---------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            ready = self._ready(self._followed.values())
            if not ready and not self._forgotten:
                await self._sleep()
                continue
            wait_ms = 0
            try:
                await self._sync(ready)
                if not await self._fetch_session(ready):
                    wait_ms = self._backoff.failed(self._node.settings.replica_fetch_backoff_ms)
                else:
                    self._backoff.worked()
            except ClientError as error:
                self._forget_session()
                wait_ms = self._backoff.failed(self._node.settings.replica_fetch_backoff_ms)
                logger.debug("cannot fetch leader=%d error=%s", self.leader, error)
            except asyncio.CancelledError:
                raise
            except Exception:
                self._forget_session()
                wait_ms = self._node.settings.replica_fetch_backoff_ms
                logger.exception("a fetch failed leader=%d", self.leader)
            if wait_ms:
                await asyncio.sleep(wait_ms / 1000)

    async def _fetch_newcomers(self) -> None:
        await asyncio.sleep(0)  # those of one election come together, and the poll may be over by now
        while newcomers := self._ready(self._newcomers.values()):
            try:
                await self._sync(newcomers)
                request = self._request(NEWCOMERS_WAIT_MS)
                request.session_epoch = SESSIONLESS
                asked = {
                    each.key: (each, each.partition.ask()) for each in newcomers if self._is_synced(each)
                }
                request.topics = _topics((each.partition, one) for each, one in asked.values())
                response = await self._ask(request, "newcomers")
                if response.error_code:
                    return
                await self._take_answers(response, asked)
            except ClientError:
                return  # the long poll has to do with that broker, too
            except asyncio.CancelledError:
                raise
            except Exception:
                logger.exception("a fetch failed leader=%d", self.leader)
                return

    async def _sleep(self) -> None:
        """Until there is something to fetch, or it is time to try a partition again."""
        now_ms = self._node.clock.monotonic_ms()
        waits = [each.not_before_ms - now_ms for each in self._followed.values() if not each.is_stopped]
        later = [wait for wait in waits if wait > 0]
        timeout = min(later) / 1000 if later else None
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()

    def _ready(self, followed: Iterable[Followed]) -> list[Followed]:
        now_ms = self._node.clock.monotonic_ms()
        return [
            each
            for each in followed
            if not each.is_stopped
            and each.not_before_ms <= now_ms
            and not each.partition.offline
            and each.partition.leader_epoch == each.leader_epoch
            and not each.partition.is_leader
        ]

    async def _sync(self, ready: list[Followed]) -> None:
        """What we say that we have must be on the disk, where that is promised."""
        node = self._node
        if not node.is_durable:
            return
        waits = []
        for each in ready:
            log = each.partition.log
            if log.recovery_point < log.end_offset:
                with suppress(KafkaStorageError):  # offline, which `_ready` will see
                    waits.append(node.flushers[each.partition.directory].synced(log, log.end_offset))
        if waits:
            await asyncio.gather(*waits, return_exceptions=True)

    def _is_synced(self, followed: Followed) -> bool:
        """Not so if it could not be synced, or has grown since."""
        log = followed.partition.log
        return not self._node.is_durable or log.recovery_point >= log.end_offset

    # --- one fetch -------------------------------------------------------------------------

    async def _fetch_session(self, ready: list[Followed]) -> bool:
        """One request of the session; whether the broker could make something of it."""
        request = self._request(self._node.settings.replica_fetch_wait_max_ms)
        request.session_id, request.session_epoch = self._session_id, self._session_epoch
        known: dict[Key, tuple[Followed, Asked]] = {}
        named: list[tuple[Partition, Asked]] = []
        for each in ready:
            if not self._is_synced(each):
                continue
            asked = each.partition.ask()
            known[each.key] = (each, asked)
            if self._session_epoch == FULL or each.asked != asked:
                named.append((each.partition, asked))
        for key in known.keys() & self._newcomers.keys():
            del self._newcomers[key]
        if len(known) < len(self._followed):
            for key, each in self._followed.items():
                if key not in known and each.asked is not None:
                    each.asked = None
                    self._forgotten.add(key)
        request.topics = _topics(named)
        if self._session_epoch != FULL:
            request.forgotten_topics_data = _forgotten(self._forgotten - known.keys())
        forgotten, self._forgotten = self._forgotten, set()
        if not known and (self._session_epoch == FULL or not forgotten):
            return not ready  # what could not be synced is not asked for again at once
        response = await self._ask(request, "replication")
        if response.error_code:
            logger.info(
                "fetch session ended leader=%d error=%s", self.leader, error_name(response.error_code)
            )
            self._forget_session()
            return False
        for key, (each, asked) in known.items():
            each.asked = asked
            if key not in self._followed:
                self._forgotten.add(key)  # removed while its first request was under way
        self._session_id = response.session_id
        if response.session_id == 0:
            self._forget_session()
        elif self._session_epoch == LAST_EPOCH:
            self._session_epoch = 1
        else:
            self._session_epoch += 1
        await self._take_answers(response, known)
        return True

    def _request(self, wait_ms: int) -> FetchRequest:
        node = self._node
        settings = node.settings
        return FetchRequest(
            replica_state=ReplicaState(replica_id=node.node_id, replica_epoch=node.broker_epoch),
            max_wait_ms=wait_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
        )

    async def _ask(self, request: FetchRequest, purpose: str) -> FetchResponse:
        max_bytes = self._node.settings.replica_fetch_max_bytes
        for topic in request.topics:
            for partition in topic.partitions:
                partition.partition_max_bytes = max_bytes
        within = self._node.settings.replica_socket_timeout_ms / 1000
        return await self._node.channels.ask_broker(
            self.leader, request, FetchResponse, purpose=purpose, within=within
        )

    def _forget_session(self) -> None:
        self._session_id, self._session_epoch = 0, FULL
        self._forgotten.clear()
        for each in self._followed.values():
            each.asked = None

    # --- answers ---------------------------------------------------------------------------

    async def _take_answers(self, response: FetchResponse, known: dict[Key, tuple[Followed, Asked]]) -> None:
        size = 0
        cut: set[LogDirectory] = set()
        for topic in response.responses:
            for count, data in enumerate(topic.partitions, start=1):
                asked = known.get((topic.topic_id, data.partition_index))
                if asked is None:
                    continue
                if await self._take(*asked, data):
                    cut.add(asked[0].partition.directory)
                size += len(data.records or b"")
                if size > SLICE_BYTES or count % SLICE == 0:
                    size = 0
                    await asyncio.sleep(0)
        for directory in cut:
            # A recovery must not take for checked what is appended in place of what was cut off.
            try:
                await asyncio.to_thread(directory.collect_checkpoint(RECOVERY_POINTS).write)
            except OSError as error:
                directory.fail(error)

    async def _take(self, followed: Followed, asked: Asked, data: PartitionData) -> bool:
        """Apply what the leader said of one partition; whether our log was cut."""
        partition = followed.partition
        try:
            if data.error_code:
                return await self._take_error(followed, asked, data.error_code)
            was_cut = partition.take_answer(
                asked,
                Answered(
                    data.records or b"",
                    data.high_watermark,
                    data.log_start_offset,
                    data.diverging_epoch.epoch,
                    data.diverging_epoch.end_offset,
                ),
                self._node.clock.wall_ms(),
            )
            if was_cut:
                logger.info(
                    "cut partition=%s from=%d to=%d, leader=%d has epoch %d up to %d",
                    partition.partition,
                    asked.fetch_offset,
                    partition.log.end_offset,
                    self.leader,
                    data.diverging_epoch.epoch,
                    data.diverging_epoch.end_offset,
                )
                if partition.log.end_offset == asked.fetch_offset:
                    self._back_off(followed)  # that did not help
            elif data.records:
                self._node.replicas.write_now(partition)
        except KafkaStorageError:
            return False  # its directory is offline, and it with it
        except KafkaError as error:
            logger.warning("cannot follow partition=%s error=%s", partition.partition, error)
            self._back_off(followed)
            return False
        followed.backoff.worked()
        return was_cut

    async def _take_error(self, followed: Followed, asked: Asked, error_code: int) -> bool:
        partition = followed.partition
        what = reaction(error_code)
        logger.debug("fetch partition=%s error=%s: %s", partition.partition, error_name(error_code), what)
        if what is Reaction.STOP:
            followed.is_stopped = partition.leader_epoch == followed.leader_epoch
            return False
        if what is Reaction.LOOK_UP:
            with suppress(ClientError):
                return await self._reset(followed, asked)
        self._back_off(followed)
        return False

    async def _reset(self, followed: Followed, asked: Asked) -> bool:
        """The leader has no such offset: find out what it has."""
        partition = followed.partition
        leader_end = await self._offset(partition, LATEST)
        leader_start = await self._offset(partition, EARLIEST)
        if leader_end is None or leader_start is None or not partition.is_still(asked):
            self._back_off(followed)
            return False
        change = reset(asked.fetch_offset, leader_start, leader_end)
        logger.warning(
            "out of range partition=%s end_offset=%d, leader=%d has %d to %d",
            partition.partition,
            asked.fetch_offset,
            self.leader,
            leader_start,
            leader_end,
        )
        if change.truncate_to is not None:
            partition.cut(change.truncate_to)
        elif change.start_at is not None:
            partition.start_anew(change.start_at)
        else:
            self._back_off(followed)
            return False
        return True

    async def _offset(self, partition: Partition, timestamp: int) -> int | None:
        name = partition.partition
        asked = ListOffsetsPartition(
            partition_index=name.partition,
            current_leader_epoch=partition.leader_epoch,
            timestamp=timestamp,
        )
        response = await self._node.channels.ask_broker(
            self.leader,
            ListOffsetsRequest(
                replica_id=self._node.node_id, topics=[ListOffsetsTopic(name=name.topic, partitions=[asked])]
            ),
            ListOffsetsResponse,
            purpose="offsets",
            within=self._node.settings.replica_socket_timeout_ms / 1000,
        )
        for topic in response.topics:
            for answer in topic.partitions:
                if not answer.error_code:
                    return answer.offset
        return None

    def _back_off(self, followed: Followed) -> None:
        wait_ms = followed.backoff.failed(self._node.settings.replica_fetch_backoff_ms)
        followed.not_before_ms = self._node.clock.monotonic_ms() + wait_ms
        self._newcomers.pop(followed.key, None)


def _topics(named: Iterable[tuple[Partition, Asked]]) -> list[FetchTopic]:
    topics: dict[Uuid, FetchTopic] = {}
    for partition, asked in named:
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = FetchTopic(
                topic=partition.partition.topic, topic_id=partition.topic_id, partitions=[]
            )
        topic.partitions.append(
            FetchPartition(
                partition=partition.partition.partition,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.last_epoch,
                log_start_offset=asked.start_offset,
                replica_directory_id=partition.directory.id,
                high_watermark=asked.high_watermark,
            )
        )
    return list(topics.values())


def _forgotten(keys: Iterable[Key]) -> list[ForgottenTopic]:
    topics: dict[Uuid, ForgottenTopic] = {}
    for topic_id, number in keys:
        topic = topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[]))
        topic.partitions.append(number)
    return list(topics.values())
