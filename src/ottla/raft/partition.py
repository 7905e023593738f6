"""The one partition that every message of the quorum is about, and the leader that every answer names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.core.ids import METADATA_TOPIC_ID
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import InconsistentClusterId, InvalidRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest
from ottla.raft.membership import Address

P = TypeVar("P", covariant=True)


class _Topic(Protocol[P]):
    @property
    def topic_name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[P]: ...


class _Endpoint(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Heading(NamedTuple):
    """What any answer says: whether it went well, and who leads which epoch as far as that node knows."""

    error_code: int
    leader_id: int
    epoch: int
    addresses: tuple[Address, ...]


def check_cluster(cluster_id: str | None, ours: str) -> None:
    """Nodes of another cluster are not to be listened to. Old ones do not say which is theirs."""
    if cluster_id is not None and cluster_id != ours:
        raise InconsistentClusterId


def only_partition(topics: Sequence[_Topic[P]]) -> P:
    """The metadata partition of a request or answer; `InvalidRequest` if it is about anything else."""
    if len(topics) == 1 and topics[0].topic_name == CLUSTER_METADATA and len(topics[0].partitions) == 1:
        partition: Any = topics[0].partitions[0]
        if partition.partition_index == 0:
            return topics[0].partitions[0]
    raise InvalidRequest


def fetched_partition(request: FetchRequest) -> FetchPartition:
    """The same for Fetch, which calls topics by their ids from version 13 on."""
    if len(request.topics) == 1 and len(request.topics[0].partitions) == 1:
        topic, partition = request.topics[0], request.topics[0].partitions[0]
        is_it = topic.topic == CLUSTER_METADATA or topic.topic_id == METADATA_TOPIC_ID
        if is_it and partition.partition == 0:
            return partition
    raise InvalidRequest


def addresses_in(endpoints: Iterable[_Endpoint], node_id: int, name: str) -> tuple[Address, ...]:
    """Where a node listens, as an answer says it: on the listener that the answer came through."""
    return tuple(Address(name, e.host, e.port) for e in endpoints if e.node_id == node_id)
