"""Every API that Kafka has given a key, by key and by name.

The classes of an API are imported when they are first asked for, so that a broker that starts pays only for
the APIs that it serves.
"""

from __future__ import annotations

import importlib
from functools import cache, cached_property
from typing import cast

from ottla.protocol.schema import Message

# In the order of their keys. A key is never given to another API, so those of removed ones stay.
NAMES = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "ListGroups",
    "SaslHandshake",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "DeleteRecords",
    "InitProducerId",
    "OffsetForLeaderEpoch",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "DescribeConfigs",
    "AlterConfigs",
    "AlterReplicaLogDirs",
    "DescribeLogDirs",
    "SaslAuthenticate",
    "CreatePartitions",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "DeleteGroups",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "OffsetDelete",
    "DescribeClientQuotas",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
    "DescribeQuorum",
    "AlterPartition",
    "UpdateFeatures",
    "Envelope",
    "FetchSnapshot",
    "DescribeCluster",
    "DescribeProducers",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "UnregisterBroker",
    "DescribeTransactions",
    "ListTransactions",
    "AllocateProducerIds",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "ControllerRegistration",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "AssignReplicasToDirs",
    "ListConfigResources",
    "DescribeTopicPartitions",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "ShareFetch",
    "ShareAcknowledge",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "UpdateRaftVoter",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
)


class Api:
    """One API: its key, its name, and the classes of its two messages."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.name = NAMES[key]

    @property
    def module(self) -> str:
        """Its file in `messages`: AddOffsetsToTxn is in `add_offsets_to_txn`."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name)[1:]

    @cached_property
    def request(self) -> type[Message]:
        return self._message("Request")

    @cached_property
    def response(self) -> type[Message]:
        return self._message("Response")

    def _message(self, suffix: str) -> type[Message]:
        found = importlib.import_module(f"ottla.protocol.messages.{self.module}")
        return cast("type[Message]", getattr(found, self.name + suffix))

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name!r})"


@cache
def api(key: int) -> Api:
    """The API of a key; `KeyError` if Kafka has none."""
    if not 0 <= key < len(NAMES):
        raise KeyError(key)
    return Api(key)


def api_named(name: str) -> Api:
    """The API called this, by Kafka or by its file; `KeyError` if there is none."""
    wanted = name.replace("_", "").lower()
    for key, known in enumerate(NAMES):
        if known.lower() == wanted:
            return api(key)
    raise KeyError(name)


def all_apis() -> list[Api]:
    return [api(key) for key in range(len(NAMES))]
