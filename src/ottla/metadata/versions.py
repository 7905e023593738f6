"""Feature levels: what `metadata.version` and the other features of KIP-584 allow a cluster to write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

# The level of metadata.version from which each thing may be written.
MV_MINIMUM: Final = 7  # 3.3-IV3, the oldest a 4.x cluster can be at
MV_REGISTRATION_WITH_MIGRATION: Final = 8
MV_SCRAM: Final = 11  # 3.5-IV2
MV_NO_EPOCH_BUMP_ON_ISR_SHRINK: Final = 12
MV_TRANSACTIONS: Final = 13
MV_CONTROLLER_REGISTRATION: Final = 15
MV_DIRECTORY_ASSIGNMENT: Final = 17
MV_ELIGIBLE_LEADER_REPLICAS: Final = 23
MV_CORDONED_DIRECTORIES: Final = 30
MV_LATEST: Final = 30  # 4.3-IV0

# Levels that brought a new record or field: stepping below one of them would forget what it wrote.
MV_THAT_CHANGED_METADATA: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30})


class VersionRange(NamedTuple):
    min: int
    max: int


DISABLED: Final = VersionRange(0, 0)

# What this code supports, in the order Kafka's bootstrap snapshot lists it: metadata.version, then by name.
SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(MV_MINIMUM, MV_LATEST),
    ELIGIBLE_LEADER_REPLICAS_VERSION: VersionRange(0, 1),
    GROUP_VERSION: VersionRange(0, 1),
    KRAFT_VERSION: VersionRange(0, 1),
    SHARE_VERSION: VersionRange(0, 1),
    STREAMS_VERSION: VersionRange(0, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
}

# What a new cluster starts with. kraft.version is not here: it lives in a control record of its own.
DEFAULT_FEATURES: Final[Mapping[str, int]] = {
    METADATA_VERSION: MV_LATEST,
    ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}

# Raising a feature to a level asks for at least this metadata.version.
FEATURE_NEEDS_METADATA_VERSION: Final[Mapping[tuple[str, int], int]] = {
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1): MV_ELIGIBLE_LEADER_REPLICAS,
}
