"""A coordinator: groups, transactions or share-group state, spread over the partitions of an internal topic.

Every key (a group id, a transactional id) belongs to one partition, and the broker that leads it answers for
the key. Here is which partition that is, the topic's creation on first use, and the shards of the partitions
that this broker leads; what happens in one of them is in `shard`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, Protocol

from ottla.config.broker import BrokerSettings
from ottla.core.java import absolute, hash_code
from ottla.core.outcome import Now, Outcome
from ottla.metadata.image import Image
from ottla.protocol.control import EndTransactionMarker
from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    NotCoordinator,
    TopicAlreadyExists,
    error_class,
)
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.replication.partition import NO_LEADER, Partition
from ottla.runtime import shard
from ottla.runtime.internal_topics import creatable_topic
from ottla.runtime.quorum import Quorum
from ottla.runtime.shard import Command, M, Shard, State, Writing

logger = logging.getLogger("ottla.coordinator")

CREATE_TOPICS_VERSION: Final = 7
# Whoever needs the topic first waits this long for it.
CREATION_TIMEOUT_MS: Final = 5_000
# Between two looks whether what the controller, another node, has created is known here.
LOOK_AGAIN_MS: Final = 5
# Before a machine is begun again from its log: what broke it may do so again at once.
RELOAD_PAUSE_MS: Final = 100


class Home(shard.Home, Protocol):
    """What the node has that a coordinator needs."""

    @property
    def node_id(self) -> int: ...
    @property
    def settings(self) -> BrokerSettings: ...
    @property
    def image(self) -> Image: ...
    @property
    def quorum(self) -> Quorum: ...
    async def caught_up(self) -> None: ...


class Coordinator(Generic[M]):
    """`make(partition, leader_epoch)` gives a machine without a past; `on_effect` does what one asks for."""

    def __init__(
        self,
        topic: str,
        home: Home,
        writing: Writing,
        *,
        make: Callable[[int, int], M],
        on_effect: Callable[[Any], None],
    ) -> None:
        self.topic = topic
        self._home = home
        self._writing = writing
        self._make = make
        self._on_effect = on_effect
        self._shards: dict[int, Shard[M]] = {}
        self._creating: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    # --- commands ------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """The partition that a key belongs to: Kafka's choice, which every broker has to share."""
        topic = self._home.image.topics.get(self.topic)
        if topic is not None and topic.partitions:
            count = len(topic.partitions)
        else:
            count = creatable_topic(self.topic, self._home.settings).num_partitions
        return absolute(hash_code(key)) % count

    def elsewhere(self, key: str) -> int | None:
        """The other broker that answers for a key. None if it is this one, or nobody does at the moment."""
        topic = self._home.image.topics.get(self.topic)
        state = None if topic is None else topic.partitions.get(self.partition_for(key))
        if state is None or state.leader in (NO_LEADER, self._home.node_id):
            return None
        return state.leader

    async def call(self, key: str, command: Command[M], *, transaction: tuple[int, int] | None = None) -> Any:
        """The answer to a command on the machine that has this key, once all that it rests on is committed.

        Runs the command before it suspends for the first time, unless the topic has yet to be made. With a
        `transaction`, its producer's id and epoch, the records belong to that transaction. Raises the
        command's errors, `NotCoordinator`, `CoordinatorLoadInProgress` and `CoordinatorNotAvailable`.
        """
        if self._creating is not None or self.topic not in self._home.image.topics:
            await self.prepare()
        ticket = self._shard(self.partition_for(key)).run(command, transaction)
        return ticket.result() if ticket.done() else await ticket

    async def call_all(self, command: Command[M]) -> list[Any]:
        """The answers of every machine that has seen a command since its log was empty.

        `CoordinatorLoadInProgress` while some are not loaded: the answers would not be the whole truth.
        """
        shards = list(self._shards.values())
        if any(each.state is State.LOADING for each in shards):
            raise CoordinatorLoadInProgress
        tickets = [each.run(command) for each in shards if each.state is State.ACTIVE]
        waiting = [ticket for ticket in tickets if not ticket.done()]
        if waiting:
            await asyncio.wait(waiting)
        # What another broker has taken over meanwhile is for that one to tell.
        return [ticket.result() for ticket in tickets if not isinstance(ticket.exception(), NotCoordinator)]

    def loading(self) -> list[int]:
        """The partitions whose machines are not ready yet."""
        return [index for index, each in self._shards.items() if each.state is State.LOADING]

    def partitions(self) -> Iterator[tuple[int, M]]:
        """The machines that are loaded, by partition. What they say may not be committed yet."""
        for index, each in self._shards.items():
            if each.state is State.ACTIVE:
                yield index, each.machine

    def _shard(self, index: int) -> Shard[M]:
        found = self._shards.get(index)
        if found is None:
            raise NotCoordinator
        return found

    # --- the topic -----------------------------------------------------------------------

    async def prepare(self) -> None:
        """Return once the topic exists and its partitions here have been made.

        All who come while it is being created share one creation. Raises `CoordinatorNotAvailable`.
        """
        if self._creating is None:
            if self.topic in self._home.image.topics:
                return
            self._creating = asyncio.get_running_loop().create_task(self._create())
            self._creating.add_done_callback(self._created)
        # Shielded, since others may wait for the same creation after this caller has gone.
        await asyncio.shield(self._creating)

    async def _create(self) -> None:
        request = CreateTopicsRequest(
            topics=[creatable_topic(self.topic, self._home.settings)], timeout_ms=CREATION_TIMEOUT_MS
        )
        try:
            async with asyncio.timeout(CREATION_TIMEOUT_MS / 1000):
                response: CreateTopicsResponse = await self._home.quorum.submit(
                    request, CREATE_TOPICS_VERSION
                )
                [result] = response.topics
                if result.error_code not in (0, TopicAlreadyExists.code):
                    raise error_class(result.error_code)(result.error_message or "")
                await self._home.caught_up()
                while self.topic not in self._home.image.topics:  # noqa: ASYNC110 (it is on its way to us)
                    await asyncio.sleep(LOOK_AGAIN_MS / 1000)
        except (KafkaError, TimeoutError) as error:
            logger.warning("cannot create %s: %s", self.topic, str(error) or "it takes too long")
            raise CoordinatorNotAvailable(f"{self.topic} could not be created.") from error

    def _created(self, task: asyncio.Task[None]) -> None:
        self._creating = None
        if not task.cancelled():
            task.exception()  # whoever asked for it has heard

    # --- what the node tells us ------------------------------------------------------------

    def follow(self, partition: Partition) -> None:
        """A partition of the topic has changed its role here, or may have."""
        index = partition.partition.partition
        known = self._shards.get(index)
        if partition.is_leader:
            if known is None or known.leader_epoch != partition.leader_epoch:
                self._lead(partition)
        elif known is not None and known.partition is partition:
            del self._shards[index]
            known.close()

    def marker_appended(self, index: int, marker: EndTransactionMarker) -> None:
        """A transaction has just ended in this partition: its marker is in the log."""
        found = self._shards.get(index)
        if found is not None:
            found.marker_appended(marker)

    def take(self, decide: Callable[[M, Now], Outcome]) -> None:
        """Let every loaded machine decide something that nobody waits for, such as on news of topics."""
        for each in list(self._shards.values()):
            each.take(decide)

    async def close(self) -> None:
        """Stop all timers and loading; whoever still waits is sent away."""
        if self._creating is not None:
            self._creating.cancel()
        shards, self._shards = self._shards, {}
        for each in shards.values():
            each.close()

    def _lead(self, partition: Partition, after_ms: int = 0) -> None:
        index = partition.partition.partition
        known = self._shards.pop(index, None)
        if known is not None:
            known.close()
        made = self._shards[index] = Shard(
            partition,
            self._home,
            self._writing,
            turn=self._turn,
            make=lambda: self._make(index, partition.leader_epoch),
            on_effect=self._on_effect,
            on_broken=self._reload,
        )
        made.load(after_ms)

    def _reload(self, broken: Shard[M]) -> None:
        if broken.partition.is_leader:
            self._lead(broken.partition, RELOAD_PAUSE_MS)
        else:
            self._shards.pop(broken.index, None)
