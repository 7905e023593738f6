"""What a cluster says about itself, asked over the wire: so it can be asked of Apache Kafka as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing.asking import ask

METADATA: Final = 3
DESCRIBE_QUORUM: Final = 55
METADATA_TOPIC: Final = "__cluster_metadata"
# A node that is paused takes connections and answers nothing.
ANSWER_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 0.05


class Partition(NamedTuple):
    """A partition as a broker knows it; leader -1 is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it is led, and every replica is in sync."""
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


class State(NamedTuple):
    """What one broker knows: the brokers that are not fenced, and every partition by its name."""

    brokers: frozenset[int]
    partitions: dict[str, Partition]


class Quorum(NamedTuple):
    """The metadata quorum; leader -1 is none. Voters and observers with the end of what they have."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[int, int]
    observers: dict[int, int]


def state(bootstrap: str) -> State:
    """What the broker at this address knows. Raises OSError or EOFError if it does not answer."""
    answer = ask(bootstrap, METADATA, 12, MetadataRequest(topics=None), timeout=ANSWER_SECONDS)
    partitions = {
        f"{topic.name}-{each.partition_index}": Partition(
            each.leader_id, each.leader_epoch, tuple(each.replica_nodes), tuple(each.isr_nodes)
        )
        for topic in answer.topics
        for each in topic.partitions
    }
    return State(frozenset(broker.node_id for broker in answer.brokers), partitions)


def quorum(bootstrap: str) -> Quorum:
    """The quorum as its leader describes it to the broker at this address. Raises OSError or EOFError."""
    wanted = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
    answer = ask(
        bootstrap, DESCRIBE_QUORUM, 2, DescribeQuorumRequest(topics=[wanted]), timeout=ANSWER_SECONDS
    )
    found = [each for topic in answer.topics for each in topic.partitions if each.error_code == 0]
    if answer.error_code or not found:
        return Quorum(-1, -1, -1, {}, {})
    (at,) = found
    return Quorum(
        at.leader_id,
        at.leader_epoch,
        at.high_watermark,
        {each.replica_id: each.log_end_offset for each in at.current_voters},
        {each.replica_id: each.log_end_offset for each in at.observers},
    )


def of_any(bootstraps: Iterable[str], question: Callable[[str], Any]) -> Any:
    """The first answer, from whoever answers. Raises the last error if nobody does."""
    last: Exception = OSError("there is no broker to ask")
    for bootstrap in bootstraps:
        try:
            return question(bootstrap)
        except (OSError, EOFError) as error:
            last = error
    raise last


def eventually(what: str, condition: Callable[[], object], seconds: float) -> None:
    """Ask until the answer is true; a broker that does not answer is not there yet. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            if condition():
                return
        except (OSError, EOFError) as error:
            last = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}" + (f" ({last})" if last else ""))
        time.sleep(PAUSE_SECONDS)
