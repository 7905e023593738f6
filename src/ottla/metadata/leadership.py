"""What becomes of partitions when a broker comes or goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.metadata.election import Election, PartitionChange
from ottla.metadata.image import MetadataRecord, Topic
from ottla.metadata.partition import NO_LEADER, PartitionState
from ottla.metadata.state import ControllerState

NO_BROKER = -1

Partition = tuple[Topic, int, PartitionState]


def change_of(
    state: ControllerState,
    topic: Topic,
    number: int,
    partition: PartitionState,
    *,
    removed: int = NO_BROKER,
    added: int = NO_BROKER,
    **wanted: Any,
) -> PartitionChange:
    """A change of one partition under the cluster's rules.

    A broker that is on its way out never leads; one that is about to be unfenced may, although the image
    still shows it fenced.
    """
    image = state.image

    def is_acceptable(broker: int) -> bool:
        if broker == removed or not (broker == added or image.is_active(broker)):
            return False
        return image.brokers[broker].has_online(partition.directory(broker))

    return PartitionChange(
        topic_id=topic.id,
        partition=number,
        state=partition,
        is_acceptable=is_acceptable,
        metadata_version=image.metadata_version,
        min_isr=state.min_isr(topic.name, len(partition.replicas)),
        elr_enabled=image.elr_enabled,
        default_directory=state.default_directory,
        **wanted,
    )


def changes(
    state: ControllerState,
    partitions: Iterable[Partition],
    *,
    removed: int = NO_BROKER,
    added: int = NO_BROKER,
    unclean: int = NO_BROKER,
) -> list[MetadataRecord]:
    """The records for these partitions once a broker is `removed`, `added`, or back after a crash."""
    gone = unclean if removed == NO_BROKER else removed
    records: list[MetadataRecord] = []
    unclean_elections: dict[str, bool] = {}
    for topic, number, partition in partitions:
        allowed = unclean_elections.get(topic.name)
        if allowed is None:
            allowed = unclean_elections[topic.name] = state.is_unclean_election_enabled(topic.name)
        record = change_of(
            state,
            topic,
            number,
            partition,
            removed=gone,
            added=added,
            election=Election.UNCLEAN if allowed else Election.ONLINE,
            isr=tuple(replica for replica in partition.isr if replica != gone),
            unclean_shutdown=() if unclean == NO_BROKER else (unclean,),
        ).record()
        if record is not None:
            records.append(record)
    return records


def in_sync_on(state: ControllerState, broker: int) -> Iterable[Partition]:
    return (partition for partition in state.image.partitions() if broker in partition[2].isr)


def eligible_on(state: ControllerState, broker: int) -> Iterable[Partition]:
    return (partition for partition in state.image.partitions() if broker in partition[2].elr)


def leaderless(state: ControllerState) -> Iterable[Partition]:
    return (partition for partition in state.image.partitions() if partition[2].leader == NO_LEADER)


def leads_any(state: ControllerState, broker: int) -> bool:
    return any(partition.leader == broker for _, _, partition in state.image.partitions())
