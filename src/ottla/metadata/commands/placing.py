"""What CreateTopics and CreatePartitions share: new partitions, placed by us or by hand."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.metadata.partition import PartitionState
from ottla.metadata.placement import UsableBroker, draw_from, place
from ottla.metadata.state import Context, ControllerState
from ottla.protocol.errors import InvalidReplicaAssignment, InvalidReplicationFactor


def placed(
    state: ControllerState, partitions: int, replication_factor: int, context: Context
) -> list[PartitionState]:
    """New partitions on brokers that the controller chooses."""
    usable = [
        UsableBroker(broker.id, broker.rack, broker.fenced)
        for broker in state.image.brokers.values()
        if not state.sessions.is_shutting_down(broker.id) and broker.takes_new_replicas
    ]
    draw = draw_from(context.random_bytes)
    try:
        made = [
            _partition(state, replicas) for replicas in place(usable, partitions, replication_factor, draw)
        ]
    except InvalidReplicationFactor as error:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): {error}"
        ) from None
    if any(not partition.isr for partition in made):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): "
            "All brokers are currently fenced or in controlled shutdown."
        )
    return made


def assigned(
    state: ControllerState, number: int, replicas: Sequence[int], replication_factor: int | None
) -> PartitionState:
    """A new partition on the brokers that the request names."""
    check_assignment(state, replicas, replication_factor)
    made = _partition(state, tuple(replicas))
    if not made.isr:
        raise InvalidReplicaAssignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{number} are fenced or in controlled shutdown."
        )
    return made


def check_assignment(state: ControllerState, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Raise `InvalidReplicaAssignment` unless these replicas make sense."""
    if not replicas:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in state.image.brokers:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
            f"is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _partition(state: ControllerState, replicas: tuple[int, ...]) -> PartitionState:
    """A partition that starts out in sync wherever a broker is there to hold it."""
    isr = tuple(broker for broker in replicas if state.image.is_active(broker))
    return PartitionState(
        replicas=replicas,
        isr=isr,
        leader=isr[0] if isr else -1,
        directories=tuple(state.default_directory(broker) for broker in replicas),
    )
