"""Who votes, as the log says it: the control records that set kraft.version and the voters (KIP-853)."""

from __future__ import annotations

from typing import NamedTuple

from ottla.core.ids import Uuid
from ottla.protocol import codec
from ottla.protocol.control import ControlRecord, ControlRecordType
from ottla.protocol.stored.quorum import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VotersRecord,
)

SUPPORTED_KRAFT_VERSIONS = (0, 1)

ControlValue = tuple[ControlRecordType, bytes]


class Address(NamedTuple):
    """Where a voter listens for the others."""

    name: str
    host: str
    port: int


class VoterKey(NamedTuple):
    """A voter is a node with a particular disk: the same node with an empty one is another voter."""

    id: int
    directory_id: Uuid


class Membership:
    """kraft.version and the voters at the end of the log; None when the voters are set by configuration."""

    def __init__(self) -> None:
        self.kraft_version = 0
        self.voters: list[Voter] | None = None
        # Whether the log itself (rather than the snapshot made by formatting) has these records.
        self.is_in_log = False

    def apply(self, record: ControlRecord, *, in_log: bool = True) -> None:
        if record.type is ControlRecordType.KRAFT_VERSION:
            self.kraft_version = codec.decode(KRaftVersionRecord, 0, record.value).kraft_version
            self.is_in_log |= in_log
        elif record.type is ControlRecordType.KRAFT_VOTERS:
            self.voters = codec.decode(VotersRecord, 0, record.value).voters

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return tuple(voter.voter_id for voter in self.voters or ())

    def records(self) -> list[ControlValue]:
        """The control records that carry this membership into a snapshot."""
        if self.kraft_version < 1:
            return []
        version = KRaftVersionRecord(kraft_version=self.kraft_version)
        return [
            (ControlRecordType.KRAFT_VERSION, codec.encode(version, 0)),
            (ControlRecordType.KRAFT_VOTERS, codec.encode(VotersRecord(voters=self.voters or []), 0)),
        ]


def standalone(node: VoterKey, address: Address) -> Membership:
    """A quorum of one, as `kafka-storage format --standalone` makes it."""
    made = Membership()
    made.kraft_version = 1
    made.voters = [
        Voter(
            voter_id=node.id,
            voter_directory_id=node.directory_id,
            endpoints=[Endpoint(name=address.name, host=address.host, port=address.port)],
            kraft_version_feature=KRaftVersionFeature(
                min_supported_version=SUPPORTED_KRAFT_VERSIONS[0],
                max_supported_version=SUPPORTED_KRAFT_VERSIONS[1],
            ),
        )
    ]
    return made


def leader_change(leader: int, voters: tuple[int, ...], granting: tuple[int, ...]) -> ControlValue:
    """The first record of an epoch. Version 0 names nodes without their directories, as Kafka writes it."""
    message = LeaderChangeMessage(
        leader_id=leader,
        voters=[LeaderChangeVoter(voter_id=voter) for voter in voters],
        granting_voters=[LeaderChangeVoter(voter_id=voter) for voter in granting],
    )
    return ControlRecordType.LEADER_CHANGE, codec.encode(message, 0)
