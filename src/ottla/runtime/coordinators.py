"""The coordinators of this node, and what each of them is made of.

The machines are imported when the first key of their kind is used, or a log of theirs has to be loaded: a
broker that serves no groups does not pay for them when it starts.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ottla.core.types import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.metadata.delta import Delta
from ottla.protocol.control import EndTransactionMarker
from ottla.replication.partition import Partition
from ottla.runtime.coordinator import Coordinator
from ottla.runtime.elsewhere import Elsewhere
from ottla.runtime.shard import Writing
from ottla.runtime.topics import ImageTopics
from ottla.storage.log_directory import new_uuid

if TYPE_CHECKING:
    from ottla.groups.shard import GroupMachine
    from ottla.groups.share_state import Prune, ShareStateMachine
    from ottla.runtime.markers import Markers
    from ottla.runtime.node import Node
    from ottla.runtime.share import Shares
    from ottla.runtime.verifications import Verifications
    from ottla.transactions.machine import TransactionMachine

GROUP_RESOURCE: Final = 32

logger = logging.getLogger("ottla.coordinator")


class Coordinators:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._topics = ImageTopics(lambda: node.image)
        self.elsewhere = Elsewhere(node)
        self._markers: Markers | None = None
        self._shares: Shares | None = None
        self._verifications: Verifications | None = None
        self.groups: Coordinator[GroupMachine] = Coordinator(
            CONSUMER_OFFSETS,
            node,
            Writing(
                base_sequence=0,
                codec=lambda: node.settings.offsets_topic_compression_codec,
                timeout_ms=lambda: node.settings.offsets_commit_timeout_ms,
            ),
            make=self._group_machine,
            on_effect=self._unknown_effect,
        )
        self.transactions: Coordinator[TransactionMachine] = Coordinator(
            TRANSACTION_STATE,
            node,
            Writing(base_sequence=-1, codec=lambda: 0, timeout_ms=lambda: node.settings.request_timeout_ms),
            make=self._transaction_machine,
            on_effect=self._write_markers,
        )
        self.share_state: Coordinator[ShareStateMachine] = Coordinator(
            SHARE_GROUP_STATE,
            node,
            Writing(
                base_sequence=0,
                codec=lambda: node.settings.share_coordinator_state_topic_compression_codec,
                timeout_ms=lambda: node.settings.share_coordinator_write_timeout_ms,
            ),
            make=self._share_state_machine,
            on_effect=self._prune_share_state,
        )
        kinds: tuple[Coordinator[Any], ...] = (self.groups, self.transactions, self.share_state)
        self.by_topic = {each.topic: each for each in kinds}

    @property
    def shares(self) -> Shares:
        """The share partitions here. Without share groups there are none."""
        if self._shares is None:
            from ottla.runtime.share import Shares

            self._shares = Shares(self._node)
        return self._shares

    @property
    def verifications(self) -> Verifications:
        """What is asked of the coordinators of transactions on other brokers."""
        if self._verifications is None:
            from ottla.runtime.verifications import Verifications

            self._verifications = Verifications(self.elsewhere)
        return self._verifications

    # --- machines --------------------------------------------------------------------------

    def _group_machine(self, partition: int, leader_epoch: int) -> GroupMachine:
        from ottla.groups.shard import GroupMachine

        node = self._node
        return GroupMachine(
            settings=lambda: node.settings,
            topics=self._topics,
            new_id=new_uuid,
            group_overrides=lambda group: node.image.config(GROUP_RESOURCE, group),
        )

    def _transaction_machine(self, partition: int, leader_epoch: int) -> TransactionMachine:
        from ottla.transactions.machine import TransactionMachine

        node = self._node
        return TransactionMachine(
            leader_epoch,
            lambda: node.settings,
            lambda: node.image.features.get("transaction.version", 0),
        )

    def _share_state_machine(self, partition: int, leader_epoch: int) -> ShareStateMachine:
        from ottla.groups.share_state import ShareStateMachine

        node = self._node
        return ShareStateMachine(partition, settings=lambda: node.settings, topics=self._topics)

    def _write_markers(self, effect: Any) -> None:
        if self._markers is None:
            from ottla.runtime.markers import Markers

            self._markers = Markers(self._node)
        self._markers.write(effect)

    def transaction_over(self, transactional_id: str) -> asyncio.Future[None] | None:
        """`Markers.over`, of the markers that this broker writes as a coordinator."""
        return None if self._markers is None else self._markers.over(transactional_id)

    def _prune_share_state(self, effect: Prune) -> None:
        partition = self._node.replicas.find(SHARE_GROUP_STATE, effect.partition)
        if partition is not None and partition.is_leader:
            partition.log.delete_records(effect.before_offset)

    def _unknown_effect(self, effect: Any) -> None:
        logger.error("nobody carries out %r", effect)

    # --- what the node tells us --------------------------------------------------------------

    def follow(self, partition: Partition) -> None:
        """A partition has changed its role here, or may have."""
        coordinator = self.by_topic.get(partition.partition.topic)
        if coordinator is not None:
            coordinator.follow(partition)
        if self._shares is not None:
            self._shares.follow(partition)

    def marker_appended(self, partition: Partition, marker: EndTransactionMarker) -> None:
        """The end of a transaction was appended to a partition: if it is one of ours, its machine hears."""
        coordinator = self.by_topic.get(partition.partition.topic)
        if coordinator is not None:
            coordinator.marker_appended(partition.partition.partition, marker)

    def metadata_changed(self, delta: Delta) -> None:
        """Topics came, changed or went."""
        if delta.topics or delta.deleted_topics:
            self.elsewhere.leaders_changed()
            deleted, changed = delta.deleted_topics, set(delta.topics)
            self.groups.take(lambda machine, now: machine.topics_changed(deleted, changed, now))
            if deleted:
                self.share_state.take(lambda machine, now: machine.topics_deleted(deleted))

    async def close(self) -> None:
        if self._shares is not None:
            await self._shares.close()
        if self._markers is not None:
            await self._markers.close()
        if self._verifications is not None:
            await self._verifications.close()
        for coordinator in self.by_topic.values():
            await coordinator.close()
