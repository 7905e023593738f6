"""In-sync sets: what the leaders on this node propose to the controller, and who falls behind.

A partition finds out by itself who has caught up, when a follower fetches (`Partition.follower_fetched`); who
has fallen behind is looked for by the clock, since nobody fetches then. What is proposed goes to the
controller in batches, one request at a time (AlterPartition). A proposal stays open, and counts, until it is
known what came of it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Final, Protocol

from ottla.config.broker import BrokerSettings
from ottla.core.clock import Clock
from ottla.core.ids import Uuid
from ottla.protocol.errors import KafkaError, error_class, error_name
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionDataResponse,
    TopicData,
)
from ottla.replication.following import Backoff
from ottla.replication.isr import Outcome, Proposal, Standing
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas

logger = logging.getLogger("ottla.replication")

VERSION: Final = 3
# Proposals in one request. The rest goes with the next.
BATCH: Final = 1000
LONGEST_BACKOFF_MS: Final = 1000
# Partitions looked at before other work of the loop gets its turn.
SLICE: Final = 200


class Controller(Protocol):
    async def submit(self, request: Any, version: int) -> Any: ...


class Home(Protocol):
    """What the node has that this needs."""

    @property
    def node_id(self) -> int: ...
    @property
    def broker_epoch(self) -> int: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def settings(self) -> BrokerSettings: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def quorum(self) -> Controller: ...
    def standing_of(self, broker: int) -> Standing: ...


class InSyncSets:
    def __init__(self, home: Home) -> None:
        self._home = home
        # Partitions with a proposal that is still to be sent, or to be sent again.
        self._waiting: dict[Partition, Proposal] = {}
        self._sending: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begin to look for followers that have fallen behind."""
        self._looking = asyncio.get_running_loop().create_task(self._keep_looking())

    async def close(self) -> None:
        self._is_closed = True
        for task in (self._looking, self._sending):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def propose(self, partition: Partition) -> None:
        """Let the controller know what the partition proposes."""
        proposal = partition.isr.proposal
        if proposal is None or self._is_closed:
            return
        logger.info(
            "in-sync set partition=%s from=%s to=%s",
            partition.partition,
            sorted(partition.isr.members),
            [broker for broker, _ in proposal.members],
        )
        self._waiting[partition] = proposal
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    # --- who has fallen behind -------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(max(self._home.settings.replica_lag_time_max_ms, 2) / 2000)
            await self.look()

    async def look(self) -> None:
        """Propose to leave out whoever has not caught up for too long."""
        for count, partition in enumerate(list(self._home.replicas), start=1):
            if partition.is_leader and len(partition.isr.replicas) > 1:
                self._look_at(partition)
            if count % SLICE == 0:
                await asyncio.sleep(0)

    def brokers_changed(self) -> None:
        """A broker may have been fenced that a high watermark waits for, or be back."""
        for partition in self._home.replicas:
            if partition.is_leader and len(partition.isr.replicas) > 1:
                self._look_at(partition)

    def _look_at(self, partition: Partition) -> None:
        home = self._home
        now_ms = home.clock.monotonic_ms()
        if partition.look_for_changes(now_ms, home.settings.replica_lag_time_max_ms, home.standing_of):
            self.propose(partition)

    # --- asking the controller -------------------------------------------------------------

    async def _send_all(self) -> None:
        backoff = Backoff()
        await asyncio.sleep(0)  # whoever else is proposed in this turn of the loop goes with it
        while self._waiting:
            batch = dict(list(self._waiting.items())[:BATCH])
            for partition, proposal in batch.items():
                if self._waiting.get(partition) is proposal:
                    del self._waiting[partition]
            batch = {p: one for p, one in batch.items() if p.isr.proposal is one and p.is_leader}
            if batch and not await self._send(batch):
                await asyncio.sleep(backoff.failed(LONGEST_BACKOFF_MS) / 1000)
            else:
                backoff.worked()

    async def _send(self, batch: dict[Partition, Proposal]) -> bool:
        """Whether every proposal was decided on; those that were not are waiting again."""
        request = self._request(batch)
        try:
            response: AlterPartitionResponse = await self._home.quorum.submit(request, VERSION)
            if response.error_code:
                raise error_class(response.error_code)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, KafkaError):
                logger.exception("cannot ask for in-sync sets")
            now_ms = self._home.clock.monotonic_ms()
            for partition, proposal in batch.items():
                partition.isr.unheard(proposal, now_ms)
                self._again(partition, proposal)
            return False
        answers = {
            (topic.topic_id, answer.partition_index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        decided = True
        for partition, proposal in batch.items():
            answer = answers.get((partition.topic_id, partition.partition.partition))
            if answer is None or not self._take(partition, proposal, answer):
                self._again(partition, proposal)
                decided = False
        return decided

    def _take(self, partition: Partition, proposal: Proposal, answer: PartitionDataResponse) -> bool:
        if not answer.error_code:
            partition.proposal_accepted(proposal, answer.isr, answer.leader_epoch, answer.partition_epoch)
            return True
        now_ms = self._home.clock.monotonic_ms()
        outcome = partition.proposal_refused(proposal, answer.error_code, now_ms)
        logger.info(
            "in-sync set not changed partition=%s error=%s, %s",
            partition.partition,
            error_name(answer.error_code),
            outcome.value,
        )
        return outcome is not Outcome.AGAIN

    def _again(self, partition: Partition, proposal: Proposal) -> None:
        if partition.isr.proposal is proposal:
            self._waiting.setdefault(partition, proposal)

    def _request(self, batch: dict[Partition, Proposal]) -> AlterPartitionRequest:
        topics: dict[Uuid, TopicData] = {}
        for partition, proposal in batch.items():
            topic = topics.setdefault(
                partition.topic_id,
                TopicData(topic_name=partition.partition.topic, topic_id=partition.topic_id, partitions=[]),
            )
            topic.partitions.append(
                PartitionData(
                    partition_index=partition.partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker, broker_epoch=epoch)
                        for broker, epoch in proposal.members
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._home.node_id,
            broker_epoch=self._home.broker_epoch,
            topics=list(topics.values()),
        )
